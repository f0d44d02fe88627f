// The CUDA backend's description of an op: how its work is queued on a stream, the scratch that it needs, and
// which operands it reads through strides. Each kernels/<x>.cpp lists its own; kernel_list.cpp joins the
// lists. The device's side of it is in kernels/<x>.cu, compiled for the card that is found (module.h).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "backends/cuda/stream.h"
#include "ir/op_def.h"
#include "runtime/tensor_ref.h"

namespace plimsoll::cuda {

using runtime::KernelCall;
using runtime::TensorRef;

/// Queueing allocates nothing on the device and waits for nothing, so that it may be captured. Results are
/// the same in each run on one kind of card: no atomic additions of floating numbers.
struct Kernel {
  std::string_view op;
  Status (*run)(const KernelCall& call, Stream& stream) = nullptr;
  /// Bytes of scratch, a pure function of the types; null: none.
  int64_t (*workspace_bytes)(const ir::OpTypes& types) = nullptr;
  /// Bit i: input i may be a view whose last axis is contiguous and whose other axes collapse to one stride;
  /// of four axes, unless the op is a product or a loss, also one whose last two are contiguous: heads of
  /// tokens.
  uint32_t strided_inputs = 0;
  /// Bit i: input i may be of a block type (ir::is_block).
  uint32_t block_inputs = 0;
  /// Whether it runs with these types, on a card of that compute capability (90; 0: it is not known); null:
  /// with all. Errors: as runtime::Target::accepts.
  Status (*accepts)(const ir::OpTypes& types, int capability) = nullptr;
};

/// All kernels, sorted by op.
std::span<const Kernel> all_kernels();
/// Null where there is none.
const Kernel* find_kernel(std::string_view op);

}  // namespace plimsoll::cuda
