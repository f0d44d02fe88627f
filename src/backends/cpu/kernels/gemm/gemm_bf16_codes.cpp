// Packing codes (coded_matrix.h) for bf16 products: some of them become numbers in the first-level cache,
// which are packed as any other operand is; steps of FP8 codes whose k lie side by side do so in registers
// (gemm_bf16_moves.cpp).
#include "backends/cpu/kernels/gemm/coded_matrix.h"
#include "backends/cpu/kernels/gemm/gemm_bf16.h"
#include "backends/cpu/kernels/gemm/gemm_bf16_moves.h"
#include "base/at.h"

namespace plimsoll::cpu::bf16 {
namespace {

using ir::DType;

/// Numbers that lie side by side, of each of 32 lines or terms: 16 KiB.
constexpr int64_t kRunNumbers = 256;

struct Numbers {
  alignas(64) uint16_t rows[kPanel * kRunNumbers];
  [[nodiscard]] std::span<uint16_t> row(int64_t i, int64_t count) {
    return std::span(rows).subspan(at(i * kRunNumbers), at(count));
  }
  [[nodiscard]] Lines lines(bool along_k) const {
    return {.data = reinterpret_cast<const std::byte*>(rows),
            .k_stride = along_k ? 1 : kRunNumbers,
            .line_stride = along_k ? kRunNumbers : 1,
            .dtype = DType::kBf16};
  }
};

/// Where a run of steps without gaps ends that begins with `s`.
int64_t end_of_run(const Steps& steps, int64_t s, int64_t last) {
  const int64_t most = std::min(last, s + kRunNumbers / kStep);
  int64_t end = s + 1;
  while (end < most && steps[end - 1].size == kStep) ++end;
  return end;
}

/// A panel whose lines are rows of codes, by way of numbers.
void pack_numbers(const Lines& x, int64_t line, int64_t lines, const Steps& steps, int64_t first,
                  int64_t last, bool as_b, std::byte* to) {
  Numbers numbers;
  for (int64_t s = first, end = 0; s < last; to += (end - s) * kPanelStepBytes, s = end) {
    end = end_of_run(steps, s, last);
    const int64_t k = steps[s].begin, count = steps[end - 1].begin + steps[end - 1].size - k;
    for (int64_t i = 0; i < lines; ++i) x.codes->numbers(x.first_line + line + i, k, numbers.row(i, count));
    pack_panel(numbers.lines(true), 0, lines, Steps(count, 0), 0, end - s, as_b, to);
  }
}

/// The same, steps that move whole in registers.
void pack_along(const Lines& x, int64_t line, int64_t lines, const Steps& steps, int64_t first, int64_t last,
                bool as_b, std::byte* to) {
  if (!moves_codes(*x.codes)) return pack_numbers(x, line, lines, steps, first, last, as_b, to);
  for (int64_t s = first; s < last; ++s, to += kPanelStepBytes) {
    const Steps::Step step = steps[s];
    const CodedStep codes{x.codes, x.first_line + line, lines, step.begin};
    if (step.size < kStep || !move_step(codes, as_b, to))
      pack_numbers(x, line, lines, steps, s, s + 1, as_b, to);
  }
}

/// Lines side by side, in rows of codes that are k.
void pack_across(const Lines& x, int64_t begin, int64_t end, const Steps::Step& step, bool as_b,
                 std::byte* to, int64_t panel_bytes) {
  Numbers numbers;
  for (int64_t line = begin; line < end; line += kRunNumbers) {
    const int64_t lines = std::min(kRunNumbers, end - line);
    for (int64_t k = 0; k < step.size; ++k)
      x.codes->numbers(step.begin + k, x.first_line + line, numbers.row(k, lines));
    for (int64_t panel = 0; panel < lines; panel += kPanel, to += panel_bytes)
      pack_panel(numbers.lines(false), panel, std::min(kPanel, lines - panel), Steps(step.size, 0), 0, 1,
                 as_b, to);
  }
}

}  // namespace

void pack_codes(const Lines& x, int64_t begin, int64_t end, const Steps& steps, int64_t first, int64_t last,
                bool as_b, std::byte* to, int64_t panel_bytes) {
  if (x.k_stride == 1) {
    for (int64_t line = begin; line < end; line += kPanel, to += panel_bytes)
      pack_along(x, line, std::min(kPanel, end - line), steps, first, last, as_b, to);
    return;
  }
  for (int64_t s = first; s < last; ++s, to += kPanelStepBytes)
    pack_across(x, begin, end, steps[s], as_b, to, panel_bytes);
}

}  // namespace plimsoll::cpu::bf16
