// Formats whose numbers share scales: FP8 by tensor and by block, MXFP8, NVFP4, NF4, int8 by block; and, so
// that all can be compared, the 16-bit formats and tf32, which have no scale.
//
// A tensor is matrices of rows x columns, its last two axes. Blocks run along the last axis and restart with
// each row (fp8-block-128x128, nvfp4-16x16: tiles that restart with each matrix); one that the shape does
// not fill is smaller. The layouts, `value = code x scale` in each:
//
//   scheme             codes, a row                     scales, a row (tiles: a row of tiles)
//   bf16 fp16 tf32     2, 2, 4 bytes a number           none
//   e4m3 e5m2          a byte a number                  one f32 for the tensor
//   fp8-block-*        a byte, E4M3                     f32 a block, a power of two
//   mxfp8              a byte, E4M3                     E8M0, a byte a block of 32
//   nvfp4              half a byte, E2M1                E4M3, a byte a block of 16, beside the tensor's f32 S
//   nvfp4-16x16        the same                         the same a tile of 16 x 16
//   nf4                half a byte, kNf4Values          f32 a block of 64, its largest magnitude
//   int8-block256      a byte, two's complement / 127   f32 a block of 256, its largest magnitude
//
// Half bytes: the even index in the lower half; each row begins on a byte, an odd one ends with a half of 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "numerics/formats.h"

namespace plimsoll::numerics {

enum class Scheme : uint8_t {
  kBf16,
  kFp16,
  kTf32,
  kE4m3,
  kE5m2,
  kFp8Block1x128,
  kFp8Block128x128,
  kMxfp8,
  kNvfp4,
  kNvfp4Block16x16,
  kNf4,
  kInt8Block256
};

struct SchemeInfo {
  Scheme scheme;
  std::string_view name;
  Format codes;
  int64_t block_rows = 0;  ///< 0: no blocks
  int64_t block_cols = 0;
  Format scales = Format::kFp32;  ///< of blocks, or of the tensor
  bool has_tensor_scale = false;  ///< needs the tensor's largest magnitude beforehand
  std::string_view rule = {};     ///< how scales come about, in a few words
};

std::span<const SchemeInfo> schemes();
const SchemeInfo& info(Scheme scheme);
std::optional<Scheme> find_scheme(std::string_view name);
std::vector<std::string> scheme_names();

/// Bytes of the codes of one row.
int64_t code_row_bytes(Scheme scheme, int64_t cols);
/// Rows and columns of the scales of a matrix; 0 x 0 without blocks.
int64_t scale_rows(Scheme scheme, int64_t rows);
int64_t scale_cols(Scheme scheme, int64_t cols);
int64_t scale_bytes(Scheme scheme);
/// Blocks whose scales are in units of the tensor's.
bool is_nvfp4(Scheme scheme);
/// Bits a number in a large matrix, with its share of the scales.
double bits_per_value(Scheme scheme);

/// The largest magnitude; NaN is passed over, infinity is not; 0 of nothing.
float largest_magnitude(std::span<const float> x);

/// What schemes with a scale for the tensor draw from its largest magnitude. fp8: scale = largest E4M3 or
/// E5M2 / amax, `decode` its inverse; nvfp4: scale = S = 2688 / amax. An amax of 0 or infinity gives 1, a
/// scale beyond f32 its largest number. Source: Transformer Engine's current scaling and NVFP4 recipes.
struct TensorScale {
  float amax = 0;
  float scale = 1;
  float decode = 1;
};
TensorScale tensor_scale(Scheme scheme, float amax);

/// Rounds a matrix [rows, cols] (or whole rows of one, in tiles from their first row on) to nearest even.
/// fp8 saturates, so do 4-bit codes and int8; the 16-bit formats overflow to infinity.
/// Shapes: codes rows * code_row_bytes, scales scale_rows * scale_cols * scale_bytes (both checked).
/// Returns how many finite numbers were beyond the largest code by more than rounding.
/// Source: formulas and their order of operations in docs/formats.md.
int64_t quantize(Scheme scheme, const TensorScale& tensor, std::span<const float> x, int64_t rows,
                 int64_t cols, std::span<std::byte> codes, std::span<std::byte> scales);

/// The numbers that codes and scales stand for, as f32. nvfp4: code x ((scale x amax) x f32(1/2688)).
void dequantize(Scheme scheme, const TensorScale& tensor, std::span<const std::byte> codes,
                std::span<const std::byte> scales, int64_t rows, int64_t cols, std::span<float> x);

}  // namespace plimsoll::numerics
