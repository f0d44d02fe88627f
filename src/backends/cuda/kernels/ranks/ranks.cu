// The sum over ranks, an element a thread. Ranks of a group of eight are added in their order, then groups in
// theirs, and so on: the additions of the CPU's kernel, so the bits are the same.
#include "backends/cuda/device/grid.cuh"
#include "backends/cuda/kernels/ranks/ranks_args.h"

namespace plimsoll::cuda {

extern "C" __global__ void sum_ranks(const __grid_constant__ SumRanks a) {
  begin_grid();
  const i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  if (i >= a.n) return;
  float sums[kSumLevels];
  for (int rank = 0; rank < a.ranks; ++rank) {
    const float value = a.received[rank * a.n + i];
    sums[0] = rank % kSumFanIn == 0 ? value : __fadd_rn(sums[0], value);
    int behind = rank + 1;  // of the groups of the level below
#pragma unroll
    for (int level = 1; level < kSumLevels; ++level) {
      if (level >= a.levels || (behind % kSumFanIn != 0 && rank + 1 != a.ranks)) break;
      const int group = (behind + kSumFanIn - 1) / kSumFanIn - 1;
      sums[level] = group % kSumFanIn == 0 ? sums[level - 1] : __fadd_rn(sums[level], sums[level - 1]);
      behind = group + 1;
    }
  }
  float sum = sums[0];
#pragma unroll
  for (int level = 1; level < kSumLevels; ++level)
    if (level < a.levels) sum = sums[level];
  a.out[i] = sum;
}

}  // namespace plimsoll::cuda
