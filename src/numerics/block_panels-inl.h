// A matrix by panels, a block's rows by some columns, and the largest magnitude of each of their blocks.
//
// To be included after hwy/foreach_target.h; compiled once per target.
#if defined(PLIMSOLL_NUMERICS_BLOCK_PANELS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_NUMERICS_BLOCK_PANELS_INL_H_
#undef PLIMSOLL_NUMERICS_BLOCK_PANELS_INL_H_
#else
#define PLIMSOLL_NUMERICS_BLOCK_PANELS_INL_H_
#endif

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"
#include "numerics/block_runs-inl.h"
#include "numerics/blocks.h"
#include "numerics/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::numerics::HWY_NAMESPACE {

inline constexpr int64_t kPanelCols = 1024;  // with 128 rows half a mebibyte
inline constexpr size_t kMostBlocks = kPanelCols / 16;

struct Panel {
  size_t rows, cols, width, blocks;  // width: of a block, a power of two
  int shift;                         // log2 of it
  HWY_ALIGN float amax[kMostBlocks] = {};
  HWY_ALIGN float multiplier[kMostBlocks] = {};
  HWY_ALIGN uint32_t code[kMostBlocks] = {};
  bool has_nan = false;

  Panel(size_t panel_rows, size_t panel_cols, size_t block_cols)
      : rows(panel_rows),
        cols(panel_cols),
        width(block_cols),
        blocks((panel_cols + block_cols - 1) / block_cols),
        shift(std::countr_zero(block_cols)) {}
  OfBlocks multipliers() const { return {multiplier, shift}; }
  size_t cols_of(size_t block) const { return std::min(width, cols - block * width); }
};

/// f(panel, row, column, index of its first scale).
template <class F>
HWY_INLINE void for_panels(Scheme scheme, int64_t rows, int64_t cols, F f) {
  const SchemeInfo& s = info(scheme);
  const int64_t height = std::max<int64_t>(1, s.block_rows);
  const int64_t width = s.block_cols == 0 ? kPanelCols : s.block_cols;
  for (int64_t row = 0; row < rows; row += height)
    for (int64_t col = 0; col < cols; col += kPanelCols) {
      Panel panel(static_cast<size_t>(std::min(height, rows - row)),
                  static_cast<size_t>(std::min(kPanelCols, cols - col)), static_cast<size_t>(width));
      f(panel, row, col, row / height * scale_cols(scheme, cols) + col / width);
    }
}

/// That of one block's run joins what is known of the block.
HWY_INLINE void measure_run(Panel& p, size_t block, const float* run, bool ahead) {
  uint32_t bits = largest_bits(run, p.cols_of(block), ahead);
  if (HWY_UNLIKELY(bits > 0x7F800000U)) {
    p.has_nan = true;
    bits = largest_number_bits(run, p.cols_of(block));
  }
  p.amax[block] = std::max(p.amax[block], std::bit_cast<float>(bits));
}

/// Those of the blocks of one row, as many at a time as a vector has lanes. Returns how many.
template <size_t kWidth>
HWY_INLINE size_t measure_row(Panel& p, const float* x) {
  const I32 di;
  size_t b = 0;
  for (; (b + kLanes) * kWidth <= p.cols; b += kLanes) {
    const auto largest = largest_of_blocks<kWidth>(x + b * kWidth);
    if (HWY_LIKELY(hn::AllFalse(di, hn::Gt(largest, hn::Set(di, 0x7F800000)))))
      hn::Store(hn::BitCast(F32(), largest), F32(), p.amax + b);
    else
      for (size_t k = b; k < b + kLanes; ++k) measure_run(p, k, x + k * kWidth, false);
  }
  return b;
}

/// The largest magnitudes of a panel's blocks. x: its first number; rows are `stride` numbers apart.
HWY_INLINE void measure(Panel& p, const float* x, size_t stride, bool ahead) {
  size_t first = 0;
  if (kLanes > 1 && p.rows == 1) {
    if (p.width == 16) first = measure_row<16>(p, x);
    if (p.width == 32) first = measure_row<32>(p, x);
    if (p.width == 64) first = measure_row<64>(p, x);
  }
  for (size_t r = 0; r < p.rows; ++r)
    for (size_t b = first; b < p.blocks; ++b) measure_run(p, b, x + r * stride + b * p.width, ahead);
}

}  // namespace plimsoll::numerics::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard, toggled per target
