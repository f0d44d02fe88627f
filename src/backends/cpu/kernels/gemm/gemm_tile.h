// The kinds of work in gemm that are compiled once per instruction set (gemm_tile.cpp): packing a strip of A
// or of B, multiplying one tile, and turning sums into a low C.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/gemm/gemm.h"
#include "backends/cpu/kernels/gemm/gemm_ahead.h"
#include "backends/cpu/kernels/gemm/gemm_plan.h"

namespace plimsoll::cpu {

/// A block of rows and columns of C over a run of granules, with its packed operands. The panels of one
/// granule of A start at a + (granule.begin - first) * padded_rows, those of B likewise.
struct GemmBlock {
  const GemmArgs* args = nullptr;
  int64_t m0 = 0, m1 = 0, n0 = 0, n1 = 0;
  int64_t first_granule = 0, end_granule = 0;
  int64_t padded_rows = 0, padded_columns = 0;
  float* a = nullptr;
  float* b = nullptr;
};

/// What one task packs: rows of A or columns of B [begin, end), whose distance from the block's first is a
/// multiple of kGemmRowUnit or kGemmColumnUnit, for some granules. Where k runs along the contiguous side all
/// of it is packed together; else k in [p0, p1) of each granule, so that both ways memory is read in long
/// runs.
struct GemmStrip {
  int64_t begin = 0, end = 0;
  int64_t first_granule = 0, end_granule = 0;
  int64_t p0 = 0, p1 = kGemmGranule;
};

void gemm_pack_a(const GemmBlock& block, const GemmStrip& strip);
void gemm_pack_b(const GemmBlock& block, const GemmStrip& strip);
/// C's tile [i0, i1) x [j0, j1), all granules of the block; the corners are multiples of the units as above.
void gemm_multiply(const GemmBlock& block, int64_t i0, int64_t i1, int64_t j0, int64_t j1,
                   const GemmAhead& ahead = {});
/// One row of C from its f32 sums: plus the bias, rounded to C's dtype.
void gemm_finish_row(const float* sums, const GemmArgs& args, void* c);

}  // namespace plimsoll::cpu
