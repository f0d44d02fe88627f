// Matrix instructions of sm_80 and later: mma.sync, ldmatrix, and what goes with them. Each function has a
// second body in C++ for PLIMSOLL_HOST_TWIN, where kernels run on the host: it holds the instruction's map of
// elements to lanes.
//
// The fragments of m16n8k16, where g = lane / 4 and t = lane % 4; a word holds two elements, the lower first:
//
//   a [16, 16]  a[0]: row g, columns 2t, 2t+1      a[1]: row g+8
//               a[2]: row g, columns 2t+8, 2t+9    a[3]: row g+8
//   b [16, 8]   b0: rows 2t, 2t+1 of column g      b1: rows 2t+8, 2t+9
//   d [16, 8]   d[0], d[1]: row g, columns 2t, 2t+1     d[2], d[3]: row g+8
//
// A result d, rounded and packed, therefore is an operand a of the next product: attention keeps its weights
// in registers.
//
// Those of m16n8k8 in TF32, whose words are f32 of 10 bits of mantissa:
//
//   a [16, 8]  a[0]: row g, column t    a[1]: row g+8    a[2]: row g, column t+4    a[3]: row g+8
//   b [8, 8]   b0: row t of column g    b1: row t+4
//   d [16, 8]  as above
//
// A result d is an operand a whose columns are taken in another order: 2t in the place of t, 2t+1 in that of
// t+4. The rows of b then have to come in that order too.
#pragma once

#include "backends/cuda/device/vector.cuh"

namespace plimsoll::cuda {

// An address within shared memory. Adding bytes to it works on both sides.
#ifdef PLIMSOLL_HOST_TWIN
typedef unsigned char* SharedAt;
__device__ __forceinline__ SharedAt shared_at(void* pointer) { return (unsigned char*)pointer; }
#else
typedef u32 SharedAt;
__device__ __forceinline__ SharedAt shared_at(void* pointer) {
  return (u32)__cvta_generic_to_shared(pointer);
}
#endif

__device__ __forceinline__ void shared_store4(SharedAt to, u32 word) {
#ifdef PLIMSOLL_HOST_TWIN
  *(u32*)to = word;
#else
  asm volatile("st.shared.b32 [%0], %1;" ::"r"(to), "r"(word) : "memory");
#endif
}
__device__ __forceinline__ void shared_store16(SharedAt to, const uint4& v) {
#ifdef PLIMSOLL_HOST_TWIN
  *(uint4*)to = v;
#else
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
               : "memory");
#endif
}
__device__ __forceinline__ uint4 shared_load16(SharedAt from) {
#ifdef PLIMSOLL_HOST_TWIN
  return *(const uint4*)from;
#else
  uint4 v;
  asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "r"(from)
               : "memory");
  return v;
#endif
}

// Four matrices of 8 x 8 elements; lane 8m + r gives the address of row r of matrix m, 16 bytes of it. Lane
// gets of matrix m in d[m] the elements (g, 2t), (g, 2t+1); transposed: (2t, g), (2t+1, g).
__device__ __forceinline__ void load_matrices(u32 (&d)[4], SharedAt row) {
#ifdef PLIMSOLL_HOST_TWIN
  const auto rows = twin::warp_exchange(row);
  const int lane = threadIdx.x & 31;
  for (int m = 0; m < 4; ++m) d[m] = *(const u32*)(rows[(u32)(8 * m + lane / 4)] + 4 * (lane % 4));
#else
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
               : "r"(row));
#endif
}
__device__ __forceinline__ void load_matrices_transposed(u32 (&d)[4], SharedAt row) {
#ifdef PLIMSOLL_HOST_TWIN
  const auto rows = twin::warp_exchange(row);
  const int lane = threadIdx.x & 31;
  for (int m = 0; m < 4; ++m) {
    const SharedAt first = rows[(u32)(8 * m + 2 * (lane % 4))],
                   second = rows[(u32)(8 * m + 2 * (lane % 4) + 1)];
    d[m] = (u32) * (const u16*)(first + 2 * (lane / 4)) | (u32) * (const u16*)(second + 2 * (lane / 4)) << 16;
  }
#else
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
               : "r"(row));
