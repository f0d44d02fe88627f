// Scratch layout of bf16 attention, and its operands as lines to be packed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/kernels/attention/attention_bf16.h"
#include "backends/cpu/kernels/gemm/gemm_bf16.h"

namespace plimsoll::cpu::bf16 {

/// Hands out memory from its begin on, in whole cache lines; from null to know how much it takes.
class Carver {
 public:
  explicit Carver(std::byte* memory) : memory_(memory) {}
  template <typename T>
  T* take(int64_t count) {
    const int64_t at = taken_;
    taken_ += round_up(count * static_cast<int64_t>(sizeof(T)), 64);
    return memory_ == nullptr ? nullptr : reinterpret_cast<T*>(memory_ + at);
  }
  [[nodiscard]] int64_t taken() const { return taken_; }

 private:
  std::byte* memory_;
  int64_t taken_ = 0;
};

/// The rows of a head as lines, whose k are its features.
inline Lines lines_of(const Bf16* rows, int64_t stride) {
  return {reinterpret_cast<const std::byte*>(rows), 1, stride, ir::DType::kBf16};
}
/// The features of a head as lines, whose k are its rows.
inline Lines features_of(const Bf16* rows, int64_t stride) {
  return {reinterpret_cast<const std::byte*>(rows), stride, 1, ir::DType::kBf16};
}

/// Changes the sign of the bf16 in `bytes` bytes.
inline void negate(std::byte* panel, int64_t bytes) {
  auto* bits = reinterpret_cast<Bf16*>(panel);
  for (int64_t i = 0; i < bytes / 2; ++i) bits[i] = static_cast<Bf16>(bits[i] ^ 0x8000u);
}

}  // namespace plimsoll::cpu::bf16
