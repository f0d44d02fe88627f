// The part of CUDA's C++ that the kernels are written in, for a compiler of the host: kernels/*.cu are
// compiled with this file in front. Arithmetic is IEEE's without contraction. What a kernel uses and this
// file lacks does not compile.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "backends/cuda/twin/block.h"

#define PLIMSOLL_HOST_TWIN 1
#define __CUDACC__ 1
#define __CUDACC_RTC__ 1
#define __CUDA_ARCH__ 900

#define __global__
#define __device__
#define __host__
#define __constant__ static
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __restrict__ __restrict
#define __align__(n) __attribute__((aligned(n)))
// A static object of a section of the file's own, which is made unreadable before each block. Arrays that are
// declared extern become pointers: make_twin.py.
#define __shared__ static __attribute__((section(TWIN_SECTION)))

struct alignas(8) int2 {
  int x, y;
};
struct alignas(16) int4 {
  int x, y, z, w;
};
struct uint3 {
  unsigned x, y, z;
};
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(4) ushort2 {
  unsigned short x, y;
};
struct alignas(8) ushort4 {
  unsigned short x, y, z, w;
};
struct alignas(8) float2 {
  float x, y;
};
struct float3 {
  float x, y, z;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(16) double2 {
  double x, y;
};
struct alignas(16) longlong2 {
  long long x, y;
};
struct alignas(16) ulonglong2 {
  unsigned long long x, y;
};
struct dim3 {
  unsigned x = 1, y = 1, z = 1;
};

inline int2 make_int2(int x, int y) { return {x, y}; }
inline int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline double2 make_double2(double x, double y) { return {x, y}; }

// Of the thread that runs now; block.cpp sets them.
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
constexpr int warpSize = 32;

// ---- bits
namespace twin {
template <typename To, typename From>
inline To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}
}  // namespace twin
inline float __uint_as_float(unsigned bits) { return twin::bits_as<float>(bits); }
inline float __int_as_float(int bits) { return twin::bits_as<float>(bits); }
inline unsigned __float_as_uint(float value) { return twin::bits_as<unsigned>(value); }
inline int __float_as_int(float value) { return twin::bits_as<int>(value); }
inline double __longlong_as_double(long long bits) { return twin::bits_as<double>(bits); }
inline long long __double_as_longlong(double value) { return twin::bits_as<long long>(value); }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x)); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline unsigned __umulhi(unsigned a, unsigned b) { return static_cast<unsigned>(uint64_t{a} * b >> 32); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>(static_cast<unsigned __int128>(a) * b >> 64);
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned by) {
  return static_cast<unsigned>((uint64_t{high} << 32 | low) << (by & 31) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned by) {
  return static_cast<unsigned>((uint64_t{high} << 32 | low) >> (by & 31));
}
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  const uint64_t bytes = uint64_t{y} << 32 | x;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) {
    const unsigned byte = static_cast<unsigned>(bytes >> (8 * (selector >> (4 * i) & 7))) & 0xffu;
    result |= ((selector >> (4 * i) & 8) != 0 ? ((byte & 0x80u) != 0 ? 0xffu : 0u) : byte) << (8 * i);
  }
  return result;
}

