// Rounding to the formats that values are stored and multiplied in, for references in double precision.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "ir/attrs.h"
#include "ir/dtype.h"

namespace plimsoll::ops {

/// What the operands of a matrix product are rounded to before they are multiplied; sums are f32 in any case.
/// tf32: f32's exponent with 10 bits of mantissa.
enum class Precision { kF32, kTf32, kBf16, kF16 };

/// "f32", "tf32", "bf16", "f16".
std::string_view name(Precision precision);
/// Attribute `precision` of ops with products, which those of f32 do not have. Nothing for any other text.
std::optional<Precision> parse_precision(std::string_view text);
/// What a product's operands, of dtypes a and b, are rounded to: that attribute, which inference has checked;
/// without it as they are stored.
Precision precision_of(const ir::Attrs& attrs, ir::DType a, ir::DType b);
/// What results of that precision are stored in.
ir::DType stored_dtype(Precision precision);

/// To nearest, ties to even, in one rounding; beyond the range infinite. NaN and infinities are kept.
double rounded(double value, Precision precision);
/// The same for a stored value: f32, bf16 and f16; others as they are.
double rounded(double value, ir::DType dtype);
/// f32's nearest value as bf16: up with the probability of the part cut off, which 16 random bits give
/// exactly. NaN and infinities are kept.
double rounded_stochastically(double value, uint16_t bits);

}  // namespace plimsoll::ops
