// Rows of sequences by index, positions, losses against float labels, keys and values that generation keeps.

extern "C" __global__ void positions(const int* start, int* out, i64 n, i64 tokens, int sign) {
  const i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  if (i >= n) return;
  // sign 0: start, where given, is of the sequence; -1: of the token, and taken off.
  out[i] = sign < 0 ? (int)(i % tokens) - start[i]
                    : (int)(i % tokens) + (start != nullptr ? start[i / tokens] : 0);
}

// Block (row of x's sequence or of all rows, columns): `back`: into rows among zeros.
extern "C" __global__ void gather_rows(Operand x, i64 x_row, i64 x_sequence, const int* index, Operand out,
                                       i64 rows, i64 cols, int back) {
  const i64 at = blockIdx.x;
  for (i64 c = threadIdx.x; c < cols; c += blockDim.x) {
    if (back) {
      const i64 sequence = at / rows, row = at % rows;
      store(out, at * cols + c, row == index[sequence] ? load(x, sequence * x_sequence + c) : 0.0f);
    } else {
      store(out, at * cols + c, load(x, at * x_sequence + index[at] * x_row + c));
    }
  }
}

// ---- losses against float labels: a warp a row
extern "C" __global__ void label_loss_rows(Operand x, const float* labels, float* losses, i64 rows, i64 cols,
                                           int squared) {
  const i64 row = blockIdx.x * 8ll + (threadIdx.x >> 5);
  if (row >= rows) return;
  const float first = labels[row * cols];
  float sum = 0;
  if (first == first)
    for (i64 c = threadIdx.x & 31; c < cols; c += 32) {
      const float v = load(x, row * cols + c), y = labels[row * cols + c];
      sum += squared ? (v - y) * (v - y) : fmaxf(v, 0.0f) - v * y + log1pf(expf(-fabsf(v)));
      if (v != v) sum = v;
    }
  for (int offset = 16; offset > 0; offset >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  if ((threadIdx.x & 31) == 0) losses[row] = sum / (float)cols;
}
extern "C" __global__ void label_loss_grad(Operand x, const float* labels, const float* scale, Operand out,
                                           i64 n, i64 cols, int squared) {
  const i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float v = load(x, i), y = labels[i], first = labels[i / cols * cols], each = scale[0] / (float)cols;
  const float slope = squared ? 2.0f * (v - y) : 1.0f / (1.0f + expf(-v)) - y;
  store(out, i, first == first ? slope * each : 0.0f);
}

// ---- keys and values that generation keeps
// x [B, T, cols] into rows start[b] + t of cache [B, S, cols].
extern "C" __global__ void cache_update(Operand cache, Operand x, const int* start, i64 tokens, i64 size,
                                        i64 cols) {
  const i64 batch = blockIdx.x / tokens, position = start[batch] + blockIdx.x % tokens;
  if (position >= size) return;
  for (i64 c = threadIdx.x; c < cols; c += blockDim.x)
    store(cache, (batch * size + position) * cols + c, load(x, blockIdx.x * cols + c));
}

struct CachedAttention {
  Operand q, k, v, out;
  const int* start;
  i64 tokens, size, window;
  int heads, kv_heads, head_dim;
  float scale;
};
// A block a head of a token: eight warps take every eighth position, then join in order. head_dim at most
// 256.
extern "C" __global__ void __launch_bounds__(256) attention_cached(CachedAttention a) {
  __shared__ float most_of[8], total_of[8], out_of[8][256];
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  const i64 at = blockIdx.x, head = at % a.heads, token = at / a.heads, batch = token / a.tokens;
  const i64 position = a.start[batch] + token % a.tokens;
  const i64 last = position < a.size ? position : a.size - 1;
  i64 first = a.window > 0 ? position - a.window + 1 : 0;
  first = first < 0 ? 0 : first > last ? last : first;
  const i64 kv = head / (a.heads / a.kv_heads), kv_stride = (i64)a.kv_heads * a.head_dim;
  float q[8], o[8] = {}, most = __int_as_float(0xff800000), total = 0;
#pragma unroll
  for (int e = 0; e < 8; ++e)
    q[e] = lane + 32 * e < a.head_dim ? load(a.q, at * a.head_dim + lane + 32 * e) : 0.0f;
  for (i64 j = first + warp; j <= last; j += 8) {
    const i64 row = (batch * a.size + j) * kv_stride + kv * a.head_dim;
    float score = 0;
#pragma unroll
    for (int e = 0; e < 8; ++e)
      if (lane + 32 * e < a.head_dim) score = fmaf(q[e], load(a.k, row + lane + 32 * e), score);
    for (int offset = 16; offset > 0; offset >>= 1) score += __shfl_xor_sync(0xffffffffu, score, offset);
    score *= a.scale;
    const float highest = fmaxf(most, score), factor = expf(most - highest), w = expf(score - highest);
    total = total * factor + w;
    most = highest;
#pragma unroll
    for (int e = 0; e < 8; ++e)
      if (lane + 32 * e < a.head_dim) o[e] = o[e] * factor + w * load(a.v, row + lane + 32 * e);
  }
  if (lane == 0) most_of[warp] = most, total_of[warp] = total;
#pragma unroll
  for (int e = 0; e < 8; ++e) out_of[warp][lane + 32 * e] = o[e];
  __syncthreads();
  const int d = threadIdx.x;
  if (d >= a.head_dim) return;
  most = most_of[0];
  for (int w = 1; w < 8; ++w) most = fmaxf(most, most_of[w]);
  float sum = 0;
  total = 0;
  for (int w = 0; w < 8; ++w) {
    if (total_of[w] == 0.0f) continue;  // took no position
    const float factor = expf(most_of[w] - most);
    total += total_of[w] * factor;
    sum += out_of[w][d] * factor;
  }
  store(a.out, at * a.head_dim + d, sum / total);
}

// ---- norms of heads of queries and keys, then the rotation: a warp a head, at most 512 wide
struct HeadNorm {
  Operand dy, x, q_weight, k_weight, out;  // dy of the gradient
  const float* table;
  float *q_rstd, *k_rstd;
  i64 tokens, stride, dy_stride, table_rows;
  int heads, kv_heads, head_dim;
  float eps;
};
extern "C" __global__ void qk_norm_rope_heads(HeadNorm a) {
  const int packed = a.heads + 2 * a.kv_heads, half = a.head_dim / 2, lane = threadIdx.x & 31;
  const i64 at = blockIdx.x * 8ll + (threadIdx.x >> 5);
  if (at >= a.tokens * packed) return;
  const i64 token = at / packed;
  const int head = (int)(at % packed);
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
  for (int offset = 16; offset > 0; offset >>= 1) squares += __shfl_xor_sync(0xffffffffu, squares, offset);
  const float rstd = 1.0f / sqrtf(squares / (float)a.head_dim + a.eps);
  if (lane == 0) {
    if (keys)
      a.k_rstd[token * a.kv_heads + head - a.heads] = rstd;
    else
      a.q_rstd[token * a.heads + head] = rstd;
  }
  const float* angles = a.table + token % a.table_rows * a.head_dim;
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
  const int packed = a.heads + 2 * a.kv_heads, half = a.head_dim / 2, lane = threadIdx.x & 31;
  const i64 at = blockIdx.x * 8ll + (threadIdx.x >> 5);
  if (at >= a.tokens * packed) return;
  const i64 token = at / packed;
  const int head = (int)(at % packed);
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
  const float* angles = a.table + token % a.table_rows * a.head_dim;
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
  for (int offset = 16; offset > 0; offset >>= 1) mean += __shfl_xor_sync(0xffffffffu, mean, offset);
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
extern "C" __global__ void qk_norm_rope_weight(HeadNorm a, int keys, Granules granules, float* partial) {
  const int half = a.head_dim / 2, count = keys ? a.kv_heads : a.heads;
  const i64 begin = granule_begin(granules, blockIdx.x), end = granule_end(granules, blockIdx.x);
  const float* rstd = keys ? a.k_rstd : a.q_rstd;
  for (int d = threadIdx.x; d < a.head_dim; d += blockDim.x) {
    const int i = d % half;
    float sum = 0;
    for (i64 row = begin; row < end; ++row) {
      const i64 token = row / count, head = row % count + (keys ? a.heads : 0);
      const float* angles = a.table + token % a.table_rows * a.head_dim;
      const float c = angles[i], s = angles[half + i];
      const i64 dy = token * a.dy_stride + head * a.head_dim;
      const float d0 = load(a.dy, dy + i), d1 = load(a.dy, dy + half + i);
      const float turned = d < half ? d0 * c + d1 * s : d1 * c - d0 * s;
      sum += turned * (load(a.x, token * a.stride + head * a.head_dim + d) * rstd[row]);
    }
    partial[blockIdx.x * (i64)a.head_dim + d] = sum;
  }
}
