// Ops that quantise what another op computes, so that it is kept nowhere:
//
//   x, weight ─► rms_norm ─► y ─► quantize_operand ─► codes, scales
//             └────────────► rstd                                      ==>  rms_norm_quantize
//
// Ops `rms_norm_quantize`, `add_rms_norm_quantize`, `layer_norm_quantize`, `add_layer_norm_quantize`,
// `swiglu_quantize`, `swiglu_grad_quantize`, `bias_gelu_quantize`, `bias_gelu_grad_quantize`:
// <op>_quantize(operands of op, scales?) {attributes of both} -> results of op without that one, then those
// of quantize_operand, each with the bits of the two ops. A code takes a byte, and a scale of the tensor is
// given. Errors: as the two ops; kInvalidArgument where an activation's matrices are not of one dtype, or its
// vectors not f32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "ir/op_def.h"

namespace plimsoll::ops {

struct FusedQuantize {
  std::string_view op;        ///< "rms_norm_quantize"
  std::string_view computes;  ///< "rms_norm"
  size_t num_inputs;          ///< of `computes`; behind them the scales
  size_t result;              ///< of `computes`: what is quantised
  size_t like = 0;            ///< the operand whose type that has, unless:
  bool halves = false;        ///< it has half the columns
  bool adds = false;          ///< it is of the widest dtype of the first two operands
};
std::span<const FusedQuantize> fused_quantizes();
/// By `op`, which there is.
const FusedQuantize& fused_quantize(std::string_view op);
/// The one that quantises what an op computes; null where there is none.
const FusedQuantize* quantizing(std::string_view computes);

/// The type of what is quantised, from those of the first two operands. Allocates nothing.
ir::TensorType quantized_type(const FusedQuantize& fused, const ir::Attrs& attrs, const ir::TensorType& first,
                              const ir::TensorType& second);

/// Results that are copies: codes, scales, amax where the scheme has a scale of the tensor, those of the
/// transpose.
size_t num_copies(const ir::Attrs& attrs);

}  // namespace plimsoll::ops
