// Register-tiled products of the small matrices of attention, their prefetching, and packing. Compiled once
// per target.
#if defined(PLIMSOLL_BACKENDS_CPU_KERNELS_ATTENTION_PRODUCTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_BACKENDS_CPU_KERNELS_ATTENTION_PRODUCTS_INL_H_
#undef PLIMSOLL_BACKENDS_CPU_KERNELS_ATTENTION_PRODUCTS_INL_H_
#else
#define PLIMSOLL_BACKENDS_CPU_KERNELS_ATTENTION_PRODUCTS_INL_H_
#endif

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "backends/cpu/kernels/attention/attention_layout.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu::HWY_NAMESPACE {
namespace attention {
namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::ScalableTag<float>;
using Vector = hn::Vec<Tag>;
inline constexpr int kLanes = static_cast<int>(hn::MaxLanes(Tag()));
// Vectors of one product's row that are held in registers, and rows of them: with 4 x 6 accumulators 4
// operands and a broadcast fill 29 of 32 registers, with 2 x 6 15 of 16. Narrower products take more rows, to
// keep the multipliers fed.
inline constexpr int kVectors = kLanes >= 16 ? 4 : 2;
HWY_INLINE constexpr int max_rows(int vectors) { return std::min(12, (kLanes >= 16 ? 24 : 12) / vectors); }
inline constexpr int kBlockVectors = kBlock / kLanes;

// Lines that a later tile reads or writes, asked for a few at a time between products, so that fetching them
// overlaps with arithmetic: rows of one head are short pieces far apart, which no hardware prefetcher
// follows.
class Prefetcher {
 public:
  // A step comes with each call of multiply_registers, every 400 to 800 cycles; a core has some 16 lines
  // under way.
  Prefetcher(int64_t row_floats, int64_t lines_per_step)
      : row_floats_(row_floats),
        rows_per_step_(std::max<int64_t>(1, lines_per_step * 16 / (row_floats + 16))) {}
  // Rows of one head, behind those already asked for; a no-op while the queue is full.
  void add(const float* first, int64_t stride, int64_t rows) {
    if (rows <= 0 || count_ == kCapacity) return;
    regions_[(begin_ + count_++) % kCapacity] = {first, stride, rows};
  }
  HWY_INLINE void step() {
    for (int n = 0; n < rows_per_step_ && count_ > 0; ++n) {
      Region& region = regions_[begin_];
      for (int64_t i = 0; i < row_floats_; i += 16) __builtin_prefetch(region.next + i, 0, 2);
      __builtin_prefetch(region.next + row_floats_ - 1, 0, 2);
      region.next += region.stride;
      if (--region.rows == 0) begin_ = (begin_ + 1) % kCapacity, --count_;
    }
  }

 private:
  static constexpr int kCapacity = 16;
  struct Region {
    const float* next = nullptr;
    int64_t stride = 0, rows = 0;
  };
  int64_t row_floats_, rows_per_step_;
  int begin_ = 0, count_ = 0;
  Region regions_[kCapacity];
};

// c [MR][NV vectors] = (accumulate ? c : 0) + a [MR][depth] . b [depth][NV vectors]. Element (r, p) of a lies
// at a[r + p * a_stride] if kColumns, else at a[r * a_stride + p].
template <int MR, int NV, bool kColumns>
HWY_NOINLINE void multiply_registers(int64_t depth, const float* HWY_RESTRICT a, int64_t a_stride,
                                     const float* HWY_RESTRICT b, int64_t b_stride, float* HWY_RESTRICT c,
                                     int64_t c_stride, bool accumulate) {
  const Tag d;
  Vector sum[MR][NV];
  const float* row_of_c = c;
  if (accumulate) {
#pragma GCC unroll 12
    for (int r = 0; r < MR; ++r, row_of_c += c_stride)
#pragma GCC unroll 4
      for (int v = 0; v < NV; ++v) sum[r][v] = hn::LoadU(d, row_of_c + v * kLanes);
  } else {
#pragma GCC unroll 12
    for (int r = 0; r < MR; ++r)
#pragma GCC unroll 4
      for (int v = 0; v < NV; ++v) sum[r][v] = hn::Zero(d);
  }
  for (int64_t p = 0; p < depth; ++p) {
    Vector row[NV];
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v) row[v] = hn::LoadU(d, b + v * kLanes);
#pragma GCC unroll 12
    for (int r = 0; r < MR; ++r) {
      const Vector x = hn::Set(d, kColumns ? a[r] : a[r * a_stride]);
#pragma GCC unroll 4
      for (int v = 0; v < NV; ++v) sum[r][v] = hn::MulAdd(x, row[v], sum[r][v]);
    }
    b += b_stride;
    a += kColumns ? a_stride : 1;
  }
#pragma GCC unroll 12
  for (int r = 0; r < MR; ++r, c += c_stride)
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v) hn::StoreU(sum[r][v], d, c + v * kLanes);
}

