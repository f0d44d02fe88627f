// Types that the kernels and the host's side of them share. Plain structs, which both compilers lay out
// alike: a launch hands a kernel one of them, byte by byte. Included by the host too, hence without
// functions. The runtime compiler comes without headers where it is a wheel of its own, so the device
// includes none but these.
#pragma once

#ifndef __CUDACC_RTC__
#include <cstdint>
#endif

namespace plimsoll::cuda {

#ifdef __CUDACC_RTC__
using i64 = long long;
using u64 = unsigned long long;
#else
using i64 = std::int64_t;
using u64 = std::uint64_t;
#endif
using u32 = unsigned int;
using u16 = unsigned short;  // bf16 and f16 as stored

/// ir::DType's numbers.
enum : int { kF32 = 0, kBf16 = 1, kF16 = 2, kU8 = 7, kI32 = 8 };

/// Elements at an address, of a floating dtype or i32.
struct Operand {
  void* data = nullptr;  ///< null where an optional operand is absent
  int dtype = kF32;
  int padding = 0;
};
static_assert(sizeof(Operand) == 16);

/// Granules of rows as ops/granules.h defines them.
struct DeviceGranules {
  i64 segment = 1, per_segment = 1;
};
constexpr int kGranuleRows = 256;

/// Elements that a thread moves at once: 16 bytes of a 16-bit dtype.
constexpr int kEach = 8;

/// What a launch takes by value.
constexpr int kMostArgumentBytes = 4096;

/// A kernel: the .cu file that has it ("norm/norm" is kernels/norm/norm.cu) and its name there. It takes
/// `Args` by value and nothing else: see Stream::launch.
template <typename Args>
struct DeviceKernel {
  const char* module;
  const char* name;
};

}  // namespace plimsoll::cuda
