// Operands of convolutions in the terms of the one product (gemm.h), for all their kernels.
#pragma once

#include "backends/cpu/kernels/gemm/gemm.h"
#include "backends/cpu/kernels/operands.h"
#include "ops/conv2d.h"

namespace plimsoll::cpu {

using ops::ConvExtents;
using ops::ConvOp;

inline ConvExtents extents_of(ConvOp op, const KernelCall& call) {
  return ops::conv_extents(op, call.inputs[0].shape(), call.inputs[1].shape(), call.outputs[0].shape(),
                           call.op->attrs);
}

/// The address of element `i`.
inline std::byte* element_at(const TensorRef& ref, int64_t i) {
  return ref.data + i * (ir::bits(ref.type.dtype) / 8);
}

/// x's patches of a group, a row for each pixel of the result.
inline Patches patches_of(const ConvExtents& e, const TensorRef& x, int64_t group) {
  return {.data = element_at(x, group * e.group_channels()),
          .height = e.height,
          .width = e.width,
          .pixel = e.channels,
          .channels = e.group_channels(),
          .rows = {e.out_height, e.out_width},
          .taps = {e.kernel_height, e.kernel_width},
          .first = {-e.how.padding[0], -e.how.padding[1]},
          .step = e.how.stride,
          .spread = e.how.dilation};
}

/// Those of an operand that is made of patches, whichever side it stands on.
inline ConstMatrix matrix_of_patches(const Patches& patches, ir::DType dtype) {
  return {.dtype = dtype, .patches = &patches};
}

/// A group's channels of all pixels, `channels` of each.
inline ConstMatrix pixels_of(const TensorRef& x, int64_t channels, int64_t first) {
  return {element_at(x, first), channels, 1, x.type.dtype};
}

/// Of an op whose first two operands are multiplied.
inline GemmTypes product_types(const ir::OpTypes& types) {
  return {ops::precision_of(types.attrs, types.inputs[0].dtype, types.inputs[1].dtype),
          types.outputs[0].dtype};
}
inline Precision product_precision(const KernelCall& call) {
  return ops::precision_of(call.op->attrs, call.inputs[0].type.dtype, call.inputs[1].type.dtype);
}

}  // namespace plimsoll::cpu