// ---- arithmetic
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fsqrt_rn(float a) { return std::sqrt(a); }
inline float __frcp_rn(float a) { return 1.0f / a; }
inline float __fmaf_rn(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __dadd_rn(double a, double b) { return a + b; }
inline float __fdividef(float a, float b) { return a / b; }
inline float __expf(float x) { return std::exp(x); }
inline float __logf(float x) { return std::log(x); }
inline float __saturatef(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
inline int __float2int_rn(float x) { return static_cast<int>(std::nearbyint(x)); }
namespace twin {
// The product of two floats is exact in double: one rounding more than the instruction's, and far quicker
// than the library's where there is no such instruction.
inline float fused(float a, float b, float c) {
  return static_cast<float>(static_cast<double>(a) * static_cast<double>(b) + static_cast<double>(c));
}
inline float larger(float a, float b) { return a > b || b != b ? a : b; }
inline float smaller(float a, float b) { return a < b || b != b ? a : b; }
}  // namespace twin
#define fmaf twin::fused
#define fmaxf twin::larger
#define fminf twin::smaller
inline int min(int a, int b) { return a < b ? a : b; }
inline int max(int a, int b) { return a > b ? a : b; }
inline unsigned min(unsigned a, unsigned b) { return a < b ? a : b; }
inline unsigned max(unsigned a, unsigned b) { return a > b ? a : b; }
inline long min(long a, long b) { return a < b ? a : b; }
inline long max(long a, long b) { return a > b ? a : b; }
inline long long min(long long a, long long b) { return a < b ? a : b; }
inline long long max(long long a, long long b) { return a > b ? a : b; }
inline float min(float a, float b) { return twin::smaller(a, b); }
inline float max(float a, float b) { return twin::larger(a, b); }
template <typename T>
inline T __ldg(const T* at) {
  return *at;
}
// cvt of inline assembly: make_twin.py calls these by the instruction's name.
namespace twin {
inline void ptx_cvt_f32_f16(float& value, uint16_t bits) {
  value = static_cast<float>(bits_as<_Float16>(bits));
}
inline void ptx_cvt_rn_f16_f32(uint16_t& bits, float value) {
  bits = bits_as<uint16_t>(static_cast<_Float16>(value));
}
inline void ptx_cvt_rn_bf16_f32(uint16_t& bits, float value) {
  const uint32_t word = bits_as<uint32_t>(value);
  bits = (word & 0x7fffffffu) > 0x7f800000u
             ? 0x7fff
             : static_cast<uint16_t>((word + 0x7fffu + (word >> 16 & 1u)) >> 16);
}
inline void ptx_ex2_approx_ftz_f32(float& y, float x) { y = std::exp2(x); }
inline void ptx_ex2_approx_f32(float& y, float x) { y = std::exp2(x); }
inline void ptx_rcp_approx_ftz_f32(float& y, float x) { y = 1.0f / x; }
}  // namespace twin

// ---- threads of a block
inline void __syncthreads(twin::Place place = twin::here()) { twin::meet_block(0, place); }
inline int __syncthreads_or(int vote, twin::Place place = twin::here()) {
  return twin::meet_block(vote, place).any;
}
inline int __syncthreads_and(int vote, twin::Place place = twin::here()) {
  return twin::meet_block(vote, place).all;
}
inline int __syncthreads_count(int vote, twin::Place place = twin::here()) {
  return twin::meet_block(vote, place).count;
}
inline void __threadfence() {}
inline void __threadfence_block() {}
[[noreturn]] inline void __trap() { twin::fail("__trap", twin::here()); }

// ---- lanes of a warp
inline void __syncwarp(unsigned mask = 0xffffffffu, twin::Place place = twin::here()) {
  twin::meet_lanes(nullptr, 0, mask, 0, nullptr, place);
}
template <typename T>
inline T __shfl_sync(unsigned mask, T value, int from, int width = 32, twin::Place place = twin::here()) {
  return twin::from_lane(value, mask, (twin::lane() & ~(width - 1)) | (from & (width - 1)), place);
}
template <typename T>
inline T __shfl_xor_sync(unsigned mask, T value, int by, int width = 32, twin::Place place = twin::here()) {
  const int from = twin::lane() ^ by;  // beyond its own part a lane reads those below, never those above
  return twin::from_lane(value, mask, from >= (twin::lane() & ~(width - 1)) + width ? twin::lane() : from,
                         place);
}
template <typename T>
inline T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = 32,
                          twin::Place place = twin::here()) {
  const int at = (twin::lane() & (width - 1)) + static_cast<int>(by);
  return twin::from_lane(value, mask, at < width ? twin::lane() + static_cast<int>(by) : twin::lane(), place);
}
template <typename T>
inline T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = 32,
                        twin::Place place = twin::here()) {
  const int at = (twin::lane() & (width - 1)) - static_cast<int>(by);
  return twin::from_lane(value, mask, at >= 0 ? twin::lane() - static_cast<int>(by) : twin::lane(), place);
}
inline unsigned __ballot_sync(unsigned mask, int vote, twin::Place place = twin::here()) {
  const auto votes = twin::warp_exchange<int>(vote != 0 ? 1 : 0, mask, place);
  unsigned ballot = 0;
  for (int l = 0; l < 32; ++l)
    if (votes[static_cast<size_t>(l)] == 1) ballot |= 1u << l;  // who is absent has no vote
  return ballot;
}
inline int __any_sync(unsigned mask, int vote, twin::Place place = twin::here()) {
  return __ballot_sync(mask, vote, place) != 0 ? 1 : 0;
}
inline int __all_sync(unsigned mask, int vote, twin::Place place = twin::here()) {
  return __ballot_sync(mask, vote != 0 ? 0 : 1, place) == 0 ? 1 : 0;
}
