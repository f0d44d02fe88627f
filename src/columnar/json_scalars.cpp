#include "columnar/json_scalars.h"

#include <arrow/util/float16.h>

#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>

#include "corpora/json_scan.h"

namespace plimsoll::columnar {
namespace {

using arrow::Type;

template <typename T>
auto value_at(const arrow::Array& array, int64_t row) {
  return static_cast<const T&>(array).Value(row);
}
template <typename T>
std::string_view view_at(const arrow::Array& array, int64_t row) {
  return static_cast<const T&>(array).GetView(row);
}

int64_t ticks_of_a_second(arrow::TimeUnit::type unit) {
  constexpr int64_t kTicks[] = {1, 1'000, 1'000'000, 1'000'000'000};
  return kTicks[static_cast<int>(unit)];
}

void append_date(int64_t days, std::string& out) {
  const std::chrono::year_month_day date{std::chrono::sys_days(std::chrono::days(days))};
  char text[40];
  std::snprintf(text, sizeof text, "%04d-%02u-%02u", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()));
  out += text;
}

/// "03:04:05", with six digits behind a point where they are not zero, or nine where six do not suffice.
void append_time(int64_t ticks, int64_t per_second, std::string& out) {
  const int64_t seconds = ticks / per_second, nanoseconds = ticks % per_second * (1'000'000'000 / per_second);
  char text[80];
  int size = std::snprintf(text, sizeof text, "%02lld:%02lld:%02lld", static_cast<long long>(seconds / 3600),
                           static_cast<long long>(seconds / 60 % 60), static_cast<long long>(seconds % 60));
  if (nanoseconds % 1000 != 0)
    size += std::snprintf(text + size, sizeof text - static_cast<size_t>(size), ".%09lld",
                          static_cast<long long>(nanoseconds));
  else if (nanoseconds != 0)
    size += std::snprintf(text + size, sizeof text - static_cast<size_t>(size), ".%06lld",
                          static_cast<long long>(nanoseconds / 1000));
  out.append(text, static_cast<size_t>(size));
}

void append_timestamp(const arrow::Array& array, int64_t row, std::string& out) {
  const auto& type = static_cast<const arrow::TimestampType&>(*array.type());
  const int64_t value = value_at<arrow::TimestampArray>(array, row);
  const int64_t per_second = ticks_of_a_second(type.unit()), per_day = 86'400 * per_second;
  const int64_t within = (value % per_day + per_day) % per_day;
  append_date((value - within) / per_day, out);
  out += ' ';
  append_time(within, per_second, out);
  if (!type.timezone().empty()) out += "+00:00";
}

void append_moment(const arrow::Array& array, int64_t row, std::string& out) {
  constexpr int64_t kDay = 86'400'000;
  const auto time_ticks = [&](int64_t ticks) {
    append_time(ticks, ticks_of_a_second(static_cast<const arrow::TimeType&>(*array.type()).unit()), out);
  };
  out += '"';
  switch (array.type_id()) {
    case Type::DATE32:
      append_date(value_at<arrow::Date32Array>(array, row), out);
      break;
    case Type::DATE64: {
      const int64_t value = value_at<arrow::Date64Array>(array, row);
      append_date((value - (value % kDay + kDay) % kDay) / kDay, out);
      break;
    }
    case Type::TIME32:
      time_ticks(value_at<arrow::Time32Array>(array, row));
      break;
    case Type::TIME64:
      time_ticks(value_at<arrow::Time64Array>(array, row));
      break;
    default:
      append_timestamp(array, row, out);
  }
  out += '"';
}

/// False where it is no integer.
bool append_integer(const arrow::Array& array, int64_t row, std::string& out) {
  const auto put = [&out](auto value) { return out += std::to_string(value), true; };
  switch (array.type_id()) {
    case Type::INT8:
      return put(value_at<arrow::Int8Array>(array, row));
    case Type::INT16:
      return put(value_at<arrow::Int16Array>(array, row));
    case Type::INT32:
      return put(value_at<arrow::Int32Array>(array, row));
    case Type::INT64:
      return put(value_at<arrow::Int64Array>(array, row));
    case Type::UINT8:
      return put(value_at<arrow::UInt8Array>(array, row));
    case Type::UINT16:
      return put(value_at<arrow::UInt16Array>(array, row));
    case Type::UINT32:
      return put(value_at<arrow::UInt32Array>(array, row));
    case Type::UINT64:
      return put(value_at<arrow::UInt64Array>(array, row));
    default:
      return false;
  }
}

/// False where it is no number with a fraction.
bool append_fraction(const arrow::Array& array, int64_t row, std::string& out) {
  switch (array.type_id()) {
    case Type::HALF_FLOAT: {
      const uint16_t bits = value_at<arrow::HalfFloatArray>(array, row);
      return append_float(arrow::util::Float16::FromBits(bits).ToDouble(), out), true;
    }
    case Type::FLOAT:
      return append_float(double{value_at<arrow::FloatArray>(array, row)}, out), true;
    case Type::DOUBLE:
      return append_float(value_at<arrow::DoubleArray>(array, row), out), true;
    case Type::DECIMAL32:
      return out += static_cast<const arrow::Decimal32Array&>(array).FormatValue(row), true;
    case Type::DECIMAL64:
      return out += static_cast<const arrow::Decimal64Array&>(array).FormatValue(row), true;
    case Type::DECIMAL128:
      return out += static_cast<const arrow::Decimal128Array&>(array).FormatValue(row), true;
    case Type::DECIMAL256:
      return out += static_cast<const arrow::Decimal256Array&>(array).FormatValue(row), true;
    default:
      return false;
  }
}

}  // namespace

std::optional<std::string_view> bytes_at(const arrow::Array& array, int64_t row) {
  switch (array.type_id()) {
    case Type::STRING:
      return view_at<arrow::StringArray>(array, row);
    case Type::LARGE_STRING:
      return view_at<arrow::LargeStringArray>(array, row);
    case Type::STRING_VIEW:
      return view_at<arrow::StringViewArray>(array, row);
    case Type::BINARY:
      return view_at<arrow::BinaryArray>(array, row);
    case Type::LARGE_BINARY:
      return view_at<arrow::LargeBinaryArray>(array, row);
    case Type::BINARY_VIEW:
      return view_at<arrow::BinaryViewArray>(array, row);
    case Type::FIXED_SIZE_BINARY:
      return view_at<arrow::FixedSizeBinaryArray>(array, row);
    default:
      return std::nullopt;
  }
}

void append_text(std::string_view text, std::string& out) { corpora::append_quoted(text, out); }

void append_float(double value, std::string& out) {
  if (!std::isfinite(value)) {
    out += std::isnan(value) ? "NaN" : value < 0 ? "-Infinity" : "Infinity";
    return;
  }
  const double size = std::abs(value);
  const bool plain = size == 0 || (size >= 1e-4 && size < 1e16);
  char digits[40];
  const auto format = plain ? std::chars_format::fixed : std::chars_format::scientific;
  const char* const end = std::to_chars(digits, digits + sizeof digits, value, format).ptr;
  const std::string_view text(digits, static_cast<size_t>(end - digits));
  out += text;
  if (plain && text.find('.') == text.npos) out += ".0";
}

void append_json(std::string_view json, std::string& out) {
  corpora::JsonScanner scanner(json);
  std::string_view value;
  if (!scanner.value(value) || !scanner.expect_end()) {
    out += '!';
    return;
  }
  // Line ends stand between values alone.
  for (const char c : value) out += c == '\n' || c == '\r' ? ' ' : c;
}

void append_uuid(std::string_view bytes, std::string& out) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  out += '"';
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) out += '-';
    const auto byte = static_cast<unsigned char>(bytes[i]);
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
  out += '"';
}

bool append_scalar(const arrow::Array& array, int64_t row, std::string& out) {
  switch (array.type_id()) {
    case Type::BOOL:
      return out += value_at<arrow::BooleanArray>(array, row) ? "true" : "false", true;
    case Type::DATE32:
    case Type::DATE64:
    case Type::TIME32:
    case Type::TIME64:
    case Type::TIMESTAMP:
      return append_moment(array, row, out), true;
    default:
      break;
  }
  if (const auto bytes = bytes_at(array, row)) return append_text(*bytes, out), true;
  return append_integer(array, row, out) || append_fraction(array, row, out);
}

}  // namespace plimsoll::columnar
