// A product of operands in FP8 or FP4, from its types: what both ways to compute it go by.
#pragma once

#include "backends/cuda/kernels/operands.h"
#include "ops/scaled_operand.h"

namespace plimsoll::cuda {

struct ScaledProduct : ops::ScaledProduct {
  explicit ScaledProduct(const ir::OpTypes& types) : ops::ScaledProduct(types.attrs, types.outputs[0]) {}
  using ops::ScaledProduct::ScaledProduct;
  /// Columns of the result that are computed at once, a multiple of 128 where they are not all.
  [[nodiscard]] int64_t band() const;
};

/// What is left of a product once its operands are numbers or laid out: where it goes, the bias that it adds
/// (as Product::bias), the factor that multiplies it.
struct ScaledTarget {
  void* d = nullptr;
  ir::DType out = ir::DType::kF32;
  bool adds = false;
  TensorRef bias = {};
  const float* factor = nullptr;
  std::byte* workspace = nullptr;
  /// Columns [first, first + columns) of the result, whose operands are yet to be told.
  [[nodiscard]] Product band(const ScaledProduct& p, int64_t first, int64_t columns) const;
};

}  // namespace plimsoll::cuda
