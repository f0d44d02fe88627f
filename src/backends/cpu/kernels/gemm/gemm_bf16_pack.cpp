// Packing for bf16 products, and what goes from and to C. Compiled for AVX512_BF16; its conversions take
// denormals for zero, as the products do.
//
// 32 elements that lie side by side become 32 bf16 in one register. If they are k of one line, that is a row
// of packed A as it stands; if they are lines of one k, two of them interleaved are two rows of packed B. The
// other two cases are a transposition of 16 x 16 pairs away.
#include <immintrin.h>

// g++ 12 warns of its own header's undefined vectors (its bug 105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

#include "backends/cpu/kernels/gemm/gemm_bf16.h"

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")
#include "backends/cpu/kernels/gemm/avx512_bf16-inl.h"

namespace plimsoll::cpu::bf16 {
namespace {

using ir::DType;

// `count` elements from `p` on as bf16, zeros behind them.
template <DType kDType>
inline __m512i load(const std::byte* p, int64_t count) {
  if constexpr (kDType == DType::kF32) {
    const auto* from = reinterpret_cast<const float*>(p);
    if (count >= 32) return to_bf16(_mm512_loadu_ps(from), _mm512_loadu_ps(from + 16));
    return to_bf16(_mm512_maskz_loadu_ps(first_16(count), from),
                   _mm512_maskz_loadu_ps(first_16(count - 16), from + 16));
  } else {
    const __m512i x = count >= 32 ? _mm512_loadu_si512(p) : _mm512_maskz_loadu_epi16(first_bits(count), p);
    if constexpr (kDType == DType::kBf16) return x;
    return to_bf16(_mm512_cvtph_ps(_mm512_castsi512_si256(x)),
                   _mm512_cvtph_ps(_mm512_extracti64x4_epi64(x, 1)));
  }
}

inline void store_rows(const __m512i (&x)[16], std::byte* to) {
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) _mm512_store_si512(to + 64 * i, x[i]);
}

// 16 lines of two steps later.
template <DType kDType>
inline void fetch_ahead(const std::byte* data, int64_t line_bytes) {
  constexpr int64_t kBytes = kStep * (kDType == DType::kF32 ? 4 : 2);
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i)
#pragma GCC unroll 2
    for (int64_t c = 0; c < kBytes; c += 64) __builtin_prefetch(data + i * line_bytes + 2 * kBytes + c);
}

// A line's k side by side.
template <DType kDType>
void along_k(const std::byte* data, int64_t line_bytes, int64_t lines, int64_t size, bool as_b, bool fetch,
             std::byte* to) {
  for (int64_t first = 0; first < kPanel; first += 16, to += 1024) {
    __m512i x[16];
    if (lines - first >= 16) {
      if (fetch) fetch_ahead<kDType>(data + first * line_bytes, line_bytes);
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) x[i] = load<kDType>(data + (first + i) * line_bytes, size);
    } else {
      for (int i = 0; i < 16; ++i)
        x[i] =
            first + i < lines ? load<kDType>(data + (first + i) * line_bytes, size) : _mm512_setzero_si512();
    }
    if (as_b) transpose(x);
    store_rows(x, to);
  }
}

struct Interleave {
  alignas(64) uint16_t low[32], high[32];
  constexpr Interleave() : low(), high() {
    for (uint16_t i = 0; i < 16; ++i) {
      low[2 * i] = i, low[2 * i + 1] = static_cast<uint16_t>(32 + i);
      high[2 * i] = static_cast<uint16_t>(16 + i), high[2 * i + 1] = static_cast<uint16_t>(48 + i);
    }
  }
};
constexpr Interleave kInterleave;

// Lines side by side, all with the same k.
template <DType kDType>
void across_k(const std::byte* data, int64_t k_bytes, int64_t lines, int64_t size, bool as_b, std::byte* to) {
  const __m512i low = _mm512_load_si512(kInterleave.low), high = _mm512_load_si512(kInterleave.high);
  __m512i x[16], y[16];
#pragma GCC unroll 16
  for (int64_t i = 0; i < 16; ++i) {
    // The next step's lines, each in a row of its own, far from one another.
    __builtin_prefetch(data + (kStep + 2 * i) * k_bytes);
    __builtin_prefetch(data + (kStep + 2 * i + 1) * k_bytes);
    const __m512i even = load<kDType>(data + 2 * i * k_bytes, 2 * i < size ? lines : 0);
    const __m512i odd = load<kDType>(data + (2 * i + 1) * k_bytes, 2 * i + 1 < size ? lines : 0);
    x[i] = _mm512_permutex2var_epi16(even, low, odd);
    y[i] = _mm512_permutex2var_epi16(even, high, odd);
  }
  if (!as_b) transpose(x), transpose(y);
  store_rows(x, to);
  store_rows(y, to + 1024);
}

