// A product of operands in FP8 or FP4, from its types: what both ways to compute it go by.
#pragma once

#include "backends/cuda/kernels/operands.h"
#include "numerics/blocks.h"

namespace plimsoll::cuda {

/// c [m, n] = sum over k of a b, see op scaled_matmul. An operand that lies `across` is stored [k, …].
struct ScaledProduct {
  numerics::Scheme a, b;
  bool a_across, b_across;
  int64_t m, n, k;
  explicit ScaledProduct(const ir::OpTypes& types) : ScaledProduct(types.attrs, types.outputs[0]) {}
  ScaledProduct(const ir::Attrs& attrs, const ir::TensorType& c);
  /// Columns of the result that are computed at once, a multiple of 128 where they are not all.
  [[nodiscard]] int64_t band() const;
  /// Elements of a stored row.
  [[nodiscard]] int64_t a_cols() const { return a_across ? m : k; }
  [[nodiscard]] int64_t b_cols() const { return b_across ? n : k; }
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
  [[nodiscard]] Product product(int64_t m, int64_t n, int64_t k) const;
};

}  // namespace plimsoll::cuda
