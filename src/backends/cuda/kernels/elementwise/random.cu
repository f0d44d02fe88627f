// Draws as ops/philox.h lays them out: four elements a thread.
#include "backends/cuda/device/grid.cuh"
#include "backends/cuda/device/philox.cuh"
#include "backends/cuda/device/place.cuh"
#include "backends/cuda/device/vector.cuh"
#include "backends/cuda/kernels/elementwise/random_args.h"

namespace plimsoll::cuda {

// x [sequences, n]; kept where its word is at least the threshold, then divided by `keep`.
extern "C" __global__ void dropout(Dropout args) {
  begin_grid();
  const i64 quads = (args.n + 3) / 4, at = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  if (at >= args.sequences * quads) return;
  const auto [sequence, quad] = place_of(at, quads);
  const uint4 words = philox4((u32)quad, args.random[3] + (u32)sequence, args.random[2], args.key,
                              args.random[0], args.random[1]);
  for (int e = 0; e < 4 && 4 * quad + e < args.n; ++e) {
    const i64 i = sequence * args.n + 4 * quad + e;
    store(args.out, i, (u64)word_of(words, e) >= args.threshold ? load(args.x, i) / args.keep : 0.0f);
  }
}

extern "C" __global__ void random_normal(RandomNormal args) {
  begin_grid();
  const i64 quad = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  if (4 * quad >= args.n) return;
  const uint4 words = philox4((u32)quad, 0, 0, args.key, args.random[0], args.random[1]);
  for (int pair = 0; pair < 2; ++pair) {
    const double u = ((double)word_of(words, 2 * pair) + 0.5) * 0x1p-32;
    const double angle = 6.283185307179586 * (((double)word_of(words, 2 * pair + 1) + 0.5) * 0x1p-32);
    const double radius = sqrt(-2.0 * log(u));
    const i64 i = 4 * quad + 2 * pair;
    if (i < args.n) store(args.out, i, (float)(args.mean + args.std * (radius * cos(angle))));
    if (i + 1 < args.n) store(args.out, i + 1, (float)(args.mean + args.std * (radius * sin(angle))));
  }
}

}  // namespace plimsoll::cuda
