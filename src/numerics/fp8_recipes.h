// The recipes of training in FP8 and FP4: in which scheme each operand of a product is held, and what is done
// to it before. The formulas of the schemes themselves are those of blocks.h.
//
//   recipe    inputs and weights                gradients                      scales
//   delayed   e4m3                              e5m2 (hybrid), e4m3            of the tensor, from past steps
//   current   e4m3                              e5m2 (hybrid), e4m3            of the tensor
//   block     fp8-block-1x128, weights 128x128  fp8-block-1x128                powers of two
//   mxfp8     mxfp8                             mxfp8                          powers of two
//   nvfp4     nvfp4, weights nvfp4-16x16        nvfp4, rounded stochastically  of the block and the tensor
//
// Blocks of one row run along the axis that the product sums over, so an operand whose rows run along another
// axis is quantised as its transpose. Source: Transformer Engine's documentation of its recipes; NVIDIA 2025,
// arXiv:2509.25149 (NVFP4).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "numerics/blocks.h"
#include "numerics/convert.h"

namespace plimsoll::numerics {

enum class Fp8Recipe : uint8_t { kDelayed, kCurrent, kBlock, kMxfp8, kNvfp4 };
inline constexpr std::string_view kFp8Recipes[] = {"delayed", "current", "block", "mxfp8", "nvfp4"};
std::string_view name(Fp8Recipe recipe);
std::optional<Fp8Recipe> find_fp8_recipe(std::string_view name);

/// What an operand is to the linear map.
enum class OperandRole : uint8_t { kInput, kWeight, kGradient };

/// How one operand of a product is quantised.
struct OperandForm {
  Scheme scheme = Scheme::kE4m3;
  bool hadamard = false;    ///< each row goes through random_hadamard first
  bool stochastic = false;  ///< codes are rounded stochastically, scales never
  bool operator==(const OperandForm&) const = default;
};

struct Fp8Options {
  Fp8Recipe recipe = Fp8Recipe::kDelayed;
  bool hybrid = true;      ///< gradients of `delayed` and `current` are E5M2
  bool hadamard = true;    ///< of nvfp4
  bool stochastic = true;  ///< of nvfp4
};
/// `across`: for the product that sums over the rows of the operand (the weight's gradient).
OperandForm operand_form(const Fp8Options& options, OperandRole role, bool across);

/// Runs of sixteen, in place: the random Hadamard transform, H16 diag(s) / 4 with the signs s of mask 0xD7E8,
/// rounded to bf16. Orthogonal, and the same on both operands, so their product is what it was.
/// Shapes: whole runs (checked).
inline constexpr int64_t kHadamardRun = 16;
void random_hadamard(std::span<float> x);

/// As quantize of one row, but its codes are rounded stochastically; nvfp4 alone. `random` is of element 0.
void quantize_stochastically(const TensorScale& tensor, std::span<const float> row,
                             std::span<std::byte> codes, std::span<std::byte> scales,
                             const RandomKey& random);

/// A scale that is given, beside a tensor's own largest magnitude. 0, what a state begins with, is 1.
TensorScale given_scale(float amax, float scale);

/// How the scale of `delayed` comes from the history of largest magnitudes, slot 0 of which is this step's.
struct DelayedScaling {
  int64_t margin = 0;  ///< powers of two left free above the largest magnitude
  bool most_recent = false;
};
/// The scale for the next step: largest code 2^-margin / amax, the history's largest or this step's. An amax
/// of 0, and one that is not finite, keeps the scale; NaN in the history is passed over.
/// `history`: slot i at history[i * stride].
float next_delayed_scale(const DelayedScaling& scaling, float largest_code, std::span<const float> history,
                         size_t stride, float scale);
/// Slot i + 1 to slot i, slot 0 to the last, and slot 0 emptied; nothing moves where this step had no amax.
void roll_history(std::span<float> history, size_t stride);

}  // namespace plimsoll::numerics
