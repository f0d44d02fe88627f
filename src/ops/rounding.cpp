// One rounding for all binary formats: to a multiple of the spacing at the value's magnitude.
#include "ops/rounding.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "numerics/formats.h"

namespace plimsoll::ops {
namespace {

double round_to(double value, numerics::Format format) {
  if (!std::isfinite(value) || value == 0) return value;
  const numerics::FormatInfo& f = numerics::info(format);
  const double spacing = std::max(std::ldexp(1.0, std::ilogb(value) - f.mantissa_bits), f.smallest_subnormal);
  const double nearest = std::nearbyint(value / spacing) * spacing;  // both exact: powers of two
  if (std::abs(nearest) <= f.max) return nearest;
  return std::copysign(std::numeric_limits<double>::infinity(), value);
}

}  // namespace

std::string_view name(Precision precision) {
  static constexpr std::array<std::string_view, 4> kNames = {"f32", "tf32", "bf16", "f16"};
  return kNames[static_cast<size_t>(precision)];
}

std::optional<Precision> parse_precision(std::string_view text) {
  for (const Precision precision : {Precision::kTf32, Precision::kBf16, Precision::kF16})
    if (name(precision) == text) return precision;
  return std::nullopt;
}

Precision precision_of(const ir::Attrs& attrs, ir::DType a, ir::DType b) {
  if (attrs.find("precision") != nullptr) {
    const auto precision = parse_precision(attrs.str("precision"));
    PLIMSOLL_CHECK(precision.has_value(), attrs.str("precision"));
    return *precision;
  }
  if (ir::is_block(b)) b = a;  // its numbers are rounded from f32
  if (a != b || a == ir::DType::kF32) return Precision::kF32;
  return a == ir::DType::kBf16 ? Precision::kBf16 : Precision::kF16;
}

ir::DType stored_dtype(Precision precision) {
  return precision == Precision::kBf16  ? ir::DType::kBf16
         : precision == Precision::kF16 ? ir::DType::kF16
                                        : ir::DType::kF32;
}

double rounded(double value, Precision precision) {
  switch (precision) {
    case Precision::kF32:
      return rounded(value, ir::DType::kF32);
    case Precision::kTf32:
      return round_to(value, numerics::Format::kTf32);
    case Precision::kBf16:
      return round_to(value, numerics::Format::kBf16);
    case Precision::kF16:
      return round_to(value, numerics::Format::kFp16);
  }
  return value;
}

double rounded(double value, ir::DType dtype) {
  switch (dtype) {
    case ir::DType::kF32:
      return static_cast<double>(static_cast<float>(value));
    case ir::DType::kBf16:
      return round_to(value, numerics::Format::kBf16);
    case ir::DType::kF16:
      return round_to(value, numerics::Format::kFp16);
    default:
      return value;
  }
}

double rounded_stochastically(double value, uint16_t bits) {
  const auto nearest = static_cast<float>(value);
  if (!std::isfinite(nearest)) return nearest;
  return std::bit_cast<float>((std::bit_cast<uint32_t>(nearest) + bits) & 0xFFFF0000U);
}

}  // namespace plimsoll::ops
