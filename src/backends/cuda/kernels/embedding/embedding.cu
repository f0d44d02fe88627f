// Rows of a table by id, and the sums of rows' gradients: tokens are sorted by id, in their order among
// equals; a block then owns the tokens of one id.
#include "backends/cuda/device/grid.cuh"
#include "backends/cuda/device/vector.cuh"
#include "backends/cuda/kernels/embedding/embedding_args.h"

namespace plimsoll::cuda {

extern "C" __global__ void embedding(Embedding args) {
  begin_grid();
  const i64 row = blockIdx.x, from = args.ids[row] * args.stride, to = row * args.cols;
  const bool vec = args.cols % 8 == 0 && args.stride % 8 == 0 && aligned16(args.table) && aligned16(args.out);
  for (i64 c = 8 * (i64)threadIdx.x; c < args.cols; c += 8 * blockDim.x) {
    if (c + 8 <= args.cols) {
      float v[8];
      load8(args.table, from + c, v, vec);
      store8(args.out, to + c, v, vec);
    } else {
      for (i64 k = c; k < args.cols; ++k) store(args.out, to + k, load(args.table, from + k));
    }
  }
}

// A token's id in the upper, its index in the lower half; all ones for padding and behind the end.
extern "C" __global__ void token_keys(TokenKeys args) {
  begin_grid();
  const i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  if (i >= args.count) return;
  args.keys[i] =
      i < args.tokens && args.ids[i] != args.padding ? (u64)(u32)args.ids[i] << 32 | (u64)i : ~0ull;
}

// Bitonic sort (Batcher 1968). `count` is a power of two; all keys but the padding differ, whose order says
// nothing.
__device__ __forceinline__ void token_order(u64* keys, i64 i, i64 j, i64 size, i64 at) {
  const bool up = (at & size) == 0;
  const u64 a = keys[i], b = keys[j];
  if ((a > b) == up) keys[i] = b, keys[j] = a;
}
// Steps of `size`, by `step` and less, that stay within kSortedWithin keys; with all_sizes those of all sizes
// up to `size`.
extern "C" __global__ void sort_tokens_within(SortTokens args) {
  begin_grid();
  __shared__ u64 part[kSortedWithin];
  const i64 first = blockIdx.x * (i64)kSortedWithin;
  const int n = args.count < kSortedWithin ? (int)args.count : kSortedWithin;
  for (int i = threadIdx.x; i < n; i += blockDim.x) part[i] = args.keys[first + i];
  __syncthreads();
  for (i64 s = args.all_sizes ? 2 : args.size; s <= args.size; s *= 2)
    for (i64 step = s / 2 < n / 2 ? s / 2 : n / 2; step >= 1; step /= 2) {
      for (int t = threadIdx.x; t < n / 2; t += blockDim.x) {
        const i64 i = 2 * t - (t & (step - 1));
        token_order(part, i, i + step, s, first + i);
      }
      __syncthreads();
    }
  for (int i = threadIdx.x; i < n; i += blockDim.x) args.keys[first + i] = part[i];
}
extern "C" __global__ void sort_tokens_across(SortTokens args) {
  begin_grid();
  const i64 t = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  if (t >= args.count / 2) return;
  const i64 i = 2 * t - (t & (args.step - 1));
  token_order(args.keys, i, i + args.step, args.size, i);
}

// Block (p, columns): where the tokens of an id begin at key p, out's row of it takes their sum: onto what it
// holds, or `from_zero` summed from -0.0 first, which is then added.
extern "C" __global__ void add_tokens(AddTokens args) {
  begin_grid();
  const i64 p = blockIdx.x, c = blockIdx.y * (i64)blockDim.x + threadIdx.x;
  const u64 key = args.keys[p];
  if (key == ~0ull || c >= args.cols) return;
  const u32 id = (u32)(key >> 32);
  if (p > 0 && (u32)(args.keys[p - 1] >> 32) == id) return;
  const i64 at = id * args.id_stride + c * args.col_stride;
  const float held = load(args.out, at);
  float sum = args.from_zero ? -0.0f : held;
  i64 k = p;
  for (; k + 4 <= args.tokens && (u32)(args.keys[k + 3] >> 32) == id && args.keys[k + 3] != ~0ull; k += 4) {
    float v[4];
    for (int e = 0; e < 4; ++e) v[e] = load(args.dy, (i64)(args.keys[k + e] & 0xffffffffu) * args.stride + c);
    for (int e = 0; e < 4; ++e) sum += v[e];
  }
  for (; k < args.tokens && (u32)(args.keys[k] >> 32) == id && args.keys[k] != ~0ull; ++k)
    sum += load(args.dy, (i64)(args.keys[k] & 0xffffffffu) * args.stride + c);
  store(args.out, at, args.from_zero ? held + sum : sum);
}
extern "C" __global__ void fill_short(FillShort args) {
  begin_grid();
  const i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  if (i < args.n) ((u16*)args.out)[i] = (u16)args.bits;
}

}  // namespace plimsoll::cuda
