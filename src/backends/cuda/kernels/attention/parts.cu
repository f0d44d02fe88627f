// dk and dv out of the sums of parts of groups, which mma_dkv.cu gives.
#include "backends/cuda/device/grid.cuh"
#include "backends/cuda/device/vector.cuh"
#include "backends/cuda/kernels/attention/mma_args.h"

namespace plimsoll::cuda {

// A thread an element of dk, then of dv.
extern "C" __global__ void __launch_bounds__(256) attention_parts(AttentionParts a) {
  begin_grid();
  const i64 count = a.rows * a.cols, at = blockIdx.x * 256ll + threadIdx.x;
  if (at >= 2 * count) return;
  const bool of_v = at >= count;
  const i64 element = of_v ? at - count : at;
  float sum = 0;
  for (int part = 0; part < a.parts; ++part) sum += a.partial[2 * part * count + at];
  const i64 place = element / a.cols * a.stride + element % a.cols;
  if (of_v)
    store(a.dv, place, sum);
  else
    store(a.dk, place, sum);
}

}  // namespace plimsoll::cuda
