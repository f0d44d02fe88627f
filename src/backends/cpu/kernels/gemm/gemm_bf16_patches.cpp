// Packing patches (patches.h) for bf16 products: gathered as they are stored, then packed as any other
// operand. Rows of bf16 are gathered to where they are packed.
#include <cstring>

#include "backends/cpu/kernels/gemm/gemm_bf16.h"

namespace plimsoll::cpu::bf16 {
namespace {

using ir::DType;

constexpr int64_t kMostElement = 4;
alignas(64) constexpr std::byte kZeros[kStep * kMostElement] = {};

/// Elements from `k` on of rows with those corners, `count` of each, to rows of `pitch` elements.
template <int kSize>
void gather(const Patches& x, const PatchCorner* corners, int64_t rows, int64_t k, int64_t count,
            std::byte* to, int64_t pitch) {
  const PatchTap tap(x, k);
  if (count == kStep && tap.channel + count <= x.channels) {  // of one pixel: a copy of fixed size
    for (int64_t i = 0; i < rows; ++i)
      std::memcpy(to + i * pitch * kSize,
                  tap.is_inside(x, corners[i]) ? x.data + (corners[i].offset + tap.offset) * kSize : kZeros,
                  kStep * kSize);
    return;
  }
  for (int64_t i = 0; i < rows; ++i) copy_taps(x, corners[i], k, count, kSize, to + i * pitch * kSize);
}

/// Taps of so few channels come many to a step; rows are gathered for several steps at a time.
constexpr int64_t kFewChannels = 16, kStepsAtOnce = 8;
template <int kSize>
void pack_few_channels(const Lines& x, const PatchCorner* corners, int64_t lines, const Steps& steps,
                       int64_t first, int64_t end, bool as_b, std::byte* to) {
  constexpr int64_t kPitch = kStepsAtOnce * kStep;
  alignas(64) std::byte rows[kPanel * kPitch * kSize];
  for (int64_t s = first; s < end; s += kStepsAtOnce, to += kStepsAtOnce * kPanelStepBytes) {
    const int64_t last = std::min(end, s + kStepsAtOnce) - 1, k = steps[s].begin,
                  count = steps[last].begin + steps[last].size - k;
    for (int64_t i = 0; i < lines; ++i)
      copy_taps(*x.patches, corners[i], k, count, kSize, rows + i * kPitch * kSize);
    pack_panel({.data = rows, .k_stride = 1, .line_stride = kPitch, .dtype = x.dtype}, 0, lines,
               Steps(count, 0), 0, last + 1 - s, as_b, to);
  }
}

/// Lines are rows of patches, k their elements.
template <int kSize>
void pack_along(const Lines& x, int64_t line, int64_t lines, const Steps& steps, int64_t first, int64_t end,
                bool as_b, std::byte* to) {
  PatchCorner corners[kPanel];
  PatchCursor cursor(*x.patches, x.first_line + line);
  for (int64_t i = 0; i < lines; ++i) corners[i] = cursor.take();
  if (x.patches->channels < kFewChannels)
    return pack_few_channels<kSize>(x, corners, lines, steps, first, end, as_b, to);
  alignas(64) std::byte rows[kPanel * kStep * kSize];
  for (int64_t s = first; s < end; ++s, to += kPanelStepBytes) {
    const Steps::Step step = steps[s];
    if (x.dtype == DType::kBf16 && !as_b) {
      if (step.size < kStep || lines < kPanel) std::memset(to, 0, kPanelStepBytes);
      gather<2>(*x.patches, corners, lines, step.begin, step.size, to, kStep);
      continue;
    }
    gather<kSize>(*x.patches, corners, lines, step.begin, step.size, rows, kStep);
    pack_panel({.data = rows, .k_stride = 1, .line_stride = kStep, .dtype = x.dtype}, 0, lines,
               Steps(step.size, 0), 0, 1, as_b, to);
  }
}

/// Lines are elements of the rows, which are k.
template <int kSize>
void pack_across(const Lines& x, int64_t line, int64_t lines, const Steps& steps, int64_t first, int64_t end,
                 bool as_b, std::byte* to) {
  alignas(64) std::byte rows[kStep * kPanel * kSize];
  for (int64_t s = first; s < end; ++s, to += kPanelStepBytes) {
    const Steps::Step step = steps[s];
    PatchCorner corners[kStep];
    PatchCursor cursor(*x.patches, step.begin);
    for (int64_t q = 0; q < step.size; ++q) corners[q] = cursor.take();
    gather<kSize>(*x.patches, corners, step.size, x.first_line + line, lines, rows, kPanel);
    pack_panel({.data = rows, .k_stride = kPanel, .line_stride = 1, .dtype = x.dtype}, 0, lines,
               Steps(step.size, 0), 0, 1, as_b, to);
  }
}

}  // namespace

void pack_patches(const Lines& x, int64_t line, int64_t lines, const Steps& steps, int64_t first, int64_t end,
                  bool as_b, std::byte* to) {
  const bool is_long = x.dtype == DType::kF32;
  if (x.side_by_side())
    is_long ? pack_across<4>(x, line, lines, steps, first, end, as_b, to)
            : pack_across<2>(x, line, lines, steps, first, end, as_b, to);
  else
    is_long ? pack_along<4>(x, line, lines, steps, first, end, as_b, to)
            : pack_along<2>(x, line, lines, steps, first, end, as_b, to);
}

}  // namespace plimsoll::cpu::bf16
