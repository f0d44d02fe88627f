// The table of angles, and the turn of heads.
#include "backends/cuda/device/grid.cuh"
#include "backends/cuda/device/place.cuh"
#include "backends/cuda/device/vector.cuh"
#include "backends/cuda/kernels/attention/rope_args.h"

namespace plimsoll::cuda {

extern "C" __global__ void rope_table(RopeTable args) {
  begin_grid();
  const i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  if (i >= args.rows * args.half) return;
  const auto [row, f] = place_of(i, args.half);
  const double angle =
      (args.positions != nullptr ? (double)args.positions[row] : (double)row) * (double)args.inv_freq[f];
  args.table[row * 2 * args.half + f] = (float)(cos(angle) * args.factor);
  args.table[row * 2 * args.half + args.half + f] = (float)(sin(angle) * args.factor);
}

// A thread takes eight pairs of a head, or one where heads are no multiple of that. Heads behind the turned
// ones are copied, where y is not x.
extern "C" __global__ void rope_rows(RopeRows a) {
  begin_grid();
  const int width = a.half % 8 == 0 ? 8 : 1;
  const i64 parts = a.half / width, heads = a.y.data == a.x.data ? a.turned : a.heads;
  const i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  if (i >= a.rows * heads * parts) return;
  const Place part = place_of(i, parts), at = place_of(part.row, heads);
  const i64 p = part.col * width, head = at.col, row = at.row;
  const i64 from = row * a.stride + head * 2 * a.half + p, to = (row * a.heads + head) * 2 * a.half + p;
  const float* cosines = a.table + place_of(row, a.table_rows).col * 2 * a.half + p;
  const bool turns = head < a.turned;
  if (width == 8) {
    const bool vec = aligned16(a.x) && aligned16(a.y) && a.stride % 8 == 0;
    float u[8], v[8];
    load8(a.x, from, u, vec), load8(a.x, from + a.half, v, vec);
    if (turns) {
      const Operand angles{(void*)cosines, kF32, 0};
      float c[8], s[8];
      load8(angles, 0, c, aligned16(angles)), load8(angles, a.half, s, aligned16(angles));
      for (int e = 0; e < 8; ++e) {
        const float sine = a.sign * s[e], x = u[e];
        u[e] = x * c[e] - v[e] * sine;
        v[e] = v[e] * c[e] + x * sine;
      }
    }
    store8(a.y, to, u, vec), store8(a.y, to + a.half, v, vec);
    return;
  }
  const float u = load(a.x, from), v = load(a.x, from + a.half), c = turns ? cosines[0] : 1.0f,
              s = turns ? a.sign * cosines[a.half] : 0.0f;
  store(a.y, to, turns ? u * c - v * s : u);
  store(a.y, to + a.half, turns ? v * c + u * s : v);
}

}  // namespace plimsoll::cuda
