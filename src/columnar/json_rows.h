// Rows of Arrow's arrays as JSON.
#pragma once

#include <arrow/api.h>

#include <cstdint>
#include <string>

namespace plimsoll::columnar {

/// Appends `array`'s value at `row`. Texts are as they lie there, whatever their encoding; what has no
/// spelling in JSON lines of examples - bytes, times, decimals - is null.
void append_value(const arrow::Array& array, int64_t row, std::string& out);
/// The row of a batch as an object, with a line end.
void append_row(const arrow::RecordBatch& batch, int64_t row, std::string& out);

}  // namespace plimsoll::columnar
