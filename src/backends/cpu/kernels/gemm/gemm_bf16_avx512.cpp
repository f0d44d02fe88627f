// Products of bf16 with AVX512_BF16: vdpbf16ps adds two products to each of 16 sums, first those of even k,
// then those of odd k.
#include <immintrin.h>

// g++ 12 warns of its own header's undefined vectors (its bug 105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

#include "backends/cpu/kernels/gemm/gemm_bf16.h"

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,prfchw")
#include "backends/cpu/kernels/gemm/avx512_bf16-inl.h"

namespace plimsoll::cpu::bf16 {
namespace {

// Spelled out, for it pins the sum to its register; see gemm_simd-inl.h.
inline void multiply_add(__m512i a, __m512i b, __m512& sum) {
  asm("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
}

// Where 16 sums of a row begin, in scratch.
constexpr int64_t scratch_at(int row, int tile) {
  return row / 16 * 2 * kTileFloats + row % 16 * 16 + tile * kTileFloats;
}

template <int kRows, int kTiles>
using Sums = __m512[kRows][kTiles];

// What is to be read two steps later; B, which other rows of A follow for, once.
constexpr int64_t kStepsAhead = 2;

template <int kTiles>
[[gnu::always_inline]] inline void load_pairs(const std::byte* b, bool fetch, __m512i (&pairs)[kTiles]) {
#pragma GCC unroll 2
  for (int t = 0; t < kTiles; ++t) {
    if (fetch) __builtin_prefetch(b + kStepsAhead * kPanelStepBytes + t * 1024);
    pairs[t] = _mm512_load_si512(b + t * 1024);
  }
}

template <int kRows, int kTiles>
[[gnu::always_inline]] inline void add_pair(const std::byte* a, const __m512i (&pairs)[kTiles], int row,
                                            Sums<kRows, kTiles>& sums) {
  int pair;
  __builtin_memcpy(&pair, a, 4);
  const __m512i x = _mm512_set1_epi32(pair);
#pragma GCC unroll 2
  for (int t = 0; t < kTiles; ++t) multiply_add(x, pairs[t], sums[row][t]);
}

// Of what is fetched ahead, a line for each pair of k; the first rows, which fetch B, leave it to the others.
template <int kFirst>
[[gnu::always_inline]] inline const std::byte* first_ahead(const Block& block) {
  return block.ahead.data + (kFirst < 20 ? 0 : block.steps * (kAheadOfAStep / 2)) * block.ahead.step;
}
template <int kFirst>
[[gnu::always_inline]] inline void fetch_ahead(const Block& block, const std::byte*& ahead) {
  if constexpr (kFirst != 0) {
    __builtin_prefetch(ahead, 0, 2);
    ahead += block.ahead.step;
  }
}

// A as B: a pair of k of 16 rows in each line.
template <int kFirst, int kRows, int kTiles>
[[gnu::always_inline]] inline void add_products_of_pairs(const Block& block, Sums<kRows, kTiles>& sums) {
  const std::byte* a = block.a;
  const std::byte* b = block.b;
  const std::byte* ahead = first_ahead<kFirst>(block);
  for (int64_t s = 0; s < block.steps; ++s, a += kPanelStepBytes, b += kPanelStepBytes)
    for (int p = 0; p < 16; ++p) {
      __m512i pairs[kTiles];
      load_pairs(b + p * 64, kFirst == 0, pairs);
      fetch_ahead<kFirst>(block, ahead);
      __builtin_prefetch(a + kStepsAhead * kPanelStepBytes + (kFirst == 0 ? 0 : 1024) + p * 64);
#pragma GCC unroll 12
      for (int r = 0; r < kRows; ++r)
        add_pair(a + (kFirst + r) / 16 * 1024 + p * 64 + (kFirst + r) % 16 * 4, pairs, r, sums);
    }
}

// A in rows, three to a register that points into them: base, base + stride, base + 2 stride.
template <int kFirst, int kRows, int kTiles>
[[gnu::always_inline]] inline void add_products_of_rows(const Block& block, Sums<kRows, kTiles>& sums) {
  const int64_t stride = block.a_row_bytes;
  const std::byte* a[kRows / 3 + 1];
#pragma GCC unroll 5
  for (int q = 0; q < kRows / 3 + 1; ++q) a[q] = block.a + (kFirst + 3 * q) * stride;
  const std::byte* b = block.b;
  const std::byte* ahead = first_ahead<kFirst>(block);
  for (int64_t s = 0; s < block.steps; ++s, b += kPanelStepBytes) {
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r)
      __builtin_prefetch(a[r / 3] + r % 3 * stride + kStepsAhead * block.a_step_bytes);
    for (int p = 0; p < 16; ++p) {
      __m512i pairs[kTiles];
      load_pairs(b + p * 64, kFirst == 0, pairs);
      fetch_ahead<kFirst>(block, ahead);
#pragma GCC unroll 12
      for (int r = 0; r < kRows; ++r) add_pair(a[r / 3] + r % 3 * stride, pairs, r, sums);
#pragma GCC unroll 5
      for (int q = 0; q < kRows / 3 + 1; ++q) a[q] += 4;
    }
#pragma GCC unroll 5
    for (int q = 0; q < kRows / 3 + 1; ++q) a[q] += block.a_step_bytes - 64;
  }
}

template <int kFirst, bool kInPairs, int kRows, int kTiles>
[[gnu::always_inline]] inline void add_products(const Block& block, Sums<kRows, kTiles>& sums) {
  if constexpr (kInPairs)
    add_products_of_pairs<kFirst>(block, sums);
  else
    add_products_of_rows<kFirst>(block, sums);
}

// Whole lines of C will be written when the products are done: they are fetched meanwhile.
template <int kFirst, int kRows>
[[gnu::always_inline]] inline void fetch(const Place& c) {
  std::byte* to = c.data + kFirst * c.row_bytes;
#pragma GCC unroll 12
  for (int r = 0; r < kRows; ++r) __builtin_prefetch(to + r * c.row_bytes, 1);
  if (c.dtype != ir::DType::kF32) return;
#pragma GCC unroll 12
  for (int r = 0; r < kRows; ++r) __builtin_prefetch(to + r * c.row_bytes + 64, 1);
}

template <int kRows>
[[gnu::always_inline]] inline void add_bias(const Place& c, Sums<kRows, 2>& sums) {
#pragma GCC unroll 2
  for (int t = 0; t < 2; ++t) {
    const __m512 x = load_low(c.bias + t * 16 * size_of(c.bias_dtype), 0xffff, c.bias_dtype);
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) sums[r][t] = _mm512_add_ps(sums[r][t], x);
  }
}

template <bool kPast, int kFirst, int kRows>
[[gnu::always_inline]] inline void store(const Place& c, const Sums<kRows, 2>& sums) {
  std::byte* to = c.data + kFirst * c.row_bytes;
  if (c.dtype == ir::DType::kF32) {
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 2
      for (int t = 0; t < 2; ++t)
        store_line<kPast>(_mm512_castps_si512(sums[r][t]), to + r * c.row_bytes + t * 64);
  } else if (c.dtype == ir::DType::kBf16) {
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) store_line<kPast>(to_bf16(sums[r][0], sums[r][1]), to + r * c.row_bytes);
  } else {
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) store_line<kPast>(to_f16(sums[r][0], sums[r][1]), to + r * c.row_bytes);
  }
}

