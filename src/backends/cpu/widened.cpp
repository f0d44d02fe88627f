// Scratch in this order: the operand references that the kernel sees, widened operands and results, what the
// kernel itself wants.
#include "backends/cpu/widened.h"

#include <new>

#include "backends/cpu/kernels/cast.h"
#include "base/check.h"
#include "base/units.h"

namespace plimsoll::cpu {
namespace {

bool is_short(const ir::TensorType& type) { return type.shape.rank() > 0 && ir::is_short(type.dtype); }

ir::TensorType widened(ir::TensorType type) {
  if (is_short(type)) type.dtype = ir::DType::kF32;
  return type;
}

int64_t scratch_bytes(const ir::TensorType& type) {
  return is_short(type) ? round_up(widened(type).bytes().count, runtime::kAlignment) : 0;
}

int64_t reference_bytes(size_t operands) {
  return round_up(static_cast<int64_t>(operands * sizeof(TensorRef)), runtime::kAlignment);
}

int64_t own_bytes(const Kernel& kernel, const ir::OpTypes& types, int num_threads) {
  return kernel.workspace_bytes == nullptr ? 0 : kernel.workspace_bytes(types, num_threads);
}

/// Hands out the workspace from its begin.
class Scratch {
 public:
  explicit Scratch(std::span<std::byte> memory) : left_(memory) {}
  std::byte* take(int64_t bytes) {
    PLIMSOLL_CHECK(bytes <= static_cast<int64_t>(left_.size()), "workspace of a widened kernel");
    std::byte* at = left_.data();
    left_ = left_.subspan(static_cast<size_t>(bytes));
    return at;
  }
  [[nodiscard]] std::span<std::byte> rest() const { return left_; }

 private:
  std::span<std::byte> left_;
};

/// `ref` as the kernel sees it: itself, or a dense f32 tensor in scratch.
TensorRef seen(const TensorRef& ref, Scratch& scratch) {
  if (!ref || !is_short(ref.type)) return ref;
  TensorRef wide{scratch.take(scratch_bytes(ref.type)), widened(ref.type), {}};
  wide.strides = ir::dense_strides(wide.type.shape);
  return wide;
}

void run_widened(const Kernel& kernel, const KernelCall& call, ThreadPool& pool) {
  const size_t inputs = call.inputs.size(), operands = inputs + call.outputs.size();
  Scratch scratch(call.workspace);
  auto* refs = reinterpret_cast<TensorRef*>(scratch.take(reference_bytes(operands)));
  for (size_t i = 0; i < operands; ++i) {
    const TensorRef& given = i < inputs ? call.inputs[i] : call.outputs[i - inputs];
    new (refs + i) TensorRef(seen(given, scratch));
    if (i < inputs && refs[i].data != given.data) cast(given, refs[i], pool);
  }
  const std::span<const TensorRef> all(refs, operands);
  kernel.run({call.op, all.first(inputs), all.subspan(inputs), scratch.rest()}, pool);
  for (size_t o = 0; o < call.outputs.size(); ++o)
    if (all[inputs + o].data != call.outputs[o].data) cast(all[inputs + o], call.outputs[o], pool);
}

const ir::TensorType& type_of(const ir::TensorType& type) { return type; }
const ir::TensorType& type_of(const TensorRef& ref) { return ref.type; }

/// Whether the kernel does not take these operands and results, types or references, as they are.
template <class Operands>
bool beyond(const Kernel& kernel, const Operands& inputs, const Operands& outputs) {
  if (kernel.stored_dtypes) return false;
  ir::DType stored = ir::DType::kNf4;  // of those that may be short; none seen yet
  const auto any_beyond = [&](const Operands& operands, uint32_t may) {
    for (size_t i = 0; i < operands.size(); ++i) {
      const ir::TensorType& type = type_of(operands[i]);
      const bool listed = i < 32 && (may >> i & 1U) != 0 && type.shape.rank() > 0;
      if (!listed && is_short(type)) return true;
      if (!listed) continue;
      if (stored != ir::DType::kNf4 && stored != type.dtype) return true;
      stored = type.dtype;
    }
    return false;
  };
  return any_beyond(inputs, kernel.stored_inputs) || any_beyond(outputs, kernel.stored_outputs);
}

}  // namespace

bool needs_widening(const Kernel& kernel, const ir::OpTypes& types) {
  return beyond(kernel, types.inputs, types.outputs);
}

int64_t kernel_workspace_bytes(const Kernel& kernel, const ir::OpTypes& types, int num_threads) {
  if (!needs_widening(kernel, types)) return own_bytes(kernel, types, num_threads);
  int64_t bytes = reference_bytes(types.inputs.size() + types.outputs.size());
  ir::OpTypes wide{types.op, {}, {}, types.attrs};
  for (const ir::TensorType& t : types.inputs) {
    bytes += scratch_bytes(t);
    wide.inputs.push_back(widened(t));
  }
  for (const ir::TensorType& t : types.outputs) {
    bytes += scratch_bytes(t);
    wide.outputs.push_back(widened(t));
  }
  return bytes + round_up(own_bytes(kernel, wide, num_threads), runtime::kAlignment);
}

void run_kernel(const Kernel& kernel, const KernelCall& call, ThreadPool& pool) {
  beyond(kernel, call.inputs, call.outputs) ? run_widened(kernel, call, pool) : kernel.run(call, pool);
}

}  // namespace plimsoll::cpu
