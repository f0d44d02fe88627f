// The linear layers of a decoding step: few rows of x, so each weight is read once, from where it lies, and
// memory sets the pace. Both layouts are cut into tiles of output features:
//
//   weight [out, in]                         weight [in, out] (Conv1D)
//   ┌──────────────┐                         ┌───┬───┬───┬───┐
//   │ a tile's rows│ dot products with x,    │   │   │   │   │  a tile's columns, down all rows: vectors of
//   ├──────────────┤ some rows side by side  │   │   │   │   │  outputs grow by x[i] * w[i, :]
//   └──────────────┘                         └───┴───┴───┴───┘
//
// Each sum has one order, whatever tile, group of rows and number of rows of x it is computed in. So a row's
// bits depend on that row alone. Weights of 16 bits are widened on their way into registers, so that half the
// bytes cross memory; products and sums are those of f32.
#include "backends/cpu/kernels/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/gemm/linear_few.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
//
#include <algorithm>

#include "backends/cpu/kernels/operands.h"
#include "backends/cpu/kernels/stored-inl.h"
#include "backends/cpu/kernels/vectors-inl.h"
#include "ops/rounding.h"

#ifndef PLIMSOLL_BACKENDS_CPU_KERNELS_LINEAR_FEW_ARGS_
#define PLIMSOLL_BACKENDS_CPU_KERNELS_LINEAR_FEW_ARGS_
namespace plimsoll::cpu {

/// y = x · W^T + bias with W [out, in], or x · W with W [in, out].
struct LinearFew {
  RowsOf<const float> x = {};
  RowsOf<float> y = {};
  const std::byte* weight = nullptr;
  ir::DType dtype = ir::DType::kF32;  ///< of the weight
  int64_t weight_stride = 0;
  const float* bias = nullptr;
};

}  // namespace plimsoll::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using vectors::F32;
using vectors::Full;
using vectors::kWidth;
using vectors::load;
using vectors::Tail;
using vectors::V;

// Rows of x that share the loads of a weight: at most 24 accumulators with AVX-512, else 12.
inline constexpr int kMostRows = kWidth >= 16 ? 8 : 3;
inline constexpr int kBestRows = kWidth >= 16 ? 6 : 3;
// Rows of weights side by side: few streams come fastest from memory; where there are rows of x to share the
// loads with, arithmetic sets the pace, and registers the number.
template <int M>
inline constexpr int kFeatures = M < 3    ? 2
                                 : M <= 6 ? 4
                                          : 3;
// How far ahead weights are asked for. Rows are short and many, and what prefetches in hardware stops at
// pages; measured best between 512 and 1,536 bytes.
inline constexpr int64_t kAhead = 1024;

HWY_INLINE void prefetch(const void* p, int64_t ahead) {
  __builtin_prefetch(static_cast<const char*>(p) + ahead, 0, 3);
}

template <class W>
HWY_INLINE const W* weight_at(const LinearFew& l, int64_t element) {
  return reinterpret_cast<const W*>(l.weight) + element;
}

template <int M, int R, class W, class Part>
HWY_INLINE void multiply_add(const float* const* x, const W* const* w, int64_t i, Part part, V (&sum)[M][R]) {
  V a[R];
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) a[r] = stored::load(w[r] + i, part);
#pragma GCC unroll 8
  for (int m = 0; m < M; ++m) {
    const V b = load(x[m] + i, part);
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) sum[m][r] = hn::MulAdd(a[r], b, sum[m][r]);
  }
}

