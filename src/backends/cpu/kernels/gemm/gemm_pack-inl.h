// Packing: what the micro-kernel reads lies in the order in which it reads it. Both operands are cut into
// panels, kRows rows of A and kColumns columns of B (the last one of B: whole vectors); for each k a panel
// holds their elements side by side, zeros beyond the edge. For packing, B is what it is and A is its own
// transpose: "lines" below are rows of A or columns of B.
#include "backends/cpu/kernels/gemm/gemm_convert-inl.h"
#include "backends/cpu/kernels/gemm/gemm_simd-inl.h"

#if defined(PLIMSOLL_GEMM_PACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_GEMM_PACK_INL_H_
#undef PLIMSOLL_GEMM_PACK_INL_H_
#else
#define PLIMSOLL_GEMM_PACK_INL_H_
#endif

#include <algorithm>

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu {
namespace HWY_NAMESPACE {

// An operand as packing sees it: element (p, line) at data[p * k_stride + line * line_stride].
struct Lines {
  const float* data;
  int64_t k_stride, line_stride;
};

// kVector: the lanes moved at once; kPanel: lines per panel, a multiple of it.
template <int kVector, int kPanel>
struct Packer {
  static constexpr int64_t kWidth = kPanel;
  // Where a panel's k is less than a cache line, several of them at a time fill whole ones: written one k at
  // a time, the lines of many panels, far apart, had left the first-level cache half full.
  static constexpr int64_t kSweep = kPanel * sizeof(float) < 64 ? 8 : 1;

  static int64_t width(int64_t lines) {
    return lines >= kPanel ? kPanel : (lines + kVector - 1) / kVector * kVector;
  }

  // Any strides, lines [j0, j1) and k [p0, p1) of a panel, zeros for the lines that are missing.
  static void strided(const Lines& x, int64_t p0, int64_t p1, int64_t j0, int64_t j1, int64_t lines,
                      int64_t w, float* to) {
    for (int64_t p = p0; p < p1; ++p)
      for (int64_t j = j0; j < j1; ++j)
        to[p * w + j] = j < lines ? x.data[p * x.k_stride + j * x.line_stride] : 0.0f;
  }

  // Lines side by side in memory: kSweep of k are read in one sweep across the panels.
  static void sweep(const Lines& x, int64_t p0, int64_t p1, int64_t kc, int64_t lines, float* to) {
    const int64_t whole = lines / kPanel * kPanel, rest = lines - whole, w = width(rest);
    for (int64_t p = p0; p < p1; p += kSweep) {
      const float* from = x.data + p * x.k_stride;
      float* at = to + p * kPanel;
      const int64_t depth = std::min(kSweep, p1 - p);
      for (int64_t j = 0; j < whole; j += kPanel, at += kc * kPanel)
        for (int64_t q = 0; q < depth; ++q)
#pragma GCC unroll 4
          for (int v = 0; v < kPanel; v += kVector)
            copy<kVector>(from + q * x.k_stride + j + v, at + q * kPanel + v);
    }
    if (rest > 0) strided({x.data + whole, x.k_stride, 1}, p0, p1, 0, w, rest, w, to + whole * kc);
  }

  // Each line contiguous: transposed, four k by kVector lines at a time.
  static HWY_INLINE void transpose(const Lines& x, int64_t kc, int64_t lines, int64_t w, float* to) {
    const int64_t whole_k = kc / 4 * 4, whole = lines / kVector * kVector;
    for (int64_t j = 0; j < whole; j += kVector) {
      const float* from = x.data + j * x.line_stride;
      float* at = to + j;
      for (int64_t p = 0; p < whole_k; p += 4, at += 4 * w) {
        // Four cache lines ahead: with this many streams the hardware's own prefetching comes late.
        if (p % 16 == 0)
          for (int64_t r = 0; r < kVector; ++r) __builtin_prefetch(from + r * x.line_stride + p + 64);
        transpose4<kVector>(SpacedRows{from + p, x.line_stride}, at, w);
      }
    }
    strided(x, whole_k, kc, 0, whole, lines, w, to);
    strided(x, 0, kc, whole, w, lines, w, to);
  }

  // The same of a whole panel, of which each line lies where it lies.
  static HWY_INLINE void transpose_lines(const float* const* lines, int64_t count, float* to) {
    const int64_t whole = count / 4 * 4;
    for (int64_t p = 0; p < whole; p += 4)
#pragma GCC unroll 4
      for (int v = 0; v < kPanel; v += kVector)
        transpose4<kVector>(ScatteredRows{lines + v, p}, to + p * kPanel + v, kPanel);
    for (int64_t p = whole; p < count; ++p)
      for (int j = 0; j < kPanel; ++j) to[p * kPanel + j] = lines[j][p];
  }

  // Packs `lines` of a granule of kc; where lines lie side by side only k in [p0, p1).
  static void pack(const Lines& x, int64_t p0, int64_t p1, int64_t kc, int64_t lines, float* to) {
    if (x.line_stride == 1) return sweep(x, p0, p1, kc, lines, to);
    for (int64_t j = 0; j < lines; j += kPanel) {
      const int64_t here = std::min<int64_t>(kPanel, lines - j), w = width(here);
      const Lines panel{x.data + j * x.line_stride, x.k_stride, x.line_stride};
      if (x.k_stride == 1 && w == kPanel)
        transpose(panel, kc, here, kPanel, to + j * kc);
      else if (x.k_stride == 1)
        transpose(panel, kc, here, w, to + j * kc);
      else
        strided(panel, 0, kc, 0, w, here, w, to + j * kc);
    }
  }
};

// An operand that is not plain f32 or is to be rounded: converted through a piece of the first-level cache.
struct AnyLines {
  const std::byte* data;
  int64_t k_stride, line_stride;
  ir::DType dtype;
  Precision precision;

  [[nodiscard]] bool plain() const { return dtype == ir::DType::kF32 && precision == Precision::kF32; }
  [[nodiscard]] int64_t size() const { return dtype == ir::DType::kF32 ? 4 : 2; }
  [[nodiscard]] const std::byte* at(int64_t k, int64_t line) const {
    return data + (k * k_stride + line * line_stride) * size();
  }
};

template <typename P>
struct ConvertingPacker {
  static constexpr int64_t kDepth = 64, kLines = 96;

  // Lines side by side: rows of kLines, whole panels but for the last ones.
  static void across(const AnyLines& x, int64_t p0, int64_t p1, int64_t kc, int64_t lines, float* to) {
    static_assert(kLines % P::kWidth == 0);
    alignas(64) float rows[kDepth / 2 * kLines];
    for (int64_t p = p0; p < p1; p += kDepth / 2)
      for (int64_t j = 0; j < lines; j += kLines) {
        const int64_t depth = std::min(kDepth / 2, p1 - p), here = std::min(kLines, lines - j);
        for (int64_t q = 0; q < depth; ++q)
          convert(x.at(p + q, j), x.dtype, x.precision, rows + q * kLines, here);
        const int64_t rest = here % P::kWidth, whole = here - rest;
        float* panel = to + j * kc;
        P::sweep({rows, kLines, 1}, 0, depth, kc, whole, panel + p * P::kWidth);
        P::sweep({rows + whole, kLines, 1}, 0, depth, kc, rest, panel + whole * kc + p * P::width(rest));
      }
  }

  // `count` k of one line, wherever they are.
  static void line(const AnyLines& x, int64_t p, int64_t j, int64_t count, float* to) {
    if (x.k_stride == 1) return convert(x.at(p, j), x.dtype, x.precision, to, count);
    alignas(64) std::byte gathered[kDepth * 4];
    for (int64_t q = 0; q < count; ++q)
      std::memcpy(gathered + q * x.size(), x.at(p + q, j), static_cast<size_t>(x.size()));
    convert(gathered, x.dtype, x.precision, to, count);
  }

  static void along(const AnyLines& x, int64_t kc, int64_t lines, float* to) {
    alignas(64) float rows[P::kWidth * kDepth];
    for (int64_t j = 0; j < lines; j += P::kWidth) {
      const int64_t here = std::min<int64_t>(P::kWidth, lines - j), w = P::width(here);
      for (int64_t p = 0; p < kc; p += kDepth) {
        const int64_t depth = std::min(kDepth, kc - p);
        for (int64_t i = 0; i < here; ++i) line(x, p, j + i, depth, rows + i * kDepth);
        P::transpose({rows, 1, kDepth}, depth, here, w, to + j * kc + p * w);
      }
    }
  }

  static void pack(const AnyLines& x, int64_t p0, int64_t p1, int64_t kc, int64_t lines, float* to) {
    if (x.plain())
      P::pack({reinterpret_cast<const float*>(x.data), x.k_stride, x.line_stride}, p0, p1, kc, lines, to);
    else
      x.line_stride == 1 ? across(x, p0, p1, kc, lines, to) : along(x, kc, lines, to);
  }
};

using PackerOfA = Packer<kRows, kRows>;
using PackerOfB = Packer<kLanes, kColumns>;

}  // namespace HWY_NAMESPACE
}  // namespace plimsoll::cpu
HWY_AFTER_NAMESPACE();

#endif
