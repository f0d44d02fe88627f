// Packing patches (patches.h): as A their rows, as B their columns.
#include "backends/cpu/kernels/gemm/gemm_pack-inl.h"
#include "backends/cpu/kernels/gemm/patches.h"

#if defined(PLIMSOLL_GEMM_PATCHES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_GEMM_PATCHES_INL_H_
#undef PLIMSOLL_GEMM_PATCHES_INL_H_
#else
#define PLIMSOLL_GEMM_PATCHES_INL_H_
#endif

#include <algorithm>

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu {
namespace HWY_NAMESPACE {

// An operand made of patches, as packing sees it.
struct PatchLines {
  const Patches& patches;
  ir::DType dtype;
  Precision precision;

  [[nodiscard]] bool plain() const { return dtype == ir::DType::kF32 && precision == Precision::kF32; }
  [[nodiscard]] int64_t size() const { return dtype == ir::DType::kF32 ? 4 : 2; }
};

template <typename P>
struct PatchPacker {
  static constexpr int64_t kWidth = P::kWidth, kDepth = 64, kLines = 96, kPatchRows = 32;

  // Elements [k, k + count) of a row as f32, at most kLines of them.
  static void convert_taps(const PatchLines& x, const PatchCorner& corner, int64_t k, int64_t count,
                           float* to) {
    if (x.plain()) return copy_taps(x.patches, corner, k, count, 4, reinterpret_cast<std::byte*>(to));
    alignas(64) std::byte stored[kLines * 4];
    copy_taps(x.patches, corner, k, count, x.size(), stored);
    convert(stored, x.dtype, x.precision, to, count);
  }

  // Through a piece of the first-level cache: what is not plain f32, and taps of few channels.
  static void gathered(const PatchLines& x, const PatchCorner* corners, int64_t lines, int64_t begin,
                       int64_t end, int64_t w, float* to) {
    alignas(64) float rows[kWidth * kDepth];
    for (int64_t k = begin; k < end; k += kDepth) {
      const int64_t depth = std::min(kDepth, end - k);
      for (int64_t i = 0; i < lines; ++i) convert_taps(x, corners[i], k, depth, rows + i * kDepth);
      P::transpose({rows, 1, kDepth}, depth, lines, w, to + (k - begin) * w);
    }
  }

  // A whole panel where it lies, tap by tap; a pixel outside the image is read from zeros.
  static void in_place(const Patches& x, const PatchCorner* corners, int64_t begin, int64_t end, float* to) {
    static constexpr int64_t kMost = 256;
    alignas(64) static constexpr float kZeros[kMost] = {};
    const auto* data = reinterpret_cast<const float*>(x.data);
    for (int64_t k = begin; k < end;) {
      const PatchTap tap(x, k);
      const int64_t count = std::min({kMost, x.channels - tap.channel, end - k});
      const float* lines[kWidth];
      for (int64_t i = 0; i < kWidth; ++i)
        lines[i] = tap.is_inside(x, corners[i]) ? data + corners[i].offset + tap.offset : kZeros;
      P::transpose_lines(lines, count, to);
      k += count;
      to += count * kWidth;
    }
  }

  // Rows [line, line + lines), k in [begin, end).
  static void along(const PatchLines& x, int64_t line, int64_t lines, int64_t begin, int64_t end, float* to) {
    constexpr int64_t kFewChannels = 16;
    const bool can_stay = x.plain() && x.patches.channels >= kFewChannels;
    PatchCursor cursor(x.patches, line);
    PatchCorner corners[kWidth];
    for (int64_t j = 0; j < lines; j += kWidth) {
      const int64_t here = std::min(kWidth, lines - j), w = P::width(here);
      for (int64_t i = 0; i < here; ++i) corners[i] = cursor.take();
      float* panel = to + j * (end - begin);
      if (can_stay && here == kWidth)
        in_place(x.patches, corners, begin, end, panel);
      else
        gathered(x, corners, here, begin, end, w, panel);
    }
  }

  // Whole vectors where they lie: taps of one pixel at a time, for all rows.
  static void across_in_place(const Patches& x, const PatchCorner* corners, int64_t depth, int64_t line,
                              int64_t lines, int64_t kc, int64_t p, float* to) {
    alignas(64) static constexpr float kZeros[kWidth] = {};
    const auto* data = reinterpret_cast<const float*>(x.data);
    for (int64_t j = 0; j < lines; j += kWidth) {
      const int64_t here = std::min(kWidth, lines - j), w = P::width(here);
      float* panel = to + j * kc + p * w;
      for (int64_t c = 0; c < here;) {
        const PatchTap tap(x, line + j + c);
        const int64_t count = std::min(here - c, x.channels - tap.channel);
        float* at = panel + c;
        for (int64_t q = 0; q < depth; ++q, at += w) {
          const float* from = tap.is_inside(x, corners[q]) ? data + corners[q].offset + tap.offset : kZeros;
          for (int64_t v = 0; v < count; v += kLanes) store(load(from + v), at + v);
        }
        c += count;
      }
    }
  }

  static void across_gathered(const PatchLines& x, const PatchCorner* corners, int64_t depth, int64_t line,
                              int64_t lines, int64_t kc, int64_t p, float* to) {
    static_assert(kLines % kWidth == 0);
    alignas(64) float rows[kPatchRows * kLines];
    for (int64_t j = 0; j < lines; j += kLines) {
      const int64_t here = std::min(kLines, lines - j), rest = here % kWidth, whole = here - rest;
      for (int64_t q = 0; q < depth; ++q) convert_taps(x, corners[q], line + j, here, rows + q * kLines);
      float* panel = to + j * kc;
      P::sweep({rows, kLines, 1}, 0, depth, kc, whole, panel + p * kWidth);
      P::sweep({rows + whole, kLines, 1}, 0, depth, kc, rest, panel + whole * kc + p * P::width(rest));
    }
  }

  // As B: a k is a row, lines are taps; rows [begin, begin + kc), of which those from p0 to p1.
  static void across(const PatchLines& x, int64_t line, int64_t lines, int64_t begin, int64_t kc, int64_t p0,
                     int64_t p1, float* to) {
    const bool can_stay = x.plain() && x.patches.channels % kLanes == 0 && lines % kLanes == 0;
    PatchCorner corners[kPatchRows];
    PatchCursor cursor(x.patches, begin + p0);
    for (int64_t p = p0; p < p1; p += kPatchRows) {
      const int64_t depth = std::min(kPatchRows, p1 - p);
      for (int64_t q = 0; q < depth; ++q) corners[q] = cursor.take();
      if (can_stay)
        across_in_place(x.patches, corners, depth, line, lines, kc, p, to);
      else
        across_gathered(x, corners, depth, line, lines, kc, p, to);
    }
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace plimsoll::cpu
HWY_AFTER_NAMESPACE();

#endif
