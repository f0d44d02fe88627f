// Operands of any stored dtype for code that computes on f32: what is shorter is widened, and results are
// rounded, a part of a run at a time on the stack, so that nothing goes through memory twice.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "backends/cpu/kernels/elementwise/cast.h"
#include "backends/cpu/kernels/operands.h"

namespace plimsoll::cpu {

/// Elements that are widened at a time: those of three operands stay in the first-level cache.
inline constexpr int64_t kWidenedElements = 1024;

/// A few elements of an operand as f32, where they lie or widened into `room`.
inline float* as_f32(void* stored, ir::DType dtype, int64_t n, float* room) {
  if (dtype == ir::DType::kF32) return static_cast<float*>(stored);
  widen(stored, dtype, room, n);
  return room;
}

/// Inputs and the output of an op whose result has its operands' shape.
template <size_t kInputs>
class StoredRuns {
 public:
  explicit StoredRuns(const KernelCall& call)
      : refs_(first_operands(call)), walk_(pointers(refs_)), part_(walk_.total()) {
    for (const TensorRef& ref : refs_)
      if (ref.type.dtype != ir::DType::kF32) part_ = kWidenedElements;
  }
  StoredRuns(const StoredRuns&) = delete;
  StoredRuns& operator=(const StoredRuns&) = delete;

  [[nodiscard]] int64_t total() const { return walk_.total(); }

  /// run(x..., y, n) in f32 for each part of the elements [begin, end).
  template <class F>
  void for_runs(int64_t begin, int64_t end, F run) const {
    alignas(64) std::array<std::array<float, kWidenedElements>, kInputs + 1> wide;
    walk_.for_runs(begin, end, [&](const auto& at, int64_t count) {
      for (int64_t done = 0; done < count; done += part_) {
        const int64_t n = std::min(part_, count - done);
        std::array<float*, kInputs + 1> x;
        for (size_t i = 0; i <= kInputs; ++i) {
          std::byte* const stored = refs_[i].data + (at[i] + done) * (ir::bits(refs_[i].type.dtype) / 8);
          x[i] = as_f32(stored, refs_[i].type.dtype, i < kInputs ? n : 0, wide[i].data());
        }
        std::apply([&](auto*... operands) { run(operands..., n); }, x);
        const TensorRef& y = refs_[kInputs];
        if (y.type.dtype != ir::DType::kF32)
          round_to(x[kInputs], y.data + (at[kInputs] + done) * (ir::bits(y.type.dtype) / 8), y.type.dtype, n);
      }
    });
  }

 private:
  using Refs = std::array<TensorRef, kInputs + 1>;
  static Refs first_operands(const KernelCall& call) {
    Refs refs;
    std::copy_n(call.inputs.begin(), kInputs, refs.begin());
    refs[kInputs] = call.outputs[0];
    return refs;
  }
  static std::array<const TensorRef*, kInputs + 1> pointers(const Refs& refs) {
    std::array<const TensorRef*, kInputs + 1> pointers;
    for (size_t i = 0; i <= kInputs; ++i) pointers[i] = &refs[i];
    return pointers;
  }

  Refs refs_;
  Walk<kInputs + 1> walk_;
  int64_t part_;  ///< elements of a run that are taken at a time
};

}  // namespace plimsoll::cpu