// Features [f, f + R) of rows [row, row + M).
template <class W, int M, int R>
HWY_INLINE void dot_products(const LinearFew& l, int64_t row, int64_t f) {
  const float* x[M];
  const W* w[R];
  for (int m = 0; m < M; ++m) x[m] = l.x.row(row + m);
  for (int r = 0; r < R; ++r) w[r] = weight_at<W>(l, (f + r) * l.weight_stride);
  V sum[M][R];
#pragma GCC unroll 8
  for (auto& of_row : sum)
#pragma GCC unroll 4
    for (V& s : of_row) s = vectors::zero();
  const int64_t n = l.x.cols;
  // A line of weights is asked for once.
  constexpr int64_t kStep = sizeof(W) == sizeof(float) ? kWidth : 2 * kWidth;
  // Short rows end before that distance, where the next row of this group is being read by then: theirs are
  // the lines of the next group.
  const int64_t row_bytes = l.weight_stride * static_cast<int64_t>(sizeof(W));
  const int64_t ahead = row_bytes >= 2 * kAhead ? kAhead : R * row_bytes;
  int64_t i = 0;
  for (; i + kStep <= n; i += kStep) {
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) prefetch(w[r] + i, ahead);
    multiply_add<M, R>(x, w, i, Full{}, sum);
    if constexpr (kStep > kWidth) multiply_add<M, R>(x, w, i + kWidth, Full{}, sum);
  }
  for (; i + kWidth <= n; i += kWidth) multiply_add<M, R>(x, w, i, Full{}, sum);
  if (i < n) multiply_add<M, R>(x, w, i, Tail{static_cast<size_t>(n - i)}, sum);
#pragma GCC unroll 8
  for (int m = 0; m < M; ++m)
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      const float dot = hn::GetLane(hn::SumOfLanes(F32(), sum[m][r]));
      l.y.row(row + m)[f + r] = l.bias != nullptr ? dot + l.bias[f + r] : dot;
    }
}

template <class W, int M>
HWY_INLINE void rows_of_weights(const LinearFew& l, int64_t row, int64_t begin, int64_t end) {
  int64_t f = begin;
  for (; f + kFeatures<M> <= end; f += kFeatures<M>) dot_products<W, M, kFeatures<M>>(l, row, f);
  for (; f < end; ++f) dot_products<W, M, 1>(l, row, f);
}

// N vectors of outputs, each of them `part`, from column `c` on, of rows [row, row + M).
template <class W, int M, int N, class Part>
HWY_INLINE void scaled_rows(const LinearFew& l, int64_t row, int64_t c, Part part) {
  const float* x[M];
  for (int m = 0; m < M; ++m) x[m] = l.x.row(row + m);
  V sum[M][N];
#pragma GCC unroll 8
  for (auto& of_row : sum)
#pragma GCC unroll 8
    for (V& s : of_row) s = vectors::zero();
  const W* w = weight_at<W>(l, c);
  // Rows are far apart: each line is asked for some rows ahead; measured best between 8 and 32.
  const int64_t ahead = 10 * l.weight_stride;
  for (int64_t i = 0; i < l.x.cols; ++i, w += l.weight_stride) {
    V a[N];
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) a[n] = stored::load(w + n * kWidth, part);
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) __builtin_prefetch(w + ahead + n * kWidth, 0, 3);
#pragma GCC unroll 8
    for (int m = 0; m < M; ++m) {
      const V b = vectors::set(x[m][i]);
#pragma GCC unroll 8
      for (int n = 0; n < N; ++n) sum[m][n] = hn::MulAdd(b, a[n], sum[m][n]);
    }
  }
#pragma GCC unroll 8
  for (int m = 0; m < M; ++m)
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) {
      const int64_t at = c + n * kWidth;
      const V v = l.bias != nullptr ? hn::Add(sum[m][n], load(l.bias + at, part)) : sum[m][n];
      vectors::store(v, l.y.row(row + m) + at, part);
    }
}

template <class W, int M>
HWY_INLINE void columns_of_weights(const LinearFew& l, int64_t row, int64_t begin, int64_t end) {
  constexpr int kVectors = M == 1 ? 8 : 4;  // as many bytes of a row at a time as registers allow
  int64_t c = begin;
  for (; c + kVectors * kWidth <= end; c += kVectors * kWidth) scaled_rows<W, M, kVectors>(l, row, c, Full{});
  for (; c + kWidth <= end; c += kWidth) scaled_rows<W, M, 1>(l, row, c, Full{});
  if (c < end) scaled_rows<W, M, 1>(l, row, c, Tail{static_cast<size_t>(end - c)});
}

template <class W, int M>
HWY_INLINE void tile_of_rows(const LinearFew& l, bool transposed, int64_t row, int64_t begin, int64_t end) {
  if (transposed)
    columns_of_weights<W, M>(l, row, begin, end);
  else
    rows_of_weights<W, M>(l, row, begin, end);
}

