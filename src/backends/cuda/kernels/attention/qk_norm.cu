// Norms of heads of queries and keys, then the rotation: a warp a head, at most kMostNormedHead wide.
#include "backends/cuda/device/grid.cuh"
#include "backends/cuda/device/place.cuh"
#include "backends/cuda/device/reduce.cuh"
#include "backends/cuda/device/vector.cuh"
#include "backends/cuda/kernels/attention/qk_norm_args.h"

namespace plimsoll::cuda {

extern "C" __global__ void qk_norm_rope_heads(HeadNorm a) {
  begin_grid();
  const int packed = a.heads + 2 * a.kv_heads, half = a.head_dim / 2, lane = threadIdx.x & 31;
  const i64 at = blockIdx.x * 8ll + (threadIdx.x >> 5);
  if (at >= a.tokens * packed) return;
  const Place place = place_of(at, packed);
  const i64 token = place.row;
  const int head = (int)place.col;
  const i64 from = token * a.stride + (i64)head * a.head_dim, to = at * a.head_dim;
  if (head >= a.heads + a.kv_heads) {
    for (int d = lane; d < a.head_dim; d += 32) store(a.out, to + d, load(a.x, from + d));
    return;
  }
  const bool keys = head >= a.heads;
  const Operand weight = keys ? a.k_weight : a.q_weight;
  float u[8], v[8], squares = 0;
#pragma unroll
  for (int e = 0; e < 8; ++e) {
    const int i = lane + 32 * e;
    u[e] = i < half ? load(a.x, from + i) : 0.0f;
    v[e] = i < half ? load(a.x, from + half + i) : 0.0f;
    squares += u[e] * u[e] + v[e] * v[e];
  }
  squares = warp_sum(squares);
  const float rstd = 1.0f / sqrtf(squares / (float)a.head_dim + a.eps);
  if (lane == 0) {
    if (keys)
      a.k_rstd[token * a.kv_heads + head - a.heads] = rstd;
    else
      a.q_rstd[token * a.heads + head] = rstd;
  }
  const float* angles = a.table + place_of(token, a.table_rows).col * a.head_dim;
#pragma unroll
  for (int e = 0; e < 8; ++e) {
    const int i = lane + 32 * e;
    if (i >= half) continue;
    const float c = angles[i], s = angles[half + i];
    const float p = u[e] * rstd * load(weight, i), r = v[e] * rstd * load(weight, half + i);
    store(a.out, to + i, p * c - r * s);
    store(a.out, to + half + i, r * c + p * s);
  }
}
// out may lie where dy or x does.
extern "C" __global__ void qk_norm_rope_heads_grad(HeadNorm a) {
  begin_grid();
  const int packed = a.heads + 2 * a.kv_heads, half = a.head_dim / 2, lane = threadIdx.x & 31;
  const i64 at = blockIdx.x * 8ll + (threadIdx.x >> 5);
  if (at >= a.tokens * packed) return;
  const Place place = place_of(at, packed);
  const i64 token = place.row;
  const int head = (int)place.col;
  const i64 from = token * a.stride + (i64)head * a.head_dim,
            dy = token * a.dy_stride + (i64)head * a.head_dim;
  const i64 to = at * a.head_dim;
  if (head >= a.heads + a.kv_heads) {
    for (int d = lane; d < a.head_dim; d += 32) store(a.out, to + d, load(a.dy, dy + d));
    return;
  }
  const bool keys = head >= a.heads;
  const Operand weight = keys ? a.k_weight : a.q_weight;
  const float rstd = keys ? a.k_rstd[token * a.kv_heads + head - a.heads] : a.q_rstd[token * a.heads + head];
  const float* angles = a.table + place_of(token, a.table_rows).col * a.head_dim;
  float u[8], v[8], p[8], r[8], mean = 0;  // xhat, and the gradient turned back times weight
#pragma unroll
  for (int e = 0; e < 8; ++e) {
    const int i = lane + 32 * e;
    u[e] = v[e] = p[e] = r[e] = 0.0f;
    if (i >= half) continue;
    const float c = angles[i], s = angles[half + i], d0 = load(a.dy, dy + i), d1 = load(a.dy, dy + half + i);
    u[e] = load(a.x, from + i) * rstd, v[e] = load(a.x, from + half + i) * rstd;
    p[e] = (d0 * c + d1 * s) * load(weight, i), r[e] = (d1 * c - d0 * s) * load(weight, half + i);
    mean += p[e] * u[e] + r[e] * v[e];
  }
  mean = warp_sum(mean);
  mean /= (float)a.head_dim;
#pragma unroll
  for (int e = 0; e < 8; ++e) {
    const int i = lane + 32 * e;
    if (i >= half) continue;
    store(a.out, to + i, rstd * (p[e] - u[e] * mean));
    store(a.out, to + half + i, rstd * (r[e] - v[e] * mean));
  }
}
// partial [granules, head_dim]: rows are the heads of q, or of k, over the tokens of a sequence. A block a
// granule.
extern "C" __global__ void qk_norm_rope_weight(HeadNormWeight args) {
  begin_grid();
  const HeadNorm& a = args.norm;
  const int half = a.head_dim / 2, count = args.keys ? a.kv_heads : a.heads;
  const i64 begin = granule_begin(args.granules, blockIdx.x), end = granule_end(args.granules, blockIdx.x);
  const float* rstd = args.keys ? a.k_rstd : a.q_rstd;
  for (int d = threadIdx.x; d < a.head_dim; d += blockDim.x) {
    const int i = d % half;
    float sum = 0;
    auto [token, nth] = place_of(begin, count);  // heads of a token, one after the other
    i64 angle = place_of(token, a.table_rows).col;
    for (i64 row = begin; row < end; ++row) {
      const i64 head = nth + (args.keys ? a.heads : 0);
      const float* angles = a.table + angle * a.head_dim;
      const float c = angles[i], s = angles[half + i];
      const i64 dy = token * a.dy_stride + head * a.head_dim;
      const float d0 = load(a.dy, dy + i), d1 = load(a.dy, dy + half + i);
      const float turned = d < half ? d0 * c + d1 * s : d1 * c - d0 * s;
      sum += turned * (load(a.x, token * a.stride + head * a.head_dim + d) * rstd[row]);
      if (++nth < count) continue;
      nth = 0, ++token;
      if (++angle == a.table_rows) angle = 0;
    }
    args.partial[blockIdx.x * (i64)a.head_dim + d] = sum;
  }
}

}  // namespace plimsoll::cuda
