// Rows of Arrow's arrays as JSON.
#pragma once

#include <arrow/api.h>

#include <cstdint>
#include <string>

namespace plimsoll::columnar {

/// The row of a batch as an object, with a line end:
///
///   numbers                  as Python's json writes them: 3, 3.0, 1e+16, NaN; decimals with their digits
///   texts and bytes          strings, as they lie there, whatever their encoding
///   dates and times          strings, as Python's str writes them: 2024-01-02 03:04:05
///   lists, structs, maps     lists and objects
///   arrow.json               the JSON that it holds; other extension types what they are stored as
///
/// What has no spelling (column_types.h) is null.
void append_row(const arrow::RecordBatch& batch, int64_t row, std::string& out);

}  // namespace plimsoll::columnar