template <class W, int M>
HWY_INLINE void tile_of_up_to(const LinearFew& l, bool transposed, int64_t row, int64_t rows, int64_t begin,
                              int64_t end) {
  if constexpr (M > 0) {
    if (rows == M) return tile_of_rows<W, M>(l, transposed, row, begin, end);
    tile_of_up_to<W, M - 1>(l, transposed, row, rows, begin, end);
  }
}

// Output features [begin, end) of all rows, in even groups: one where registers allow, else of the size that
// keeps the multipliers busiest.
void linear_few_tile(const LinearFew& l, bool transposed, int64_t begin, int64_t end) {
  int64_t left = l.x.rows <= kMostRows ? 1 : (l.x.rows + kBestRows - 1) / kBestRows;
  for (int64_t row = 0; left > 0; --left) {
    const int64_t rows = (l.x.rows - row + left - 1) / left;
    stored::with_element(l.dtype, [&](auto element) HWY_ATTR {
      tile_of_up_to<decltype(element), kMostRows>(l, transposed, row, rows, begin, end);
    });
    row += rows;
  }
}

// x as products of `dtype` take it.
void rounded_rows(const RowsOf<const float>& x, ir::DType dtype, float* out) {
  for (int64_t r = 0; r < x.rows; ++r, out += x.cols)
    vectors::for_vectors(x.cols, [&](int64_t i, auto part) HWY_ATTR {
      vectors::store(stored::rounded(F32(), load(x.row(r) + i, part), dtype), out + i, part);
    });
}

}  // namespace
}  // namespace plimsoll::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::cpu {
namespace {

HWY_EXPORT(linear_few_tile);
HWY_EXPORT(rounded_rows);

// Elements of a tile of weights: 128 KiB take several microseconds to come, long against claiming a tile,
// and leave the smallest layers some ten tiles. Rows come in multiples of 2, 3 and 4, of columns 512 bytes of
// a row at least.
int64_t features_per_tile(int64_t in, bool transposed) {
  constexpr int64_t kTileElements = 32 << 10;
  const int64_t unit = transposed ? 128 : 12;
  return std::clamp(kTileElements / in / unit * unit, unit, 16 * unit);
}

/// What x is rounded to before it is multiplied; f32: it is not.
ir::DType rounded_to(const ir::Attrs& attrs) {
  return attrs.find("precision") == nullptr
             ? ir::DType::kF32
             : ops::stored_dtype(*ops::parse_precision(attrs.str("precision")));
}

int64_t linear_few_workspace_bytes(const ir::OpTypes& types, int) {
  return rounded_to(types.attrs) == ir::DType::kF32
             ? 0
             : types.inputs[0].shape.num_elements() * static_cast<int64_t>(sizeof(float));
}

void linear_few(const KernelCall& call, ThreadPool& pool) {
  const bool transposed = call.op->attrs.flag("transposed");
  LinearFew l;
  l.x = matrix_of<const float>(call.inputs[0]);
  l.y = matrix_of<float>(call.outputs[0]);
  l.weight = call.inputs[1].data;
  l.dtype = call.inputs[1].type.dtype;
  l.weight_stride = call.inputs[1].strides[0];
  l.bias = input_or_none(call, 2).as<const float>();
  if (const ir::DType rounded = rounded_to(call.op->attrs); rounded != ir::DType::kF32) {
    PLIMSOLL_CHECK(l.dtype == rounded, "weights of few rows are kept in what multiplies them");
    auto* x = reinterpret_cast<float*>(call.workspace.data());
    HWY_DYNAMIC_DISPATCH(rounded_rows)(l.x, rounded, x);
    l.x = {.data = x, .rows = l.x.rows, .cols = l.x.cols, .stride = l.x.cols};
  }
  const auto tile = HWY_DYNAMIC_DISPATCH(linear_few_tile);
  for_blocks(pool, l.y.cols, features_per_tile(l.x.cols, transposed),
             [&](int64_t begin, int64_t end) { tile(l, transposed, begin, end); });
}

}  // namespace

std::span<const Kernel> linear_few_kernels() {
  static constexpr Kernel kernels[] = {{.op = "linear_few",
                                        .run = linear_few,
                                        .workspace_bytes = linear_few_workspace_bytes,
                                        .strided_inputs = 0b1,
                                        .stored_inputs = 0b10}};
  return kernels;
}

}  // namespace plimsoll::cpu
#endif
