// Attention on the matrix units of sm_80 and later.
#pragma once

#include <string>
#include <vector>

#include "backends/cuda/kernels/attention/attention_args.h"
#include "backends/cuda/stream.h"
#include "ir/op_def.h"

namespace plimsoll::cuda {

/// Whether a card of that capability multiplies all these operands on its matrix units: they are of one
/// 16-bit dtype, or of f32 and to be multiplied in TF32.
bool runs_on_matrix_units(const Attention& a, int capability);

/// Parts into which a group's heads are dealt for dk and dv, so that a card has blocks enough where sequences
/// are few and short. It depends on extents alone: bits are the same on every card.
int num_parts(int64_t batch, int64_t tokens, int64_t heads, int64_t kv_heads);

/// The macros of every form that a module of these kernels is compiled in.
std::vector<std::string> mma_forms();

/// Queue out and lse; dq, dk and dv. `a` is bound, with `delta`, and with `partial` where there are parts.
/// Async.
Status queue_mma_forward(const Attention& a, int64_t batch, Stream& stream);
Status queue_mma_backward(const Attention& a, int64_t batch, Stream& stream);

}  // namespace plimsoll::cuda
