// Blocks of AdamW's moments as FP8 numbers, shared by the definition and the kernels of adamw_fp8_lm and
// adamw_coat (ops/tensor_rules.h). All is f32 and to nearest even, so both compute the same codes.
//
//   E4M3       code = e4m3(x · 448 / absmax)                      x = code · (absmax / 448)
//   fp16       code = fp16(x · 2^15 / absmax)                     x = code · (absmax / 2^15)
//   expanded   code = e4m3(± 448 · (|x| / absmax)^power)          x = ± absmax · (|code| / 448)^(1 / power)
//              power = log(448 / 2^-9) / log(absmax / absmin)
//
// The power stretches or shrinks a block's range between its least and its largest magnitude to the range of
// E4M3, so no number that is not 0 becomes 0, unless absmax / absmin is beyond f32. A block of zeros has
// absmax 0 and power 1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace plimsoll::ops {

/// How a block of moments is held.
enum class MomentCode : uint8_t { kE4m3, kFp16, kExpanded };

/// A block's scale; `power` is 1 unless the code is expanded.
struct MomentScale {
  float absmax = 0;
  float power = 1;
};

int64_t moment_code_bytes(MomentCode code);
/// Codes of a block, and its scale. Shapes: codes holds x.size() of moment_code_bytes.
MomentScale encode_moments(MomentCode code, std::span<const float> x, std::span<std::byte> codes);
void decode_moments(MomentCode code, const MomentScale& scale, std::span<const std::byte> codes,
                    std::span<float> x);

/// AdamW's step of a block: m and v become their successors, `gradient` (clipped) what is subtracted from the
/// decayed parameter. `group`: a row of AdamwField.
void adamw_block(const float* group, std::span<float> gradient, std::span<float> m, std::span<float> v);

}  // namespace plimsoll::ops