// Lines side by side, a pair of k of all of them at a time, so that rows of memory are read from end to end
// and few at once: often they lie so that a cache keeps only a few of them. Others are fetched ahead.
template <DType kDType>
void across_rows(const Lines& x, int64_t begin, int64_t end, const Steps::Step& step, std::byte* to,
                 int64_t panel_bytes) {
  constexpr int64_t kSize = kDType == DType::kF32 ? 4 : 2, kAhead = 8;
  const __m512i low = _mm512_load_si512(kInterleave.low), high = _mm512_load_si512(kInterleave.high);
  const int64_t k_bytes = x.k_stride * kSize, lines = end - begin;
  const std::byte* row = x.data + (step.begin * x.k_stride + begin) * kSize;
  for (int64_t k = 0; k < kStep; k += 2, row += 2 * k_bytes, to += 64) {
    const std::byte* from = row;
    std::byte* at = to;
    for (int64_t line = 0; line < lines; line += kPanel, from += kPanel * kSize, at += panel_bytes) {
#pragma GCC unroll 2
      for (int64_t c = 0; c < kPanel * kSize; c += 64) {
        __builtin_prefetch(from + kAhead * k_bytes + c);
        __builtin_prefetch(from + (kAhead + 1) * k_bytes + c);
      }
      const __m512i even = load<kDType>(from, k < step.size ? lines - line : 0);
      const __m512i odd = load<kDType>(from + k_bytes, k + 1 < step.size ? lines - line : 0);
      _mm512_store_si512(at, _mm512_permutex2var_epi16(even, low, odd));
      _mm512_store_si512(at + 1024, _mm512_permutex2var_epi16(even, high, odd));
    }
  }
}

// Any strides: gathered first.
template <DType kDType>
void gathered(const Lines& x, const std::byte* data, int64_t lines, int64_t size, bool as_b, std::byte* to) {
  constexpr int64_t kSize = kDType == DType::kF32 ? 4 : 2;
  alignas(64) std::byte rows[kPanel * kStep * kSize];
  for (int64_t i = 0; i < lines; ++i)
    for (int64_t p = 0; p < size; ++p)
      __builtin_memcpy(rows + (i * kStep + p) * kSize, data + (i * x.line_stride + p * x.k_stride) * kSize,
                       kSize);
  along_k<kDType>(rows, kStep * kSize, lines, size, as_b, false, to);
}

template <DType kDType>
void pack(const Lines& x, int64_t line, int64_t lines, const Steps& steps, int64_t first, int64_t end,
          bool as_b, std::byte* to) {
  constexpr int64_t kSize = kDType == DType::kF32 ? 4 : 2;
  for (int64_t s = first; s < end; ++s, to += kPanelStepBytes) {
    const Steps::Step step = steps[s];
    const std::byte* data = x.data + (step.begin * x.k_stride + line * x.line_stride) * kSize;
    if (x.k_stride == 1)
      along_k<kDType>(data, x.line_stride * kSize, lines, step.size, as_b, x.fetch_ahead, to);
    else if (x.line_stride == 1)
      across_k<kDType>(data, x.k_stride * kSize, lines, step.size, as_b, to);
    else
      gathered<kDType>(x, data, lines, step.size, as_b, to);
  }
}

inline __m512i narrowed(__m512 low, __m512 high, DType dtype) {
  return dtype == DType::kBf16 ? to_bf16(low, high) : to_f16(low, high);
}

// Two vectors side by side, so that a whole cache line of bf16 is written at once.
inline void store_low(__m512 low, __m512 high, std::byte* p, __mmask32 mask, DType dtype) {
  if (dtype == DType::kF32) {
    _mm512_mask_storeu_ps(p, static_cast<__mmask16>(mask), low);
    _mm512_mask_storeu_ps(p + 64, static_cast<__mmask16>(mask >> 16), high);
  } else {
    _mm512_mask_storeu_epi16(p, mask, narrowed(low, high, dtype));
  }
}

// Past the caches; `p` is aligned to 64.
inline void stream_low(__m512 low, __m512 high, std::byte* p, DType dtype) {
  if (dtype == DType::kF32) {
    _mm512_stream_ps(reinterpret_cast<float*>(p), low);
    _mm512_stream_ps(reinterpret_cast<float*>(p + 64), high);
  } else {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(p), narrowed(low, high, dtype));
  }
}

