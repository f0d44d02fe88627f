// Operands in any floating dtype: arithmetic is f32, and a result is rounded once, when it is stored.
#pragma once

#include "backends/cuda/device/convert.cuh"
#include "backends/cuda/device/types.cuh"

namespace plimsoll::cuda {

__device__ __forceinline__ float load(const Operand& x, i64 i) {
  if (x.dtype == kF32) return static_cast<const float*>(x.data)[i];
  const u16 bits = static_cast<const u16*>(x.data)[i];
  return x.dtype == kBf16 ? from_bf16(bits) : from_f16(bits);
}
__device__ __forceinline__ void store(const Operand& x, i64 i, float value) {
  if (x.dtype == kF32)
    static_cast<float*>(x.data)[i] = value;
  else
    static_cast<u16*>(x.data)[i] = x.dtype == kBf16 ? to_bf16(value) : to_f16(value);
}
__device__ __forceinline__ bool given(const Operand& x) { return x.data != nullptr; }

// Eight elements from i on, where `vec` in 16-byte words.
__device__ __forceinline__ bool aligned16(const Operand& x) { return ((u64)x.data & 15) == 0; }
__device__ __forceinline__ void unpack2(u32 word, int dtype, float* v) {
  const u16 low = (u16)(word & 0xffffu), high = (u16)(word >> 16);
  v[0] = dtype == kBf16 ? from_bf16(low) : from_f16(low);
  v[1] = dtype == kBf16 ? from_bf16(high) : from_f16(high);
}
__device__ __forceinline__ u32 pack2(int dtype, float low, float high) {
  return dtype == kBf16 ? (u32)to_bf16(low) | (u32)to_bf16(high) << 16
                        : (u32)to_f16(low) | (u32)to_f16(high) << 16;
}
__device__ __forceinline__ void load8(const Operand& x, i64 i, float* v, bool vec) {
  if (!vec) {
#pragma unroll
    for (int e = 0; e < 8; ++e) v[e] = load(x, i + e);
  } else if (x.dtype == kF32) {
    const float4* at = (const float4*)((const float*)x.data + i);
    const float4 a = at[0], b = at[1];
    v[0] = a.x, v[1] = a.y, v[2] = a.z, v[3] = a.w, v[4] = b.x, v[5] = b.y, v[6] = b.z, v[7] = b.w;
  } else {
    const uint4 a = *(const uint4*)((const u16*)x.data + i);
    unpack2(a.x, x.dtype, v), unpack2(a.y, x.dtype, v + 2), unpack2(a.z, x.dtype, v + 4),
        unpack2(a.w, x.dtype, v + 6);
  }
}
__device__ __forceinline__ void store8(const Operand& x, i64 i, const float* v, bool vec) {
  if (!vec) {
#pragma unroll
    for (int e = 0; e < 8; ++e) store(x, i + e, v[e]);
  } else if (x.dtype == kF32) {
    float4* at = (float4*)((float*)x.data + i);
    at[0] = make_float4(v[0], v[1], v[2], v[3]);
    at[1] = make_float4(v[4], v[5], v[6], v[7]);
  } else {
    *(uint4*)((u16*)x.data + i) = make_uint4(pack2(x.dtype, v[0], v[1]), pack2(x.dtype, v[2], v[3]),
                                             pack2(x.dtype, v[4], v[5]), pack2(x.dtype, v[6], v[7]));
  }
}
// The first n of eight elements, zeros behind them. Without a loop whose end is not known: arrays stay in
// registers.
__device__ __forceinline__ void load_part(const Operand& x, i64 i, int n, float* v, bool vec) {
  if (n == 8) return load8(x, i, v, vec);
#pragma unroll
  for (int e = 0; e < 8; ++e) v[e] = e < n ? load(x, i + e) : 0.0f;
}
__device__ __forceinline__ void store_part(const Operand& x, i64 i, int n, const float* v, bool vec) {
  if (n == 8) return store8(x, i, v, vec);
#pragma unroll
  for (int e = 0; e < 8; ++e)
    if (e < n) store(x, i + e, v[e]);
}
// x as `dtype` holds it.
__device__ __forceinline__ float rounded_to(float x, int dtype) {
  return dtype == kBf16 ? from_bf16(to_bf16(x)) : dtype == kF16 ? from_f16(to_f16(x)) : x;
}
__device__ __forceinline__ float rounded_to_tf32(float x) {
  const u32 bits = __float_as_uint(x);
  if ((bits & 0x7f800000u) == 0x7f800000u) return x;
  return __uint_as_float((bits + 0xfffu + (bits >> 13 & 1u)) & 0xffffe000u);  // to nearest even
}

}  // namespace plimsoll::cuda
