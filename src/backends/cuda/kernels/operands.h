// Views of operands for kernel launchers: rows, granules of rows, scratch, grids that depend on shapes alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "backends/cuda/kernel.h"
#include "base/units.h"
#include "ops/granules.h"

namespace plimsoll::cuda {

inline TensorRef input_or_none(const KernelCall& call, size_t i) {
  return i < call.inputs.size() ? call.inputs[i] : TensorRef{};
}
inline Operand input_operand(const KernelCall& call, size_t i) { return operand(input_or_none(call, i)); }
template <typename T>
T* data_or_null(const TensorRef& ref) {
  return reinterpret_cast<T*>(ref.data);
}

/// Elements from a row to the next, rows over the last axis. The other axes collapse to one stride; of heads
/// of tokens they need not (norm/row_strides.h).
inline int64_t row_stride(const TensorRef& ref) {
  const ir::Shape& shape = ref.type.shape;
  for (int axis = shape.rank() - 2; axis >= 0; --axis)
    if (shape.dim(axis) != 1) return ref.strides[static_cast<size_t>(axis)];
  return shape.dim(-1);
}

/// Whether a kernel for heads of up to `most` elements takes these. As Kernel::accepts.
Status accepts_head(int64_t head_dim, int64_t most, std::string_view what);

inline Error cannot(const KernelCall& call, const std::string& what) {
  return {ErrorCode::kInvalidArgument, std::string(call.op->def->name) + " on cuda: " + what};
}

/// Of blocks that take elements one after the other, kEach by each thread.
inline constexpr uint32_t kThreads = 256;

/// Blocks of a grid's x, each for `each` of `count`.
inline Dim blocks(int64_t count, int64_t each) {
  return {static_cast<uint32_t>(std::max<int64_t>(1, ceil_div(count, each)))};
}

using ops::Granules;

static_assert(kGranuleRows == ops::kGranule);
inline DeviceGranules device_granules(const Granules& g) { return {g.segment(), g.per_segment()}; }

inline constexpr int64_t kScratchAlignment = 256;
/// A workspace cut into pieces, each aligned to kScratchAlignment. Without memory it counts bytes.
class Scratch {
 public:
  Scratch() = default;
  explicit Scratch(const KernelCall& call) : Scratch(call.workspace.data()) {}
  explicit Scratch(const std::byte* memory) : base_(reinterpret_cast<uintptr_t>(memory)) {}
  template <typename T>
  T* take(int64_t count) {
    const uintptr_t at = (base_ + kScratchAlignment - 1) / kScratchAlignment * kScratchAlignment + used_;
    used_ += static_cast<uintptr_t>(round_up(count * static_cast<int64_t>(sizeof(T)), kScratchAlignment));
    return reinterpret_cast<T*>(at);
  }
  [[nodiscard]] int64_t bytes() const {
    return used_ == 0 ? 0 : static_cast<int64_t>(used_) + kScratchAlignment;
  }

 private:
  uintptr_t base_ = 0, used_ = 0;
};

}  // namespace plimsoll::cuda
