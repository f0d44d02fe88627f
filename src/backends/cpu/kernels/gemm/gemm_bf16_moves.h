// A step of FP8 codes, packed without a detour through memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/kernels/gemm/coded_matrix.h"

namespace plimsoll::cpu::bf16 {

/// Whether blocks along rows are whole steps, or there are none, and codes are of a byte.
bool moves_codes(const CodedMatrix& codes);

/// 32 k from `k` on of lines from `line` on (at most a panel), which are rows of codes.
struct CodedStep {
  const CodedMatrix* codes;
  int64_t line, lines, k;
};
/// Packs them as a panel of B or of A. False where a number is infinite or NaN, or a scale is no power of two
/// or brings numbers out of bf16's normal ones; `to` is then written all the same. Precondition: moves_codes;
/// a CPU with AVX512_BF16.
bool move_step(const CodedStep& step, bool as_b, std::byte* to);

}  // namespace plimsoll::cpu::bf16
