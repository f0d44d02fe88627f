// Shared device code of all kernels. Compiled with the runtime compiler, in front of every .cu file of this
// folder. Operands come in any floating dtype; arithmetic is f32, and a result is rounded once, when it is
// stored. No header is included: the compiler comes without any where it is a wheel of its own.
typedef long long i64;
typedef unsigned long long u64;
typedef unsigned int u32;

// ir::DType's numbers.
enum { kF32 = 0, kBf16 = 1, kF16 = 2, kU8 = 7, kI32 = 8 };

struct Operand {
  void* data;
  int dtype;
  int padding;
};

typedef unsigned short u16;  // bf16 and f16 as stored

__device__ __forceinline__ float from_bf16(u16 bits) { return __uint_as_float((u32)bits << 16); }
__device__ __forceinline__ float from_f16(u16 bits) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
}
// Rounded to nearest even.
__device__ __forceinline__ u16 to_bf16(float value) {
#if __CUDA_ARCH__ < 800  // no such instruction
  const u32 word = __float_as_uint(value);
  if ((word & 0x7fffffffu) > 0x7f800000u) return (u16)0x7fff;
  return (u16)((word + 0x7fffu + (word >> 16 & 1u)) >> 16);
#else
  u16 bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
#endif
}
__device__ __forceinline__ u16 to_f16(float value) {
  u16 bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}

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

// The same sum in every run: within a warp by a butterfly, then the warps in order. All threads of the block
// call it, with a shared array of 32 floats; all get the sum.
__device__ __forceinline__ float block_sum(float value, float* shared) {
  for (int offset = 16; offset > 0; offset >>= 1) value += __shfl_xor_sync(0xffffffffu, value, offset);
  const int warp = threadIdx.x >> 5, warps = (blockDim.x + 31) >> 5;
  __syncthreads();
  if ((threadIdx.x & 31) == 0) shared[warp] = value;
  __syncthreads();
  float sum = 0;
  for (int w = 0; w < warps; ++w) sum += shared[w];
  return sum;
}

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
// x as `dtype` holds it.
__device__ __forceinline__ float rounded_to(float x, int dtype) {
  return dtype == kBf16 ? from_bf16(to_bf16(x)) : dtype == kF16 ? from_f16(to_f16(x)) : x;
}
__device__ __forceinline__ float rounded_to_tf32(float x) {
  const u32 bits = __float_as_uint(x);
  if ((bits & 0x7f800000u) == 0x7f800000u) return x;
  return __uint_as_float((bits + 0xfffu + (bits >> 13 & 1u)) & 0xffffe000u);  // to nearest even
}

__device__ __forceinline__ float block_max(float value, float* shared) {
  for (int offset = 16; offset > 0; offset >>= 1)
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, offset));
  const int warp = threadIdx.x >> 5, warps = (blockDim.x + 31) >> 5;
  __syncthreads();
  if ((threadIdx.x & 31) == 0) shared[warp] = value;
  __syncthreads();
  float most = shared[0];
  for (int w = 1; w < warps; ++w) most = fmaxf(most, shared[w]);
  return most;
}

// Philox-4x32-10, as numerics/philox.h.
__device__ __forceinline__ uint4 philox4(u32 c0, u32 c1, u32 c2, u32 c3, u32 k0, u32 k1) {
  for (int round = 0; round < 10; ++round) {
    const u64 p0 = (u64)0xD2511F53u * c0, p1 = (u64)0xCD9E8D57u * c2;
    const u32 n0 = (u32)(p1 >> 32) ^ c1 ^ k0, n2 = (u32)(p0 >> 32) ^ c3 ^ k1;
    c1 = (u32)p1, c3 = (u32)p0, c0 = n0, c2 = n2;
    k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
  }
  return make_uint4(c0, c1, c2, c3);
}
__device__ __forceinline__ u32 word_of(const uint4& words, int i) {
  return i == 0 ? words.x : i == 1 ? words.y : i == 2 ? words.z : words.w;
}

// Granules of rows, as ops.h defines them.
struct Granules {
  i64 segment, per_segment;
};
__device__ __forceinline__ i64 granule_begin(const Granules& g, i64 i) {
  return i / g.per_segment * g.segment + i % g.per_segment * 256;
}
__device__ __forceinline__ i64 granule_end(const Granules& g, i64 i) {
  const i64 end = granule_begin(g, i) + 256, limit = (i / g.per_segment + 1) * g.segment;
  return end < limit ? end : limit;
}