// kRows rows by kTiles tiles of 16 columns: 12 x 2 sums, two of B and one of A in registers. Sums begin and
// end in scratch, or, with `c`, where it says.
template <int kRows, int kTiles, int kFirst, bool kInPairs>
void multiply_rows(const Block& block) {
  Sums<kRows, kTiles> sums;
#pragma GCC unroll 12
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 2
    for (int t = 0; t < kTiles; ++t)
      sums[r][t] =
          block.from_zero ? _mm512_setzero_ps() : _mm512_load_ps(block.sums + scratch_at(kFirst + r, t));
  add_products<kFirst, kInPairs>(block, sums);
#pragma GCC unroll 12
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 2
    for (int t = 0; t < kTiles; ++t) _mm512_store_ps(block.sums + scratch_at(kFirst + r, t), sums[r][t]);
}

template <int kRows, int kFirst, bool kInPairs>
void multiply_rows_into(const Block& block, const Place& c) {
  Sums<kRows, 2> sums;
  const std::byte* from = c.data + kFirst * c.row_bytes;
  if (!c.past_caches) fetch<kFirst, kRows>(c);
#pragma GCC unroll 12
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 2
    for (int t = 0; t < 2; ++t)
      sums[r][t] = block.from_zero ? _mm512_setzero_ps()
                   : c.is_added_to ? _mm512_loadu_ps(from + r * c.row_bytes + t * 64)
                                   : _mm512_load_ps(block.sums + scratch_at(kFirst + r, t));
  add_products<kFirst, kInPairs>(block, sums);
  if (c.bias != nullptr) add_bias(c, sums);
  c.past_caches ? store<true, kFirst>(c, sums) : store<false, kFirst>(c, sums);
}

template <int kTiles, bool kInPairs>
void multiply_columns(const Block& block) {
  multiply_rows<8, kTiles, 0, kInPairs>(block);
  if (block.row_tiles == 1) return multiply_rows<8, kTiles, 8, kInPairs>(block);
  multiply_rows<12, kTiles, 8, kInPairs>(block);
  multiply_rows<12, kTiles, 20, kInPairs>(block);
}

template <bool kInPairs>
void multiply_as(const Block& block) {
  block.column_tiles == 2 ? multiply_columns<2, kInPairs>(block) : multiply_columns<1, kInPairs>(block);
}
template <bool kInPairs>
void multiply_into_as(const Block& block, const Place& c) {
  multiply_rows_into<8, 0, kInPairs>(block, c);
  multiply_rows_into<12, 8, kInPairs>(block, c);
  multiply_rows_into<12, 20, kInPairs>(block, c);
}

void nothing() {}
void multiply(const Block& block) { block.a_in_pairs ? multiply_as<true>(block) : multiply_as<false>(block); }
void multiply_into(const Block& block, const Place& c) {
  block.a_in_pairs ? multiply_into_as<true>(block, c) : multiply_into_as<false>(block, c);
}

}  // namespace

const Kernels kAvx512Kernels = {nothing, multiply, nothing, 9, multiply_into};

}  // namespace plimsoll::cpu::bf16

#pragma GCC pop_options
