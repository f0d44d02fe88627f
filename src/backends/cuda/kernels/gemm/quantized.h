// Products with quantized weights: a band of the result's columns at a time is dequantized and multiplied.
#pragma once

#include "backends/cuda/kernels/gemm/coded_weight_args.h"
#include "backends/cuda/kernels/gemm/matrices.h"

namespace plimsoll::cuda {

/// Floats of scratch for the scales of a doubly quantised weight; 0 of any other.
int64_t scales_elements(const ir::TensorType& weight);
/// The weight as kernels read it; scales that are codes themselves are made numbers in `scales` first. Async.
Result<CodedWeight> coded_weight(const TensorRef& weight, float* scales, Stream& stream);

/// Scratch of a product with such a weight.
struct Band {
  int64_t inner = 0, columns = 0;  ///< columns of the result that are computed at once
  ir::DType dtype = ir::DType::kF32;
  Band(const ir::TensorType& weight, bool transposed, Precision precision);
  [[nodiscard]] int64_t bytes() const { return inner * columns * ir::bits(dtype) / 8; }
};

/// d = x weight + bias, or d + x weight where it `adds`; x is rounded already, d and bias as multiply() has
/// them. `transposed`: weight is [in, out]. `numbers`: Band::bytes(), `scales`: scales_elements(), `product`:
/// what multiply() asks for.
struct QuantizedProduct {
  Matrix x, d;
  TensorRef weight, bias = {};
  bool transposed = false, adds = false;
  Precision precision = Precision::kF32;
  std::byte *numbers = nullptr, *product = nullptr;
  float* scales = nullptr;
};
Status multiply_quantized(const QuantizedProduct& p, Stream& stream);

}  // namespace plimsoll::cuda
