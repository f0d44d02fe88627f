// 32 codes become 32 bf16 in a register, as numerics/codes_to_bf16.cpp has it: their bits move to where bf16
// has them, and the block's scale, a power of two, is added to the exponents. A block, or a part of one, is a
// row of packed A as it stands, and 16 of them turned are a tile of B.
#include "backends/cpu/kernels/gemm/gemm_bf16_moves.h"

#include <immintrin.h>

#include <array>
#include <bit>
#include <cstring>

// g++ 12 warns of its own header's undefined vectors (its bug 105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

#include "backends/cpu/kernels/gemm/gemm_bf16.h"
#include "numerics/codes_to_bf16.h"

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")
#include "backends/cpu/kernels/gemm/avx512_bf16-inl.h"

namespace plimsoll::cpu::bf16 {
namespace {

using numerics::Scheme;

/// Of a format: bits of the mantissa, the bias, the largest number.
template <int kMantissa, int kFormatBias, int kLargestCode>
struct FormatBits {
  static constexpr int kUp = 7 - kMantissa, kBias = kFormatBias;
  static constexpr short kMagnitude = 0x7F << kUp, kLargest = kLargestCode << kUp;
  static constexpr short kExponent = 0x7F >> kMantissa << kMantissa;
  /// Numbers below the normal ones in bf16, less what moves the others there; 0 stays 0.
  static constexpr std::array<uint16_t, 32> small() {
    std::array<uint16_t, 32> numbers{};
    for (uint32_t m = 1; m < 1U << kMantissa; ++m) {
      const int top = std::bit_width(m) - 1, exponent = 1 - kMantissa + top;
      numbers[m] = static_cast<uint16_t>(exponent * 128 + static_cast<int>(m << (7 - top) & 0x7F));
    }
    return numbers;
  }
  alignas(64) static constexpr std::array<uint16_t, 32> kSmall = small();
};
using E4m3 = FormatBits<3, 7, 0x7E>;
using E5m2 = FormatBits<2, 15, 0x7B>;

/// Fields of scales (the exponents of bf16) under which all numbers of E4M3 stay normal ones.
constexpr uint32_t kLeastField = 10, kMostField = 246;

// Fields of the scales of 32 k of a row; 0: of no power of two.
struct OfTensor {
  [[nodiscard]] uint32_t field(int64_t) const { return 127; }
};
struct OfThirtyTwo {
  const std::byte* scales;
  int64_t row_bytes;
  [[nodiscard]] uint32_t field(int64_t row) const {
    return std::to_integer<uint32_t>(scales[row * row_bytes]);
  }
};
struct OfMore {
  const std::byte* scales;
  int64_t row_bytes, first_row;
  int log_rows;
  [[nodiscard]] uint32_t field(int64_t row) const {
    uint32_t bits = 0;
    std::memcpy(&bits, scales + ((first_row + row) >> log_rows) * row_bytes, sizeof bits);
    return (bits & 0x807FFFFFU) != 0 ? 0 : bits >> 23;
  }
};

struct Checks {
  __m512i largest;
  uint32_t farthest = 0;  ///< of a field from the least one
};

template <class F, class Scales>
inline __m512i numbers(const std::byte* codes, const Scales& scales, int64_t row, Checks& checks) {
  const uint32_t field = scales.field(row), above = field - kLeastField;
  checks.farthest = above > checks.farthest ? above : checks.farthest;
  const __m512i moves = _mm512_set1_epi16(static_cast<short>((field - F::kBias) << 7));
  const __m512i x = _mm512_cvtepu8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes)));
  const __m512i m = _mm512_and_si512(_mm512_slli_epi16(x, F::kUp), _mm512_set1_epi16(F::kMagnitude));
  checks.largest = _mm512_max_epi16(checks.largest, m);
  const __m512i table = _mm512_load_si512(F::kSmall.data());
  const __m512i small = _mm512_mask_add_epi16(table, ~__mmask32{1}, table, moves);
  const __mmask32 is_small = _mm512_testn_epi16_mask(x, _mm512_set1_epi16(F::kExponent));
  const __m512i number = _mm512_mask_permutexvar_epi16(_mm512_add_epi16(m, moves), is_small, x, small);
  constexpr int kOrAnd = 0xF8;  // a | (b & c)
  return _mm512_ternarylogic_epi64(number, _mm512_slli_epi16(x, 8),
                                   _mm512_set1_epi16(static_cast<short>(0x8000)), kOrAnd);
}

template <class F, class Scales>
bool move_lines(const std::byte* codes, int64_t row_bytes, const Scales& scales, int64_t lines, bool as_b,
                std::byte* to) {
  Checks checks{_mm512_setzero_si512()};
  for (int64_t first = 0; first < kPanel; first += 16, to += 1024) {
    __m512i x[16];
    if (lines - first >= 16) {
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i)
        x[i] = numbers<F>(codes + (first + i) * row_bytes, scales, first + i, checks);
    } else {
      for (int i = 0; i < 16; ++i)
        x[i] = first + i < lines ? numbers<F>(codes + (first + i) * row_bytes, scales, first + i, checks)
                                 : _mm512_setzero_si512();
    }
    if (as_b) transpose(x);
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) _mm512_store_si512(to + 64 * i, x[i]);
  }
  return checks.farthest <= kMostField - kLeastField &&
         _mm512_cmpgt_epi16_mask(checks.largest, _mm512_set1_epi16(F::kLargest)) == 0;
}

}  // namespace

bool moves_codes(const CodedMatrix& codes) {
  return numerics::has_fp8_codes(codes.scheme) &&
         (numerics::info(codes.scheme).block_cols == 0 || codes.col % kStep == 0);
}

bool move_step(const CodedStep& step, bool as_b, std::byte* to) {
  const CodedMatrix& m = *step.codes;
  const int64_t row = m.row + step.line, col = m.col + step.k;
  const std::byte* const codes = m.codes + row * m.cols + col;
  switch (m.scheme) {
    case Scheme::kE4m3:
      return move_lines<E4m3>(codes, m.cols, OfTensor{}, step.lines, as_b, to);
    case Scheme::kE5m2:
      return move_lines<E5m2>(codes, m.cols, OfTensor{}, step.lines, as_b, to);
    case Scheme::kMxfp8: {
      if (col % kStep != 0) return false;
      const int64_t row_bytes = div_up(m.cols, 32);
      return move_lines<E4m3>(codes, m.cols, OfThirtyTwo{m.scales + row * row_bytes + col / 32, row_bytes},
                              step.lines, as_b, to);
    }
    default: {
      if (col % kStep != 0) return false;
      const OfMore scales{m.scales + 4 * (col / 128), 4 * div_up(m.cols, 128), row,
                          m.scheme == Scheme::kFp8Block128x128 ? 7 : 0};
      return move_lines<E4m3>(codes, m.cols, scales, step.lines, as_b, to);
    }
  }
}

}  // namespace plimsoll::cpu::bf16

#pragma GCC pop_options