// 32 sums times the scale, onto what C holds at `c`.
inline void scale_sums(const GemmArgs& args, const std::byte* c, uint32_t mask, __m512& low, __m512& high) {
  const __m512 scale = _mm512_set1_ps(*args.scale);
  low = _mm512_mul_ps(low, scale);
  high = _mm512_mul_ps(high, scale);
  if (!args.accumulate) return;
  low = _mm512_add_ps(_mm512_maskz_loadu_ps(static_cast<__mmask16>(mask), c), low);
  high = _mm512_add_ps(_mm512_maskz_loadu_ps(static_cast<__mmask16>(mask >> 16), c + 64), high);
}

// Where 16 columns of a row lie among the sums of blocks side by side.
inline int64_t sums_at(int64_t row, int64_t column) {
  return column / kPanel * kBlockFloats + (row / 16 * 2 + column % kPanel / 16) * kTileFloats + row % 16 * 16;
}

}  // namespace

void pack_panel(const Lines& x, int64_t line, int64_t lines, const Steps& steps, int64_t first, int64_t end,
                bool as_b, std::byte* to) {
  if (x.patches != nullptr) return pack_patches(x, line, lines, steps, first, end, as_b, to);
  if (x.codes != nullptr) return pack_codes(x, line, line + lines, steps, first, end, as_b, to, 0);
  if (x.dtype == DType::kF32) return pack<DType::kF32>(x, line, lines, steps, first, end, as_b, to);
  if (x.dtype == DType::kBf16) return pack<DType::kBf16>(x, line, lines, steps, first, end, as_b, to);
  pack<DType::kF16>(x, line, lines, steps, first, end, as_b, to);
}

void pack_rows(const Lines& x, int64_t begin, int64_t end, const Steps& steps, int64_t first, int64_t last,
               std::byte* to, int64_t panel_bytes) {
  if (x.codes != nullptr) return pack_codes(x, begin, end, steps, first, last, true, to, panel_bytes);
  if (x.patches != nullptr) {
    for (int64_t line = begin; line < end; line += kPanel, to += panel_bytes)
      pack_patches(x, line, std::min(kPanel, end - line), steps, first, last, true, to);
    return;
  }
  for (int64_t s = first; s < last; ++s, to += kPanelStepBytes) {
    if (x.dtype == DType::kF32)
      across_rows<DType::kF32>(x, begin, end, steps[s], to, panel_bytes);
    else if (x.dtype == DType::kBf16)
      across_rows<DType::kBf16>(x, begin, end, steps[s], to, panel_bytes);
    else
      across_rows<DType::kF16>(x, begin, end, steps[s], to, panel_bytes);
  }
}

void load_blocks(const GemmArgs& args, const Part& p, float* sums) {
  const auto* c = static_cast<const float*>(args.c) + p.i * args.c_row_stride + p.j;
  for (int64_t r = 0; r < p.rows; ++r, c += args.c_row_stride)
    for (int64_t column = 0; column < p.columns; column += 16)
      _mm512_store_ps(sums + sums_at(r, column),
                      _mm512_maskz_loadu_ps(first_16(p.columns - column), c + column));
}

void store_blocks(const GemmArgs& args, const Part& p, bool last, bool past_caches, const float* sums) {
  const int64_t size = size_of(args.c_dtype), bias_size = size_of(args.bias_dtype);
  auto* c = static_cast<std::byte*>(args.c) + (p.i * args.c_row_stride + p.j) * size;
  const auto* bias =
      last && args.bias != nullptr ? static_cast<const std::byte*>(args.bias) + p.j * bias_size : nullptr;
  for (int64_t r = 0; r < p.rows; ++r, c += args.c_row_stride * size)
    for (int64_t column = 0; column < p.columns; column += kPanel) {
      const uint32_t mask = first_bits(p.columns - column);
      __m512 low = _mm512_load_ps(sums + sums_at(r, column)),
             high = _mm512_load_ps(sums + sums_at(r, column + 16));
      if (last && args.scale != nullptr) scale_sums(args, c + column * size, mask, low, high);
      if (bias != nullptr) {
        const std::byte* at = bias + column * bias_size;
        low = _mm512_add_ps(low, load_low(at, static_cast<__mmask16>(mask), args.bias_dtype));
        high = _mm512_add_ps(
            high, load_low(at + 16 * bias_size, static_cast<__mmask16>(mask >> 16), args.bias_dtype));
      }
      if (past_caches && mask == ~0u)
        stream_low(low, high, c + column * size, args.c_dtype);
      else
        store_low(low, high, c + column * size, mask, args.c_dtype);
    }
}

void finish_stores() { _mm_sfence(); }

}  // namespace plimsoll::cpu::bf16

#pragma GCC pop_options
