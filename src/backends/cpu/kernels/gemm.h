// General matrix multiplication, the one interface for every linear map of the CPU backend.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "backends/cpu/thread_pool.h"

namespace plimsoll::cpu {

/// Elements between consecutive rows and columns of an f32 matrix; any strides are allowed.
struct ConstMatrix {
  const float* data = nullptr;
  int64_t row_stride = 0;
  int64_t col_stride = 1;
};

/// C [m,n] = A [m,k] · B [k,n], with C's columns contiguous.
///
/// Numerics: k is cut into segments of `k_segment` (0: one segment), each segment into granules of 256 that
/// restart with it. Within a granule products are added in order of k with fused multiply-add where the
/// instruction set has it, from zero; granules are added to C in order (the first one is stored unless
/// `accumulate`). So the bits depend on k and k_segment alone, never on m, n, threads or on how m is split,
/// and a sum over segments may be continued by a later call with `accumulate`.
struct GemmArgs {
  int64_t m = 0, n = 0, k = 0;
  ConstMatrix a = {};  ///< element (i, p) is a.data[i * row_stride + p * col_stride]
  ConstMatrix b = {};  ///< element (p, j)
  float* c = nullptr;
  int64_t c_row_stride = 0;
  int64_t k_segment = 0;        ///< length of a sequence where k runs over tokens
  bool accumulate = false;      ///< C += instead of C =
  const float* bias = nullptr;  ///< [n], added after the last granule
};

/// Bytes of scratch that `gemm` uses, a multiple of 64 and at most 6 MiB: packed A and packed B, shared by
/// the threads. A function of the shape and the number of threads, no more.
int64_t gemm_workspace_bytes(int64_t m, int64_t n, int64_t k, int num_threads);

/// Runs on `pool`; returns when C is complete. `workspace` has at least gemm_workspace_bytes(), aligned to
/// 64; C overlaps neither A, B nor the workspace. Allocates nothing. With k = 0, C is kept (`accumulate`) or
/// set to zero, plus bias.
void gemm(const GemmArgs& args, ThreadPool& pool, std::span<std::byte> workspace);

}  // namespace plimsoll::cpu
