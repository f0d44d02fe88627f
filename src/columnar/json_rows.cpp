#include "columnar/json_rows.h"

#include <cmath>
#include <cstdio>
#include <string_view>

namespace plimsoll::columnar {
namespace {

/// Deeper ones are null: nothing that is trained on is, and a file may claim any depth.
constexpr int kMostDepth = 64;

void append_text(std::string_view text, std::string& out) {
  out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c));
      out += escape;
    } else {
      out += c;
    }
  }
  out += '"';
}

void append_number(double value, std::string& out) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  char digits[40];
  std::snprintf(digits, sizeof digits, "%.17g", value);
  out += digits;
}

void append(const arrow::Array& array, int64_t row, int depth, std::string& out);

template <typename List>
void append_list(const arrow::Array& array, int64_t row, int depth, std::string& out) {
  const auto& list = static_cast<const List&>(array);
  const int64_t begin = list.value_offset(row), end = begin + list.value_length(row);
  out += '[';
  for (int64_t i = begin; i < end; ++i) {
    if (i > begin) out += ", ";
    append(*list.values(), i, depth + 1, out);
  }
  out += ']';
}

void append_struct(const arrow::Array& array, int64_t row, int depth, std::string& out) {
  const auto& fields = static_cast<const arrow::StructArray&>(array);
  out += '{';
  for (int i = 0; i < fields.num_fields(); ++i) {
    if (i > 0) out += ", ";
    append_text(fields.struct_type()->field(i)->name(), out);
    out += ": ";
    append(*fields.field(i), row, depth + 1, out);
  }
  out += '}';
}

template <typename T>
void append_integer(const arrow::Array& array, int64_t row, std::string& out) {
  out += std::to_string(static_cast<const T&>(array).Value(row));
}

template <typename T>
void append_string(const arrow::Array& array, int64_t row, std::string& out) {
  append_text(static_cast<const T&>(array).GetView(row), out);
}

/// False where it is no number.
bool append_numeric(const arrow::Array& array, int64_t row, std::string& out) {
  using arrow::Type;
  switch (array.type_id()) {
    case Type::INT8:
      return append_integer<arrow::Int8Array>(array, row, out), true;
    case Type::INT16:
      return append_integer<arrow::Int16Array>(array, row, out), true;
    case Type::INT32:
      return append_integer<arrow::Int32Array>(array, row, out), true;
    case Type::INT64:
      return append_integer<arrow::Int64Array>(array, row, out), true;
    case Type::UINT8:
      return append_integer<arrow::UInt8Array>(array, row, out), true;
    case Type::UINT16:
      return append_integer<arrow::UInt16Array>(array, row, out), true;
    case Type::UINT32:
      return append_integer<arrow::UInt32Array>(array, row, out), true;
    case Type::UINT64:
      return append_integer<arrow::UInt64Array>(array, row, out), true;
    case Type::FLOAT:
      return append_number(double{static_cast<const arrow::FloatArray&>(array).Value(row)}, out), true;
    case Type::DOUBLE:
      return append_number(static_cast<const arrow::DoubleArray&>(array).Value(row), out), true;
    default:
      return false;
  }
}

void append(const arrow::Array& array, int64_t row, int depth, std::string& out) {
  using arrow::Type;
  if (depth > kMostDepth || array.IsNull(row)) {
    out += "null";
    return;
  }
  if (append_numeric(array, row, out)) return;
  switch (array.type_id()) {
    case Type::BOOL:
      out += static_cast<const arrow::BooleanArray&>(array).Value(row) ? "true" : "false";
      return;
    case Type::STRING:
      return append_string<arrow::StringArray>(array, row, out);
    case Type::LARGE_STRING:
      return append_string<arrow::LargeStringArray>(array, row, out);
    case Type::STRING_VIEW:
      return append_string<arrow::StringViewArray>(array, row, out);
    case Type::LIST:
      return append_list<arrow::ListArray>(array, row, depth, out);
    case Type::LARGE_LIST:
      return append_list<arrow::LargeListArray>(array, row, depth, out);
    case Type::FIXED_SIZE_LIST:
      return append_list<arrow::FixedSizeListArray>(array, row, depth, out);
    case Type::STRUCT:
      return append_struct(array, row, depth, out);
    case Type::DICTIONARY: {
      const auto& coded = static_cast<const arrow::DictionaryArray&>(array);
      return append(*coded.dictionary(), coded.GetValueIndex(row), depth + 1, out);
    }
    default:
      out += "null";
  }
}

}  // namespace

void append_value(const arrow::Array& array, int64_t row, std::string& out) { append(array, row, 0, out); }

void append_row(const arrow::RecordBatch& batch, int64_t row, std::string& out) {
  out += '{';
  for (int i = 0; i < batch.num_columns(); ++i) {
    if (i > 0) out += ", ";
    append_text(batch.column_name(i), out);
    out += ": ";
    append(*batch.column(i), row, 0, out);
  }
  out += "}\n";
}

}  // namespace plimsoll::columnar
