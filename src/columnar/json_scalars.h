// Single values as JSON: numbers as Python's json writes them, times as Python's str does.
#pragma once

#include <arrow/api.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace plimsoll::columnar {

/// `text` as a string of JSON, whatever its encoding.
void append_text(std::string_view text, std::string& out);
/// The shortest digits that read back to it, with a point or an exponent: 3.0, 1e+16, NaN.
void append_float(double value, std::string& out);
/// JSON that a column holds, on one line; where it is none, "!", which is none either.
void append_json(std::string_view json, std::string& out);
/// 16 bytes as "00000000-0000-0000-0000-000000000005".
void append_uuid(std::string_view bytes, std::string& out);
/// The text or the bytes at `row`, which is not null; nothing where the array holds neither.
std::optional<std::string_view> bytes_at(const arrow::Array& array, int64_t row);
/// The value at `row`, which is not null. False where the array is not one of numbers, booleans, texts,
/// bytes, dates or times.
bool append_scalar(const arrow::Array& array, int64_t row, std::string& out);

}  // namespace plimsoll::columnar
