// Views of operands for kernels: rows, granules of rows, and blocks of work whose grid depends on shapes
// alone.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "backends/cpu/kernel.h"
#include "base/check.h"
#include "base/units.h"
#include "ops/granules.h"

namespace plimsoll::cpu {

using ops::Granules;

/// Elements that a tile of an elementwise kernel works on: large against the cost of claiming it, small
/// against the second-level cache.
inline constexpr int64_t kBlockElements = 16384;

/// Rows of a tensor: row i lies at i * stride, or, where the rows come in groups (the heads of a token in a
/// packed projection), at i / group * group_stride + i % group * stride.
template <typename T>
struct RowsOf {
  T* data = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t stride = 0;        ///< elements between rows
  int64_t group = 0;         ///< rows of a group; 0: all rows have one stride
  int64_t group_stride = 0;  ///< elements between groups
  [[nodiscard]] T* row(int64_t i) const {
    return group == 0 ? data + i * stride : data + i / group * group_stride + i % group * stride;
  }
};

/// `ref` as rows over its last `row_axes` axes, which must be contiguous; the other axes collapse to rows or
/// groups.
template <typename T>
RowsOf<T> rows_of(const TensorRef& ref, int row_axes = 1) {
  const ir::Shape& s = ref.type.shape;
  const auto stride = [&](int axis) { return ref.strides[static_cast<size_t>(axis)]; };
  const int lead = s.rank() - row_axes;
  RowsOf<T> r{.data = ref.as<T>(), .rows = 1, .cols = 1};
  for (int i = s.rank() - 1; i >= lead; --i) {
    PLIMSOLL_CHECK(s.dim(i) == 1 || stride(i) == r.cols, "strided row");
    r.cols *= s.dim(i);
  }
  r.stride = r.cols;
  for (int i = lead - 1; i >= 0; --i) {
    if (s.dim(i) == 1) continue;
    if (r.rows == 1) r.stride = stride(i);
    if (r.group == 0 && stride(i) != r.stride * r.rows) {
      r.group = r.rows;
      r.group_stride = stride(i);
    }
    PLIMSOLL_CHECK(r.group == 0 || stride(i) == r.group_stride * (r.rows / r.group),
                   "leading axes do not collapse");
    r.rows *= s.dim(i);
  }
  return r;
}

/// Rows of elements of whatever dtype, by their address; `cols` in elements.
class RowsOfAny {
 public:
  explicit RowsOfAny(const TensorRef& ref, int row_axes = 1)
      : rows_(rows_of<std::byte>(ref, row_axes)), size_(ir::bits(ref.type.dtype) / 8) {}
  [[nodiscard]] int64_t rows() const { return rows_.rows; }
  [[nodiscard]] int64_t cols() const { return rows_.cols; }
  /// Element `column` of row i.
  [[nodiscard]] void* row(int64_t i, int64_t column = 0) const {
    return rows_.data + (rows_.row(i) - rows_.data + column) * size_;
  }
  [[nodiscard]] int64_t element_bytes() const { return size_; }

 private:
  RowsOf<std::byte> rows_;
  int64_t size_;
};

/// The same where one stride is all that the kernel takes.
template <typename T>
RowsOf<T> matrix_of(const TensorRef& ref, int row_axes = 1) {
  const auto r = rows_of<T>(ref, row_axes);
  PLIMSOLL_CHECK(r.group == 0, "leading axes do not collapse");
  return r;
}

/// Input `i`, or an empty reference where that trailing optional operand is not given.
inline TensorRef input_or_none(const KernelCall& call, size_t i) {
  return i < call.inputs.size() ? call.inputs[i] : TensorRef{};
}

/// body(begin, end) over blocks of [0, count), in parallel where there is more than one.
template <typename Body>
void for_blocks(ThreadPool& pool, int64_t count, int64_t block, Body&& body) {
  pool.run(ceil_div(count, block),
           [&](int64_t tile, int) { body(tile * block, std::min(count, (tile + 1) * block)); });
}

/// Rows that make a block of about kBlockElements.
inline int64_t rows_per_block(int64_t cols) {
  return std::max<int64_t>(1, kBlockElements / std::max<int64_t>(1, cols));
}

/// body(begin, end) over blocks of rows.
template <typename Body>
void for_row_blocks(ThreadPool& pool, int64_t rows, int64_t cols, Body&& body) {
  for_blocks(pool, rows, rows_per_block(cols), body);
}

/// How operands of one shape, each dense or a view, are walked together: in runs that are contiguous in all
/// of them.
template <size_t N>
class Walk {
 public:
  explicit Walk(const std::array<const TensorRef*, N>& refs) {
    total_ = refs[0]->num_elements();
    run_ = total_;
    for (size_t i = 0; i < N; ++i) run_ = std::min(run_, contiguous(*refs[i], sources_[i]));
  }
  [[nodiscard]] int64_t total() const { return total_; }

  /// body(offsets, count) for the runs of elements [begin, end).
  template <typename Body>
  void for_runs(int64_t begin, int64_t end, Body&& body) const {
    while (begin < end) {
      const int64_t count = std::min(end - begin, run_ - begin % run_);
      std::array<int64_t, N> offsets;
      for (size_t i = 0; i < N; ++i)
        offsets[i] = begin / sources_[i].contiguous * sources_[i].stride + begin % sources_[i].contiguous;
      body(offsets, count);
      begin += count;
    }
  }

 private:
  struct Source {
    int64_t contiguous = 1;  ///< elements of a run
    int64_t stride = 0;      ///< between runs
  };

  static int64_t contiguous(const TensorRef& ref, Source& source) {
    const ir::Shape& s = ref.type.shape;
    int axis = s.rank();
    while (axis > 0 &&
           (s.dim(axis - 1) == 1 || ref.strides[static_cast<size_t>(axis - 1)] == source.contiguous))
      source.contiguous *= s.dim(--axis);
    if (axis > 0) source.stride = matrix_of<std::byte>(ref, s.rank() - axis).stride;
    return source.contiguous;
  }

  int64_t total_ = 0;
  int64_t run_ = 1;
  std::array<Source, N> sources_{};
};

}  // namespace plimsoll::cpu