#endif
}

#ifdef PLIMSOLL_HOST_TWIN
// What a lane gives to a product.
struct MmaOperands {
  u32 a[4], b[2];
};
// A word that a product in TF32 takes; bits beyond its mantissa, of which the manual promises nothing, are a
// mistake.
inline float tf32_of(u32 word) { return __uint_as_float((word & 0x1fffu) != 0 ? 0x7fffffffu : word); }
// Row `row` of a [16, kInner], and column `column` of b [kInner, 8], as floats.
template <int kType, typename Lanes, int kInner>
void mma_row(const Lanes& lanes, int row, float (&out)[kInner]) {
  if constexpr (kType == kF32)
    for (int k = 0; k < 8; ++k) out[k] = tf32_of(lanes[(u32)(row % 8 * 4 + k % 4)].a[k / 4 * 2 + row / 8]);
  else
    for (int word = 0; word < 8; ++word)
      unpack2(lanes[(u32)(row % 8 * 4 + word % 4)].a[word / 4 * 2 + row / 8], kType, out + 2 * word);
}
template <int kType, typename Lanes, int kInner>
void mma_column(const Lanes& lanes, int column, float (&out)[kInner]) {
  if constexpr (kType == kF32)
    for (int k = 0; k < 8; ++k) out[k] = tf32_of(lanes[(u32)(column * 4 + k % 4)].b[k / 4]);
  else
    for (int word = 0; word < 8; ++word)
      unpack2(lanes[(u32)(column * 4 + word % 4)].b[word / 4], kType, out + 2 * word);
}
#endif

// d += a b, in f32. kType: kBf16 or kF16, whose inner extent is 16; kF32: TF32, of 8.
template <int kType>
__device__ __forceinline__ void mma(float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) {
#ifdef PLIMSOLL_HOST_TWIN
  constexpr int kInner = kType == kF32 ? 8 : 16;
  const auto lanes = twin::warp_exchange(MmaOperands{{a[0], a[1], a[2], a[3]}, {b0, b1}});
  const int lane = threadIdx.x & 31;
  float rows[2][kInner], columns[2][kInner];
  for (int i = 0; i < 2; ++i) {
    mma_row<kType>(lanes, lane / 4 + 8 * i, rows[i]);
    mma_column<kType>(lanes, 2 * (lane % 4) + i, columns[i]);
  }
  for (int k = 0; k < kInner; ++k)
    for (int e = 0; e < 4; ++e) d[e] += rows[e / 2][k] * columns[e % 2][k];
#else
  if constexpr (kType == kBf16)
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  else if constexpr (kType == kF16)
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  else
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#endif
}

// A word of f32 as a product in TF32 takes it: rounded to nearest even, as every other product of that
// precision rounds its operands.
__device__ __forceinline__ u32 tf32_word(float x) { return __float_as_uint(rounded_to_tf32(x)); }
__device__ __forceinline__ u32 tf32_word(u32 x) { return tf32_word(__uint_as_float(x)); }

// Two numbers rounded to nearest even, in one word.
template <int kType>
__device__ __forceinline__ u32 pack_rounded(float low, float high) {
#ifdef PLIMSOLL_HOST_TWIN
  return pack2(kType, low, high);
#else
  u32 word;
  if constexpr (kType == kBf16)
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  else
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
#endif
}

// 2^x within two units of the last place; 0 for -inf.
__device__ __forceinline__ float exp2_fast(float x) {
#ifdef PLIMSOLL_HOST_TWIN
  return __builtin_exp2f(x);
#else
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#endif
}

}  // namespace plimsoll::cuda
