// Depthwise convolutions: a result reads one channel of x, too few terms for a matrix product, so it is
// summed directly, with channels side by side in vectors.
#pragma once

#include <span>

#include "backends/cpu/kernels/conv/conv_products.h"

namespace plimsoll::cpu {

/// Whether these kernels are for it.
inline bool sums_directly(const ConvExtents& e) { return e.is_depthwise() && e.group_outputs() == 1; }

/// Bytes of scratch for the result or the gradient of x, and for that of the weight.
int64_t depthwise_bytes(const ConvExtents& e, int num_threads);
int64_t depthwise_weight_bytes(const ConvExtents& e, int num_threads);

/// Sums over taps in order, from zero, then the bias. `bias` may be absent.
void depthwise(const ConvExtents& e, const TensorRef& x, const TensorRef& weight, const TensorRef& bias,
               const TensorRef& y, Precision precision, ThreadPool& pool, std::span<std::byte> scratch);
void depthwise_input_grad(const ConvExtents& e, const TensorRef& dy, const TensorRef& weight,
                          const TensorRef& dx, Precision precision, ThreadPool& pool,
                          std::span<std::byte> scratch);
/// Sums over the pixels of a row, rows of an image, images onto `acc` where it is given: each in order.
void depthwise_weight_grad(const ConvExtents& e, const TensorRef& x, const TensorRef& dy,
                           const TensorRef& acc, const TensorRef& dw, Precision precision, ThreadPool& pool,
                           std::span<std::byte> scratch);

}  // namespace plimsoll::cpu
