// Rows of a table by id, and the sums of rows' gradients: tokens are sorted by id, in their order among
// equals; a block then owns the tokens of one id.

extern "C" __global__ void embedding(Operand table, i64 stride, const int* ids, Operand out, i64 cols) {
  const i64 row = blockIdx.x, from = ids[row] * stride, to = row * cols;
  const bool vec = cols % 8 == 0 && stride % 8 == 0 && aligned16(table) && aligned16(out);
  for (i64 c = 8 * (i64)threadIdx.x; c < cols; c += 8 * blockDim.x) {
    if (c + 8 <= cols) {
      float v[8];
      load8(table, from + c, v, vec);
      store8(out, to + c, v, vec);
    } else {
      for (i64 k = c; k < cols; ++k) store(out, to + k, load(table, from + k));
    }
  }
}

// A token's id in the upper, its index in the lower half; all ones for padding and behind the end.
extern "C" __global__ void token_keys(const int* ids, i64 tokens, i64 count, i64 padding, u64* keys) {
  const i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  if (i >= count) return;
  keys[i] = i < tokens && ids[i] != padding ? (u64)(u32)ids[i] << 32 | (u64)i : ~0ull;
}

// Bitonic sort (Batcher 1968). `count` is a power of two; all keys but the padding differ, whose order says
// nothing.
__device__ __forceinline__ void token_order(u64* keys, i64 i, i64 j, i64 size, i64 at) {
  const bool up = (at & size) == 0;
  const u64 a = keys[i], b = keys[j];
  if ((a > b) == up) keys[i] = b, keys[j] = a;
}
// Steps of `size`, by `step` and less, that stay within 2048 keys; with all_sizes those of all sizes up to
// `size`.
extern "C" __global__ void sort_tokens_within(u64* keys, i64 count, i64 size, int all_sizes) {
  __shared__ u64 part[2048];
  const i64 first = blockIdx.x * 2048ll;
  const int n = count < 2048 ? (int)count : 2048;
  for (int i = threadIdx.x; i < n; i += blockDim.x) part[i] = keys[first + i];
  __syncthreads();
  for (i64 s = all_sizes ? 2 : size; s <= size; s *= 2)
    for (i64 step = s / 2 < n / 2 ? s / 2 : n / 2; step >= 1; step /= 2) {
      for (int t = threadIdx.x; t < n / 2; t += blockDim.x) {
        const i64 i = 2 * t - (t & (step - 1));
        token_order(part, i, i + step, s, first + i);
      }
      __syncthreads();
    }
  for (int i = threadIdx.x; i < n; i += blockDim.x) keys[first + i] = part[i];
}
extern "C" __global__ void sort_tokens_across(u64* keys, i64 count, i64 size, i64 step) {
  const i64 t = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  if (t >= count / 2) return;
  const i64 i = 2 * t - (t & (step - 1));
  token_order(keys, i, i + step, size, i);
}

// Block (p, columns): where the tokens of an id begin at key p, out's row of it takes their sum: onto what it
// holds, or `from_zero` summed from -0.0 first, which is then added.
extern "C" __global__ void add_tokens(Operand dy, i64 stride, const u64* keys, i64 tokens, Operand out,
                                      i64 cols, int from_zero) {
  const i64 p = blockIdx.x, c = blockIdx.y * (i64)blockDim.x + threadIdx.x;
  const u64 key = keys[p];
  if (key == ~0ull || c >= cols) return;
  const u32 id = (u32)(key >> 32);
  if (p > 0 && (u32)(keys[p - 1] >> 32) == id) return;
  const i64 at = id * cols + c;
  const float held = load(out, at);
  float sum = from_zero ? -0.0f : held;
  i64 k = p;
  for (; k + 4 <= tokens && (u32)(keys[k + 3] >> 32) == id && keys[k + 3] != ~0ull; k += 4) {
    float v[4];
    for (int e = 0; e < 4; ++e) v[e] = load(dy, (i64)(keys[k + e] & 0xffffffffu) * stride + c);
    for (int e = 0; e < 4; ++e) sum += v[e];
  }
  for (; k < tokens && (u32)(keys[k] >> 32) == id && keys[k] != ~0ull; ++k)
    sum += load(dy, (i64)(keys[k] & 0xffffffffu) * stride + c);
  store(out, at, from_zero ? held + sum : sum);
}
extern "C" __global__ void fill_short(u16* out, i64 n, u32 bits) {
  const i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  if (i < n) out[i] = (u16)bits;
}
