// Convolutions and the gradients of their weights: a matrix product for each group, with x's patches gathered
// while they are packed. A kernel of one pixel that goes over every pixel needs no patches.
#include "backends/cpu/kernels/conv/conv2d.h"

#include <cstring>

#include "backends/cpu/kernels/conv/conv_products.h"
#include "backends/cpu/kernels/conv/depthwise.h"

namespace plimsoll::cpu {
namespace {

int64_t conv2d_workspace_bytes(const ir::OpTypes& types, int num_threads) {
  return convolve_bytes(ops::conv_extents(ConvOp::kForward, types), product_types(types), num_threads);
}

void conv2d(const KernelCall& call, ThreadPool& pool) {
  const TensorRef& y = call.outputs[0];
  convolve({.extents = extents_of(ConvOp::kForward, call),
            .x = call.inputs[0],
            .weight = call.inputs[1],
            .bias = input_or_none(call, 2),
            .y = y,
            .precision = product_precision(call),
            .past_caches = beyond_caches(y.num_elements(), y.type.dtype)},
           pool, call.workspace);
}

int64_t conv2d_weight_grad_workspace_bytes(const ir::OpTypes& types, int num_threads) {
  const ConvExtents e = ops::conv_extents(ConvOp::kWeightGrad, types);
  if (sums_directly(e)) return depthwise_weight_bytes(e, num_threads);
  return gemm_workspace_bytes(e.group_outputs(), e.taps(), e.rows(), num_threads, product_types(types));
}

/// dw = dy^T times the patches, over all pixels in granules that restart at each image.
void conv2d_weight_grad(const KernelCall& call, ThreadPool& pool) {
  const TensorRef &x = call.inputs[0], &dy = call.inputs[1], &dw = call.outputs[0];
  const TensorRef acc = input_or_none(call, 2);
  const ConvExtents e = extents_of(ConvOp::kWeightGrad, call);
  if (sums_directly(e))
    return depthwise_weight_grad(e, x, dy, acc, dw, product_precision(call), pool, call.workspace);
  if (acc && acc.data != dw.data) std::memcpy(dw.data, acc.data, static_cast<size_t>(dw.type.bytes().count));
  const int64_t m = e.group_outputs(), n = e.taps();
  for (int64_t group = 0; group < e.how.groups; ++group) {
    const Patches patches = patches_of(e, x, group);
    gemm({.m = m,
          .n = n,
          .k = e.rows(),
          .a = {element_at(dy, group * m), 1, e.out_channels, dy.type.dtype},
          .b = e.is_product() ? pixels_of(x, e.channels, group * e.group_channels())
                              : matrix_of_patches(patches, x.type.dtype),
          .c = element_at(dw, group * m * n),
          .c_row_stride = n,
          .k_segment = e.out_pixels(),
          .accumulate = static_cast<bool>(acc),
          .precision = product_precision(call),
          .c_dtype = dw.type.dtype},
         pool, call.workspace);
  }
}

}  // namespace

int64_t convolve_bytes(const ConvExtents& e, GemmTypes types, int num_threads) {
  if (sums_directly(e)) return depthwise_bytes(e, num_threads);
  return gemm_workspace_bytes(e.rows(), e.group_outputs(), e.taps(), num_threads, types);
}

void convolve(const Convolution& c, ThreadPool& pool, std::span<std::byte> scratch) {
  const ConvExtents& e = c.extents;
  if (sums_directly(e)) return depthwise(e, c.x, c.weight, c.bias, c.y, c.precision, pool, scratch);
  const int64_t n = e.group_outputs(), k = e.taps();
  for (int64_t group = 0; group < e.how.groups; ++group) {
    const Patches patches = patches_of(e, c.x, group);
    gemm({.m = e.rows(),
          .n = n,
          .k = k,
          .a = e.is_product() ? pixels_of(c.x, e.channels, group * e.group_channels())
                              : matrix_of_patches(patches, c.x.type.dtype),
          .b = {element_at(c.weight, group * n * k), 1, k, c.weight.type.dtype},
          .c = element_at(c.y, group * n),
          .c_row_stride = e.out_channels,
          .bias = c.bias ? element_at(c.bias, group * n) : nullptr,
          .precision = c.precision,
          .c_dtype = c.y.type.dtype,
          .bias_dtype = c.bias.type.dtype,
          .past_caches = c.past_caches},
         pool, scratch);
  }
}

std::span<const Kernel> conv2d_kernels() {
  static constexpr Kernel kernels[] = {
      {.op = "conv2d", .run = conv2d, .workspace_bytes = conv2d_workspace_bytes, .stored_dtypes = true},
      {.op = "conv2d_weight_grad",
       .run = conv2d_weight_grad,
       .workspace_bytes = conv2d_weight_grad_workspace_bytes,
       .stored_dtypes = true},
  };
  return kernels;
}

}  // namespace plimsoll::cpu
