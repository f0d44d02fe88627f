#include "narrow_product.h"

#include <cmath>
#include <initializer_list>
#include <utility>

namespace fake {
namespace {

enum { kSuccess = 0, kInvalidValue = 7, kNotSupported = 15 };  // CUBLAS_STATUS_*

/// Exponent and mantissa of so many bits, with infinities and NaNs as IEEE has them or, of E4M3, a NaN alone.
float small_float(int code, int exponent_bits, int mantissa_bits, bool is_ieee) {
  const int bias = (1 << (exponent_bits - 1)) - 1,
            magnitude = code & ((1 << (exponent_bits + mantissa_bits)) - 1);
  const int exponent = magnitude >> mantissa_bits, mantissa = magnitude & ((1 << mantissa_bits) - 1);
  const float sign = (code >> (exponent_bits + mantissa_bits)) != 0 ? -1.0F : 1.0F;
  if (is_ieee && exponent == (1 << exponent_bits) - 1) return mantissa == 0 ? sign * INFINITY : NAN;
  if (!is_ieee && exponent_bits == 4 && magnitude == 0x7F) return NAN;
  const int whole = exponent == 0 ? mantissa : mantissa + (1 << mantissa_bits);
  return sign * std::ldexp(static_cast<float>(whole), (exponent == 0 ? 1 : exponent) - bias - mantissa_bits);
}

bool modes_go_together(const MatrixProduct& p) {
  const bool fp4 = p.a.type == kE2m1 || p.b.type == kE2m1;
  if (fp4) return p.a.type == p.b.type && p.a_scales.mode == kPer16 && p.b_scales.mode == kPer16;
  if (p.a.type == kE5m2 && p.b.type == kE5m2 && p.a_scales.mode != kPer32) return false;
  if (p.a_scales.mode == kPerTensor || p.a_scales.mode == kPer32) return p.b_scales.mode == p.a_scales.mode;
  const auto of_128 = [](int mode) { return mode == kPer128 || mode == kPerTile; };
  return of_128(p.a_scales.mode) && of_128(p.b_scales.mode) &&
         (p.a_scales.mode == kPer128 || p.b_scales.mode == kPer128);
}

bool is_on_card(int mode, int capability) {
  if (mode == kPerTensor) return capability >= 89;
  return mode == kPer128 || mode == kPerTile ? capability == 90 : capability >= 100;
}

uint64_t bytes(uint64_t elements, int type) {
  return type == kE2m1 ? elements / 2 : elements * bytes_of(type);
}

}  // namespace

bool is_narrow(int type) { return type == kE4m3 || type == kE5m2 || type == kE2m1; }

int check_narrow(const MatrixProduct& p, const uint32_t (&alignments)[4], int capability) {
  if (!is_narrow(p.a.type) || !is_narrow(p.b.type) || !modes_go_together(p)) return kNotSupported;
  if (!is_on_card(p.a_scales.mode, capability)) return kNotSupported;
  if (!p.a_transposed || p.b_transposed || p.rounds_to_tf32) return kNotSupported;  // "TN"
  if (p.d.type != kF32 && p.d.type != kBf16 && p.d.type != kF16) return kNotSupported;
  for (const auto& [matrix, alignment] :
       {std::pair{p.a, alignments[0]}, {p.b, alignments[1]}, {p.d, alignments[3]}})
    if (bytes(matrix.rows, matrix.type) % 16 != 0 ||
        bytes(static_cast<uint64_t>(matrix.pitch), matrix.type) % 16 != 0 || alignment < 16)
      return kNotSupported;
  if (p.d.rows % 4 != 0 || p.d.columns % 4 != 0) return kNotSupported;
  if (p.epilogue != kPlain && (p.epilogue != kBias || p.bias_type == kF32)) return kNotSupported;
  for (const Scales& scales : {p.a_scales, p.b_scales})
    if (scales.mode != kPerTensor &&
        (scales.data == nullptr || reinterpret_cast<uintptr_t>(scales.data) % 16 != 0))
      return kInvalidValue;
  return kSuccess;
}

float narrow_value(const void* data, int type, int64_t i) {
  const auto* const codes = static_cast<const unsigned char*>(data);
  if (type == kE4m3) return small_float(codes[i], 4, 3, false);
  if (type == kE5m2) return small_float(codes[i], 5, 2, true);
  return small_float(codes[i / 2] >> (i % 2 * 4) & 15, 2, 1, false);
}

float scale_of(const Scales& scales, int64_t line, int64_t l, int64_t lines, int64_t k) {
  if (scales.data == nullptr) return 1;
  const auto* const floats = static_cast<const float*>(scales.data);
  const auto* const codes = static_cast<const unsigned char*>(scales.data);
  const auto fours = [](int64_t count) { return (count + 3) / 4 * 4; };
  if (scales.mode == kPerTensor) return floats[0];
  if (scales.mode == kPer128) return floats[l / 128 * lines + line];
  if (scales.mode == kPerTile) return floats[line / 128 * fours((k + 127) / 128) + l / 128];
  const int64_t width = scales.mode == kPer16 ? 16 : 32, block = l / width;
  const int64_t tile = (block / 4 * 4 + line / 128 * fours((k + width - 1) / width)) * 128,
                outer = line % 128;
  const int code = codes[tile + outer % 32 * 16 + outer / 32 * 4 + block % 4];
  return scales.mode == kPer16 ? small_float(code & 0x7F, 4, 3, false) : std::ldexp(1.0F, code - 127);
}

}  // namespace fake