// Operands of `multiply`: c [rows][vectors] (+)= a [rows][depth] . b [depth][vectors].
struct Product {
  int rows = 0, vectors = 0;
  int64_t depth = 0;
  const float* a = nullptr;
  int64_t a_stride = 0;
  const float* b = nullptr;
  int64_t b_stride = 0;
  float* c = nullptr;
  int64_t c_stride = 0;
  bool accumulate = false;
};

using Kernel = void (*)(int64_t, const float*, int64_t, const float*, int64_t, float*, int64_t, bool);

// multiply_registers<rows, NV, kColumns> for rows from 1 to max_rows(NV).
template <int NV, bool kColumns>
struct Kernels {
  template <int... kRow>
  static constexpr std::array<Kernel, sizeof...(kRow)> make(std::integer_sequence<int, kRow...>) {
    return {multiply_registers<kRow + 1, NV, kColumns>...};
  }
  static constexpr auto kAll = make(std::make_integer_sequence<int, max_rows(NV)>());
};

template <bool kColumns>
HWY_INLINE Kernel kernel_for(int rows, int vectors) {
  const auto row = static_cast<size_t>(rows - 1);
  switch (vectors) {
    case 1:
      return Kernels<1, kColumns>::kAll[row];
    case 2:
      return Kernels<2, kColumns>::kAll[row];
    case 3:
      return Kernels<std::min(3, kVectors), kColumns>::kAll[row];
    default:
      return Kernels<kVectors, kColumns>::kAll[row];
  }
}

template <bool kColumns>
HWY_INLINE void multiply(const Product& p, Prefetcher& prefetcher) {
  const int panels = (p.vectors + kVectors - 1) / kVectors;
  for (int panel = 0, v = 0; panel < panels; ++panel) {
    // Even shares: 5 vectors go as 3 + 2, since a single one leaves the multipliers waiting.
    const int width = (p.vectors - v + panels - panel - 1) / (panels - panel);
    const int groups = (p.rows + max_rows(width) - 1) / max_rows(width);
    for (int group = 0, r = 0; group < groups; ++group) {
      prefetcher.step();
      const int rows = (p.rows - r + groups - group - 1) / (groups - group);
      kernel_for<kColumns>(rows, width)(p.depth, p.a + (kColumns ? r : r * p.a_stride), p.a_stride,
                                        p.b + v * kLanes, p.b_stride, p.c + r * p.c_stride + v * kLanes,
                                        p.c_stride, p.accumulate);
      r += rows;
    }
    v += width;
  }
}

#if HWY_TARGET != HWY_SCALAR
// Blocks of 128 bits of v to `to`, `to` + block_stride, ...; kAdd: added to what is there.
template <bool kAdd, class D>
HWY_INLINE void store_blocks(D d, hn::Vec<D> v, float* to, int64_t block_stride) {
  if constexpr (hn::MaxLanes(D()) == 4) {
    hn::StoreU(kAdd ? hn::Add(v, hn::LoadU(d, to)) : v, d, to);
  } else {
    const hn::Half<D> half;
    store_blocks<kAdd>(half, hn::LowerHalf(half, v), to, block_stride);
    store_blocks<kAdd>(half, hn::UpperHalf(half, v), to + hn::MaxLanes(D()) / 8 * block_stride, block_stride);
  }
}

