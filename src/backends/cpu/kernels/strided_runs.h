// Operands of any strides, those of a stretched or permuted view too: their elements in the order of a shape,
// in runs of one stride.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "backends/cpu/kernels/elementwise/cast.h"
#include "backends/cpu/kernels/operands.h"
#include "base/at.h"

namespace plimsoll::cpu {

/// Where the elements of a shape lie under strides. Neighbouring axes that have one stride are one axis.
class StridedRuns {
 public:
  StridedRuns() = default;
  StridedRuns(const ir::Shape& shape, const ir::Strides& strides) {
    for (int i = 0; i < shape.rank(); ++i) {
      if (shape.dim(i) == 1) continue;
      if (rank_ > 0 && strides_[at(rank_ - 1)] == strides[at(i)] * shape.dim(i)) {
        extents_[at(rank_ - 1)] *= shape.dim(i);
        strides_[at(rank_ - 1)] = strides[at(i)];
      } else {
        extents_[at(rank_)] = shape.dim(i);
        strides_[at(rank_++)] = strides[at(i)];
      }
    }
    if (rank_ == 0) {
      extents_[0] = 1;
      strides_[0] = 1;
      rank_ = 1;
    }
  }

  [[nodiscard]] bool is_dense() const { return rank_ == 1 && strides_[0] == 1; }
  /// Elements of the longest runs, and between neighbours of one.
  [[nodiscard]] int64_t run() const { return extents_[at(rank_ - 1)]; }
  [[nodiscard]] int64_t stride() const { return strides_[at(rank_ - 1)]; }

  /// body(offset, begin, count) for the runs of elements [begin, end): element `begin` lies at `offset`, the
  /// others of the run behind it by `stride()`.
  template <typename Body>
  void for_runs(int64_t begin, int64_t end, Body&& body) const {
    std::array<int64_t, ir::Shape::kMaxRank> index{};
    int64_t offset = 0, rest = begin;
    for (int i = rank_ - 1; i >= 0; --i) {
      index[at(i)] = rest % extents_[at(i)];
      rest /= extents_[at(i)];
      offset += index[at(i)] * strides_[at(i)];
    }
    const int last = rank_ - 1;
    while (begin < end) {
      const int64_t count = std::min(end - begin, extents_[at(last)] - index[at(last)]);
      body(offset, begin, count);
      begin += count;
      index[at(last)] += count;
      offset += count * strides_[at(last)];
      for (int i = last; i > 0 && index[at(i)] == extents_[at(i)]; --i) {
        offset += strides_[at(i - 1)] - extents_[at(i)] * strides_[at(i)];
        index[at(i)] = 0;
        ++index[at(i - 1)];
      }
    }
  }

 private:
  std::array<int64_t, ir::Shape::kMaxRank> extents_{}, strides_{};
  int rank_ = 0;
};

/// `count` elements of f32, bf16, f16 or i32 that lie `stride` apart, as f32.
inline void read_as_f32(const std::byte* data, ir::DType dtype, int64_t stride, int64_t count, float* to) {
  const auto gather = [&](const auto* from, auto as_float) {
    if (stride == 0)
      std::fill_n(to, count, as_float(from[0]));
    else
      for (int64_t i = 0; i < count; ++i) to[i] = as_float(from[i * stride]);
  };
  if (dtype == ir::DType::kF32) {
    const auto* from = reinterpret_cast<const float*>(data);
    return stride == 1 ? (void)std::copy_n(from, count, to) : gather(from, [](float v) { return v; });
  }
  if (dtype == ir::DType::kI32)
    return gather(reinterpret_cast<const int32_t*>(data), [](int32_t v) { return static_cast<float>(v); });
  if (stride == 1) return widen(data, dtype, to, count);
  return gather(reinterpret_cast<const uint16_t*>(data), [dtype](uint16_t bits) {
    float wide = 0;
    widen(&bits, dtype, &wide, 1);
    return wide;
  });
}

/// Bytes of an element.
inline int64_t element_bytes(ir::DType dtype) { return ir::bits(dtype) / 8; }

}  // namespace plimsoll::cpu
