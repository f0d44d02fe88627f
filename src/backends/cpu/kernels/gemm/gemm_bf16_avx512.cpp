// Products of bf16 with AVX512_BF16: vdpbf16ps adds two products to each of 16 sums, first those of even k,
// then those of odd k.
#include <immintrin.h>

// g++ 12 warns of its own header's undefined vectors (its bug 105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

#include "backends/cpu/kernels/gemm/gemm_bf16.h"

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")

namespace plimsoll::cpu::bf16 {
namespace {

// Spelled out, for it pins the sum to its register; see gemm_simd-inl.h.
inline void multiply_add(__m512i a, __m512i b, __m512& sum) {
  asm("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
}

// kRows rows by kTiles tiles of 16 columns: 12 x 2 sums, two of B and one of A in registers.
template <int kRows, int kTiles>
void multiply_rows(const Block& block, int first_row) {
  float* at[kRows];
  __m512 sums[kRows][kTiles];
#pragma GCC unroll 12
  for (int r = 0; r < kRows; ++r) {
    const int row = first_row + r;
    at[r] = block.sums + row / 16 * 2 * kTileFloats + row % 16 * 16;
#pragma GCC unroll 2
    for (int t = 0; t < kTiles; ++t)
      sums[r][t] = block.from_zero ? _mm512_setzero_ps() : _mm512_load_ps(at[r] + t * kTileFloats);
  }
  const std::byte* a = block.a + first_row * 64;
  const std::byte* b = block.b;
  for (int64_t s = 0; s < block.steps; ++s, a += kPanelStepBytes, b += kPanelStepBytes) {
    for (int p = 0; p < 16; ++p) {
      __m512i pairs[kTiles];
#pragma GCC unroll 2
      for (int t = 0; t < kTiles; ++t) pairs[t] = _mm512_load_si512(b + t * 1024 + p * 64);
#pragma GCC unroll 12
      for (int r = 0; r < kRows; ++r) {
        int pair;
        __builtin_memcpy(&pair, a + r * 64 + p * 4, 4);
        const __m512i x = _mm512_set1_epi32(pair);
#pragma GCC unroll 2
        for (int t = 0; t < kTiles; ++t) multiply_add(x, pairs[t], sums[r][t]);
      }
    }
  }
#pragma GCC unroll 12
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 2
    for (int t = 0; t < kTiles; ++t) _mm512_store_ps(at[r] + t * kTileFloats, sums[r][t]);
}

template <int kTiles>
void multiply_columns(const Block& block) {
  multiply_rows<8, kTiles>(block, 0);
  if (block.row_tiles == 1) return multiply_rows<8, kTiles>(block, 8);
  multiply_rows<12, kTiles>(block, 8);
  multiply_rows<12, kTiles>(block, 20);
}

void nothing() {}
void multiply(const Block& block) {
  block.column_tiles == 2 ? multiply_columns<2>(block) : multiply_columns<1>(block);
}

}  // namespace

const Kernels kAvx512Kernels = {nothing, multiply, nothing, 9};

}  // namespace plimsoll::cpu::bf16

#pragma GCC pop_options
