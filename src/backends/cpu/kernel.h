// The CPU backend's description of an op: its kernel, the scratch that it needs, and which operands it reads
// through strides. Each kernels/<x>.cpp lists its own; kernel_list.cpp joins the lists.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "backends/cpu/thread_pool.h"
#include "ir/op_def.h"
#include "runtime/tensor_ref.h"

namespace plimsoll::cpu {

using runtime::KernelCall;
using runtime::TensorRef;

/// A kernel allocates nothing, and its bits do not depend on the number of threads.
struct Kernel {
  std::string_view op;
  void (*run)(const KernelCall& call, ThreadPool& pool) = nullptr;
  /// Bytes of scratch, a pure function of the types and the number of threads; null: none.
  int64_t (*workspace_bytes)(const ir::OpTypes& types, int num_threads) = nullptr;
  /// Bit i: input i may be a view whose last axis is contiguous and whose other axes collapse to one stride.
  uint32_t strided_inputs = 0;
  /// Takes bf16 and f16 operands as they are stored, in any mixture. What a kernel does not take comes as f32
  /// (widened.h).
  bool stored_dtypes = false;
  /// Bit i: input or output i may be bf16 or f16, all of these being of one dtype.
  uint32_t stored_inputs = 0, stored_outputs = 0;
};

/// All kernels, sorted by op.
std::span<const Kernel> all_kernels();
/// Null where there is none.
const Kernel* find_kernel(std::string_view op);
/// Checked to exist: planning has asked Target::accepts.
const Kernel& kernel_of(const ir::Op& op);

}  // namespace plimsoll::cpu
