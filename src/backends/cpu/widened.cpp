// Scratch in this order: the operand references that the kernel sees, widened operands and results, what the
// kernel itself wants.
#include "backends/cpu/widened.h"

#include <new>

#include "backends/cpu/kernels/elementwise/cast.h"
#include "base/check.h"
#include "base/units.h"

namespace plimsoll::cpu {
namespace {

bool is_half_precision(const ir::TensorType& type) {
  return type.shape.rank() > 0 && ir::is_half_precision(type.dtype);
}

ir::TensorType widened(ir::TensorType type) {
  if (is_half_precision(type)) type.dtype = ir::DType::kF32;
  return type;
}

int64_t scratch_bytes(const ir::TensorType& type) {
  return is_half_precision(type) ? round_up(widened(type).bytes().count, runtime::kAlignment) : 0;
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

/// Which operands the kernel does not take as they are: short ones that it does not list, and all short ones
/// where those that it lists are of several dtypes.
class Widening {
 public:
  /// Types or references.
  template <class Operands>
  Widening(const Kernel& kernel, const Operands& inputs, const Operands& outputs) : kernel_(kernel) {
    if (kernel.stored_dtypes) return;
    ir::DType common = ir::DType::kNf4;  // of those that may be short; none seen yet
    const auto look = [&](const Operands& operands, uint32_t may) {
      for (size_t i = 0; i < operands.size(); ++i) {
        const ir::TensorType& type = type_of(operands[i]);
        const bool is_listed = listed(may, i) && type.shape.rank() > 0;
        any_ = any_ || (is_half_precision(type) && !is_listed);
        if (!is_listed) continue;
        mixed_ = mixed_ || (common != ir::DType::kNf4 && common != type.dtype);
        common = type.dtype;
      }
    };
    look(inputs, kernel.stored_inputs);
    look(outputs, kernel.stored_outputs);
  }
  [[nodiscard]] bool any() const { return any_ || mixed_; }
  [[nodiscard]] bool input(size_t i, const ir::TensorType& type) const {
    return is_half_precision(type) && (mixed_ || !listed(kernel_.stored_inputs, i));
  }
  [[nodiscard]] bool output(size_t i, const ir::TensorType& type) const {
    return is_half_precision(type) && (mixed_ || !listed(kernel_.stored_outputs, i));
  }

 private:
  static bool listed(uint32_t may, size_t i) { return i < 32 && (may >> i & 1U) != 0; }
  const Kernel& kernel_;
  bool any_ = false, mixed_ = false;
};

/// A dense f32 tensor in scratch for `ref`.
TensorRef wide(const TensorRef& ref, Scratch& scratch) {
  TensorRef wide{scratch.take(scratch_bytes(ref.type)), widened(ref.type), {}};
  wide.strides = ir::dense_strides(wide.type.shape);
  return wide;
}

void run_widened(const Kernel& kernel, const Widening& widening, const KernelCall& call, ThreadPool& pool) {
  const size_t inputs = call.inputs.size(), operands = inputs + call.outputs.size();
  Scratch scratch(call.workspace);
  auto* refs = reinterpret_cast<TensorRef*>(scratch.take(reference_bytes(operands)));
  for (size_t i = 0; i < operands; ++i) {
    const TensorRef& given = i < inputs ? call.inputs[i] : call.outputs[i - inputs];
    const bool widens =
        given && (i < inputs ? widening.input(i, given.type) : widening.output(i - inputs, given.type));
    new (refs + i) TensorRef(widens ? wide(given, scratch) : given);
    if (widens && i < inputs) cast(given, refs[i], pool);
  }
  const std::span<const TensorRef> all(refs, operands);
  kernel.run({call.op, all.first(inputs), all.subspan(inputs), scratch.rest()}, pool);
  for (size_t o = 0; o < call.outputs.size(); ++o)
    if (all[inputs + o].data != call.outputs[o].data) cast(all[inputs + o], call.outputs[o], pool);
}

}  // namespace

int64_t kernel_workspace_bytes(const Kernel& kernel, const ir::OpTypes& types, int num_threads) {
  const Widening widening(kernel, types.inputs, types.outputs);
  if (!widening.any()) return own_bytes(kernel, types, num_threads);
  int64_t bytes = reference_bytes(types.inputs.size() + types.outputs.size());
  ir::OpTypes wide{types.op, types.inputs, types.outputs, types.attrs};
  const auto widen = [&](ir::TensorType& type) {
    bytes += scratch_bytes(type);
    type = widened(type);
  };
  for (size_t i = 0; i < wide.inputs.size(); ++i)
    if (widening.input(i, wide.inputs[i])) widen(wide.inputs[i]);
  for (size_t i = 0; i < wide.outputs.size(); ++i)
    if (widening.output(i, wide.outputs[i])) widen(wide.outputs[i]);
  return bytes + round_up(own_bytes(kernel, wide, num_threads), runtime::kAlignment);
}

void run_kernel(const Kernel& kernel, const KernelCall& call, ThreadPool& pool) {
  const Widening widening(kernel, call.inputs, call.outputs);
  widening.any() ? run_widened(kernel, widening, call, pool) : kernel.run(call, pool);
}

}  // namespace plimsoll::cpu