// to[c][r] = factor * from[r][c] for four rows and kLanes columns.
template <bool kAdd>
HWY_INLINE void transpose_four_rows(const float* from, int64_t from_stride, Vector factor, float* to,
                                    int64_t to_stride) {
  const Tag d;
  const hn::Repartition<double, Tag> pairs;
  const Vector r0 = hn::Mul(factor, hn::LoadU(d, from)),
               r1 = hn::Mul(factor, hn::LoadU(d, from + from_stride));
  const Vector r2 = hn::Mul(factor, hn::LoadU(d, from + 2 * from_stride));
  const Vector r3 = hn::Mul(factor, hn::LoadU(d, from + 3 * from_stride));
  const auto low01 = hn::BitCast(pairs, hn::InterleaveLower(d, r0, r1));
  const auto low23 = hn::BitCast(pairs, hn::InterleaveLower(d, r2, r3));
  const auto high01 = hn::BitCast(pairs, hn::InterleaveUpper(d, r0, r1));
  const auto high23 = hn::BitCast(pairs, hn::InterleaveUpper(d, r2, r3));
  // Each block of 128 bits now becomes part of one column.
  store_blocks<kAdd>(d, hn::BitCast(d, hn::InterleaveLower(pairs, low01, low23)), to, 4 * to_stride);
  store_blocks<kAdd>(d, hn::BitCast(d, hn::InterleaveUpper(pairs, low01, low23)), to + to_stride,
                     4 * to_stride);
  store_blocks<kAdd>(d, hn::BitCast(d, hn::InterleaveLower(pairs, high01, high23)), to + 2 * to_stride,
                     4 * to_stride);
  store_blocks<kAdd>(d, hn::BitCast(d, hn::InterleaveUpper(pairs, high01, high23)), to + 3 * to_stride,
                     4 * to_stride);
}
#endif

// to[c][r] = factor * from[r][c], or that added to what is there.
template <bool kAdd>
HWY_INLINE void transpose(const float* from, int64_t from_stride, int64_t rows, int64_t columns, float factor,
                          float* to, int64_t to_stride) {
  int64_t whole_rows = 0, whole_columns = 0;
#if HWY_TARGET != HWY_SCALAR
  whole_rows = rows / 4 * 4, whole_columns = columns / kLanes * kLanes;
  for (int64_t c = 0; c < whole_columns; c += kLanes)
    for (int64_t r = 0; r < whole_rows; r += 4)
      transpose_four_rows<kAdd>(from + r * from_stride + c, from_stride, hn::Set(Tag(), factor),
                                to + c * to_stride + r, to_stride);
#endif
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = r < whole_rows ? whole_columns : 0; c < columns; ++c) {
      const float value = from[r * from_stride + c] * factor;
      float& p = to[c * to_stride + r];
      p = kAdd ? p + value : value;
    }
}

// Rows of head_dim values, multiplied by `factor`, into `to` [head_dim][kBlock]; the lanes behind them are
// zero.
HWY_INLINE void pack_transposed(const float* from, int64_t from_stride, int rows, int64_t head_dim,
                                float factor, float* to) {
  if (rows < kBlock)
    for (int64_t c = 0; c < head_dim; ++c) std::fill(to + c * kBlock + rows, to + (c + 1) * kBlock, 0.0f);
  transpose<false>(from, from_stride, rows, head_dim, factor, to, kBlock);
}

// to [rows][to_stride] = factor * from [rows][from_stride] for `columns` columns; kAdd: added to what is
// there.
template <bool kAdd>
HWY_INLINE void copy_rows(const float* from, int64_t from_stride, int64_t rows, int64_t columns, float factor,
                          float* to, int64_t to_stride) {
  const Tag d;
  const Vector scale = hn::Set(d, factor);
  const int64_t whole = columns / kLanes * kLanes;
  const auto tail = hn::FirstN(d, static_cast<size_t>(columns - whole));
  for (int64_t r = 0; r < rows; ++r, from += from_stride, to += to_stride) {
    for (int64_t c = 0; c < whole; c += kLanes) {
      const Vector value = hn::Mul(scale, hn::LoadU(d, from + c));
      hn::StoreU(kAdd ? hn::Add(value, hn::LoadU(d, to + c)) : value, d, to + c);
    }
    if (whole == columns) continue;
    const Vector value = hn::Mul(scale, hn::MaskedLoad(tail, d, from + whole));
    hn::BlendedStore(kAdd ? hn::Add(value, hn::MaskedLoad(tail, d, to + whole)) : value, tail, d, to + whole);
  }
}

}  // namespace attention
}  // namespace plimsoll::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard, toggled per target
