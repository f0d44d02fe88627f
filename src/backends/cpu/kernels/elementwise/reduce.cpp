// Sums over rows: bias gradients, and the granules of the norms' weight gradients.
#include "backends/cpu/kernels/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/elementwise/reduce.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
//
#include "backends/cpu/kernels/elementwise/cast.h"
#include "backends/cpu/kernels/elementwise/reduce.h"
#include "backends/cpu/kernels/operands.h"
#include "backends/cpu/kernels/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using vectors::for_vectors;
using vectors::Full;
using vectors::kWidth;
using vectors::load;
using vectors::store;
using vectors::V;

// Several vectors of a row at a time, so that a row's cache lines and its page are visited once.
inline constexpr int kGroup = 8;

HWY_INLINE void sum_group(const float* x, int64_t stride, int64_t rows, const float* from, float* to) {
  V sums[kGroup];
#pragma GCC unroll 8
  for (int v = 0; v < kGroup; ++v) sums[v] = load(x + v * kWidth, Full{});
  for (int64_t r = 1; r < rows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < kGroup; ++v) sums[v] = hn::Add(sums[v], load(x + r * stride + v * kWidth, Full{}));
  }
#pragma GCC unroll 8
  for (int v = 0; v < kGroup; ++v)
    store(from == nullptr ? sums[v] : hn::Add(load(from + v * kWidth, Full{}), sums[v]), to + v * kWidth,
          Full{});
}

// to[j] = from[j] + (rows' sum), both of n elements, `from` null: the sum alone.
void sum_granule(const float* x, int64_t stride, int64_t rows, const float* from, float* to, int64_t n) {
  int64_t done = 0;
  for (; done + kGroup * kWidth <= n; done += kGroup * kWidth)
    sum_group(x + done, stride, rows, from == nullptr ? nullptr : from + done, to + done);
  for_vectors(n - done, [=](int64_t i, auto part) HWY_ATTR {
    const int64_t j = done + i;
    V sum = load(x + j, part);
    for (int64_t r = 1; r < rows; ++r) sum = hn::Add(sum, load(x + r * stride + j, part));
    store(from == nullptr ? sum : hn::Add(load(from + j, part), sum), to + j, part);
  });
}

void add_rows(const float* partials, int64_t rows, int64_t stride, const float* acc, float* out, int64_t n) {
  for_vectors(n, [=](int64_t j, auto part) HWY_ATTR {
    V sum = load(partials + j, part);
    if (acc != nullptr) sum = hn::Add(load(acc + j, part), sum);
    for (int64_t r = 1; r < rows; ++r) sum = hn::Add(sum, load(partials + r * stride + j, part));
    store(sum, out + j, part);
  });
}

}  // namespace
}  // namespace plimsoll::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::cpu {
namespace {

HWY_EXPORT(sum_granule);
HWY_EXPORT(add_rows);

// Columns of a tile: 512 bytes of each row, so that the hardware prefetches along the rows.
constexpr int64_t kColumns = 128;

void sum_rows(const KernelCall& call, ThreadPool& pool) {
  const auto x = matrix_of<const float>(call.inputs[0]);
  const Granules granules(call.inputs[0].shape());
  const TensorRef acc = input_or_none(call, 1);
  float* out = call.outputs[0].as<float>();
  for_blocks(pool, x.cols, x.rows * x.cols <= kBlockElements ? x.cols : kColumns,
             [&](int64_t begin, int64_t end) {
               const float* from = acc ? acc.as<const float>() + begin : nullptr;
               for (int64_t g = 0; g < granules.count(); ++g) {
                 HWY_DYNAMIC_DISPATCH(sum_granule)
                 (x.row(granules.begin(g)) + begin, x.stride, granules.end(g) - granules.begin(g), from,
                  out + begin, end - begin);
                 from = out + begin;
               }
             });
}

}  // namespace

void add_granules(const float* partials, int64_t granules, int64_t cols, const float* acc, float* out,
                  ThreadPool& pool) {
  for_blocks(pool, cols, rows_per_block(granules), [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(add_rows)
    (partials + begin, granules, cols, acc == nullptr ? nullptr : acc + begin, out + begin, end - begin);
  });
}

void add_granules(const float* partials, int64_t granules, const TensorRef& acc, const TensorRef& out,
                  float* row, ThreadPool& pool) {
  const int64_t cols = out.num_elements();
  if (out.type.dtype == ir::DType::kF32)
    return add_granules(partials, granules, cols, acc.as<const float>(), out.as<float>(), pool);
  const TensorRef wide{reinterpret_cast<std::byte*>(row), {ir::DType::kF32, out.type.shape}, out.strides};
  if (acc) cast(acc, wide, pool);
  add_granules(partials, granules, cols, acc ? row : nullptr, row, pool);
  cast(wide, out, pool);
}

std::span<const Kernel> reduce_kernels() {
  static constexpr Kernel kernels[] = {{.op = "sum_rows", .run = sum_rows, .strided_inputs = 0b1}};
  return kernels;
}

}  // namespace plimsoll::cpu
#endif
