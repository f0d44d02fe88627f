// General matrix multiplication, the one interface for every linear layer of the CPU backend.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "backends/cpu/kernels/gemm/coded_matrix.h"
#include "backends/cpu/kernels/gemm/patches.h"
#include "backends/cpu/thread_pool.h"
#include "ir/dtype.h"
#include "ops/rounding.h"

namespace plimsoll::cpu {

/// What both operands are rounded to (to nearest even) before they are multiplied. kF16 multiplies fp16
/// values in fp32 arithmetic.
using ops::Precision;

/// A matrix in memory: elements of `dtype` (f32, bf16 or f16) and the elements, not bytes, between
/// consecutive rows and columns; any strides are allowed. Or patches, in a product that convolves (then
/// `data` and the strides stay as they are here): A of rows of patches, or B of rows of patches. Or codes,
/// where gemm_reads_codes(): no `data`, bf16, the stride of what lies side by side is 1.
struct ConstMatrix {
  const void* data = nullptr;
  int64_t row_stride = 0;
  int64_t col_stride = 1;
  ir::DType dtype = ir::DType::kF32;
  const Patches* patches = nullptr;
  int64_t first_line = 0;  ///< of patches or codes: the row (of A) or column (of B) that is the first
  const CodedMatrix* codes = nullptr;
};

/// C [m,n] = A [m,k] · B [k,n], with C's columns contiguous. Casts are part of the packing: an operand of
/// any dtype is rounded to `precision` on its way, or widened.
///
/// Numerics: k is cut into segments of `k_segment` (0: one segment). The bits depend on k, k_segment, the
/// dtypes, the precision and the instruction set alone, never on m, n, threads or on how m is split; and a
/// sum over segments, or one cut at multiples of 256 of its only segment, may be continued by a later call
/// with `accumulate`. Two orders of summation:
/// - all but kBf16, and kBf16 without instructions for it: granules of 256 that restart with each segment;
///   within a granule products are added in order of k with fused multiply-add where the instruction set has
///   it, from zero; granules are added to C in order (the first one is stored unless `accumulate`).
/// - kBf16 with AVX512_BF16 or AMX: in order of k onto C itself, two products (AVX512_BF16) or 32 (AMX) at a
///   time, with zeros behind each segment up to a multiple of 32. Both take denormals for zero.
/// The bias is added last. A low C is what an f32 C would be, rounded once, after the bias. With `plus_c`
/// what C held is added to that, in f32, and rounded to C's dtype again.
struct GemmArgs {
  int64_t m = 0, n = 0, k = 0;
  ConstMatrix a = {};  ///< element (i, p) is a.data[i * row_stride + p * col_stride]
  ConstMatrix b = {};  ///< element (p, j)
  void* c = nullptr;   ///< of c_dtype
  int64_t c_row_stride = 0;
  int64_t k_segment = 0;    ///< length of a sequence where k runs over tokens
  bool accumulate = false;  ///< sums go on from C's; only with an f32 C
  bool plus_c = false;      ///< C = what it held + A · B; without `accumulate` and bias
  /// A · B, summed from zero, is multiplied with it before it is added to C (`accumulate`) or stored; null:
  /// with nothing. Only where gemm_scales().
  const float* scale = nullptr;
  const void* bias = nullptr;  ///< [n] of bias_dtype, added after the last granule
  Precision precision = Precision::kF32;
  ir::DType c_dtype = ir::DType::kF32;     ///< f32, bf16 or f16
  ir::DType bias_dtype = ir::DType::kF32;  ///< f32, bf16 or f16
  /// C is too large for a cache to hold until it is read (beyond_caches): kBf16 on instructions for it
  /// writes past them. No bit depends on it.
  bool past_caches = false;
};

/// Whether a C of so many elements is; below, what reads it next finds it in the third-level cache.
inline bool beyond_caches(int64_t elements, ir::DType dtype) {
  return elements * ir::bits(dtype) / 8 >= 32 << 20;
}

/// What the workspace depends on beside the shape. The dtypes of A and B and the bias are free.
struct GemmTypes {
  Precision precision = Precision::kF32;
  ir::DType c_dtype = ir::DType::kF32;
  bool plus_c = false;
};

/// Bytes of scratch that `gemm` uses, a multiple of 64: packed A and packed B, shared by the threads, at most
/// 6 MiB; under kBf16 what the kernels with bf16 instructions want for each thread, if that is more; with a
/// low C or `plus_c` another 1 MiB at most. A function of its arguments, no more: the same for every
/// instruction set.
int64_t gemm_workspace_bytes(int64_t m, int64_t n, int64_t k, int num_threads, GemmTypes types = {});

/// Whether kBf16 runs on bf16 instructions now (AVX512_BF16 or AMX); without them it is as fast as kF32.
bool gemm_has_bf16();

/// Whether gemm takes operands that are codes: kBf16 on instructions for it.
inline bool gemm_reads_codes() { return gemm_has_bf16(); }
/// Whether gemm takes a `scale`: on bf16 instructions, where all of k passes in one go.
bool gemm_scales(int64_t k, GemmTypes types);

/// Runs on `pool`; returns when C is complete. `workspace` has at least gemm_workspace_bytes(), aligned to
/// 64; C overlaps neither A, B nor the workspace. Allocates nothing. With k = 0, C is kept (`accumulate`,
/// `plus_c`) or set to zero, plus bias.
void gemm(const GemmArgs& args, ThreadPool& pool, std::span<std::byte> workspace);

}  // namespace plimsoll::cpu
