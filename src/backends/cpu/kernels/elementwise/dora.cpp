// Rows of an adapted weight by their norms, and what they produce scaled by magnitude / norm.
#include "backends/cpu/kernels/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/elementwise/dora.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
//
#include <cmath>

#include "backends/cpu/kernels/operands.h"
#include "backends/cpu/kernels/stored-inl.h"
#include "backends/cpu/kernels/vectors-inl.h"
#include "base/units.h"
#include "ops/block_values.h"

#ifndef PLIMSOLL_BACKENDS_CPU_KERNELS_DORA_ARGS_
#define PLIMSOLL_BACKENDS_CPU_KERNELS_DORA_ARGS_
namespace plimsoll::cpu {
namespace {

/// Weight and A as they lie, B's first element, extents.
struct DoraRow {
  std::byte* w;
  ir::DType dtype;
  int64_t stride;  ///< elements between the weight's rows
  const float *a, *b;
  float scale;
  int64_t in, rank;
};

/// Columns that a transposed weight is walked in; two lines of a cache.
constexpr int64_t kDoraColumns = 32;

/// What a thread needs: factors of a transposed weight's columns, and of a weight in few bits the numbers of
/// a row, or of the columns.
struct DoraScratch {
  int64_t factors = 0, numbers = 0;  ///< floats
  [[nodiscard]] int64_t bytes() const { return (factors + numbers) * 4; }
};

DoraScratch dora_scratch(ir::DType dtype, bool transposed, int64_t in, int64_t rank) {
  return {transposed ? round_up(rank * kDoraColumns, int64_t{16}) : 0,
          ir::is_block(dtype) ? round_up(in * (transposed ? kDoraColumns : 1), int64_t{16}) : 0};
}

}  // namespace
}  // namespace plimsoll::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using stored::load;
using stored::store;
using vectors::for_vectors;
using vectors::set;
using vectors::V;

/// |w + scale sum over k of b[k] a_k| of the row at `w`.
float norm_run(const DoraRow& r) {
  const stored::Any w{r.w, r.dtype};
  const float sum = vectors::sum_of(r.in, [=](int64_t i, auto part) HWY_ATTR {
    V v = load(w + i, part);
    for (int64_t k = 0; k < r.rank; ++k)
      v = hn::MulAdd(set(r.scale * r.b[k]), load(r.a + k * r.in + i, part), v);
    return hn::Mul(v, v);
  });
  return std::sqrt(sum);
}

/// The same of `n` columns of a weight [in, out]. `factors`: [rank, kDoraColumns].
void norm_columns(const DoraRow& r, int64_t n, float* factors, float* y) {
  for (int64_t k = 0; k < r.rank; ++k)
    for (int64_t o = 0; o < n; ++o) factors[k * kDoraColumns + o] = r.scale * r.b[o * r.rank + k];
  for (int64_t o = 0; o < n; ++o) y[o] = 0;
  for (int64_t i = 0; i < r.in; ++i) {
    const stored::Any w = stored::Any{r.w, r.dtype} + i * r.stride;
    for_vectors(n, [=](int64_t o, auto part) HWY_ATTR {
      V v = load(w + o, part);
      for (int64_t k = 0; k < r.rank; ++k)
        v = hn::MulAdd(set(r.a[k * r.in + i]), load(factors + k * kDoraColumns + o, part), v);
      store(hn::MulAdd(v, v, load(y + o, part)), y + o, part);
    });
  }
  for (int64_t o = 0; o < n; ++o) y[o] = std::sqrt(y[o]);
}

void dora_scale_run(const float* x, const float* magnitude, const float* norm, float* y, int64_t n) {
  for_vectors(n, [=](int64_t i, auto part) HWY_ATTR {
    store(hn::Mul(load(x + i, part), hn::Div(load(magnitude + i, part), load(norm + i, part))), y + i, part);
  });
}

void dora_grad_run(const float* dy, const float* x, const float* norm, float* y, int64_t n) {
  for_vectors(n, [=](int64_t i, auto part) HWY_ATTR {
    store(hn::Div(hn::Mul(load(dy + i, part), load(x + i, part)), load(norm + i, part)), y + i, part);
  });
}

}  // namespace
}  // namespace plimsoll::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::cpu {
namespace {

HWY_EXPORT(norm_run);
HWY_EXPORT(norm_columns);
HWY_EXPORT(dora_scale_run);
HWY_EXPORT(dora_grad_run);

int64_t dora_norm_workspace_bytes(const ir::OpTypes& types, int num_threads) {
  return num_threads * dora_scratch(types.inputs[0].dtype, types.attrs.flag("transposed"),
                                    types.inputs[1].shape.dim(1), types.inputs[2].shape.dim(1))
                           .bytes();
}

/// Rows of a weight in few bits, `n` of them from `row` on: one after the other as f32 in `numbers`.
void norm_coded_rows(const TensorRef& weight, DoraRow r, int64_t row, int64_t n, float* numbers, float* y) {
  r.w = reinterpret_cast<std::byte*>(numbers);
  r.dtype = ir::DType::kF32;
  for (int64_t o = 0; o < n; ++o, r.b += r.rank) {
    ops::dequantize(weight.type, weight.data, (row + o) * r.in,
                    std::span(numbers, static_cast<size_t>(r.in)));
    y[o] = HWY_DYNAMIC_DISPATCH(norm_run)(r);
  }
}

/// Columns of one that lies as [in, out].
void norm_coded_columns(const TensorRef& weight, DoraRow r, int64_t column, int64_t n, float* factors,
                        float* numbers, float* y) {
  for (int64_t i = 0; i < r.in; ++i)
    ops::dequantize(weight.type, weight.data, i * r.stride + column,
                    std::span(numbers + i * kDoraColumns, static_cast<size_t>(n)));
  r.w = reinterpret_cast<std::byte*>(numbers);
  r.dtype = ir::DType::kF32;
  r.stride = kDoraColumns;
  HWY_DYNAMIC_DISPATCH(norm_columns)(r, n, factors, y);
}

void dora_norm(const KernelCall& call, ThreadPool& pool) {
  const TensorRef& weight = call.inputs[0];
  const ir::Attrs& attrs = call.op->attrs;
  const int64_t in = call.inputs[1].shape().dim(1), rank = call.inputs[2].shape().dim(1);
  const bool transposed = attrs.flag("transposed");
  const int64_t width = weight.shape().dim(1), outs = call.outputs[0].num_elements();
  const bool coded = ir::is_block(weight.type.dtype);
  const int64_t row = attrs.i64("row"),
                bytes = coded ? 0 : (transposed ? 1 : width) * ir::bits(weight.type.dtype) / 8;
  const DoraRow first{weight.as<std::byte>() + row * bytes,
                      weight.type.dtype,
                      width,
                      call.inputs[1].as<const float>() + attrs.i64("rank_row") * in,
                      call.inputs[2].as<const float>(),
                      static_cast<float>(attrs.f64("scale")),
                      in,
                      rank};
  float* y = call.outputs[0].as<float>();
  const DoraScratch scratch = dora_scratch(weight.type.dtype, transposed, in, rank);
  pool.run(ceil_div(outs, kDoraColumns), [&](int64_t tile, int thread) {
    const int64_t begin = tile * kDoraColumns, end = std::min(outs, begin + kDoraColumns);
    float* factors = reinterpret_cast<float*>(call.workspace.data() + thread * scratch.bytes());
    float* numbers = factors + scratch.factors;
    DoraRow r = first;
    r.w += begin * bytes;
    r.b += begin * rank;
    if (coded && transposed)
      return norm_coded_columns(weight, r, row + begin, end - begin, factors, numbers, y + begin);
    if (coded) return norm_coded_rows(weight, r, row + begin, end - begin, numbers, y + begin);
    if (transposed) return HWY_DYNAMIC_DISPATCH(norm_columns)(r, end - begin, factors, y + begin);
    for (int64_t o = begin; o < end; ++o, r.w += bytes, r.b += rank) y[o] = HWY_DYNAMIC_DISPATCH(norm_run)(r);
  });
}

void dora_scale(const KernelCall& call, ThreadPool& pool) {
  const auto x = rows_of<const float>(call.inputs[0]);
  const auto y = rows_of<float>(call.outputs[0]);
  const float *magnitude = call.inputs[1].as<const float>(), *norm = call.inputs[2].as<const float>();
  for_row_blocks(pool, x.rows, x.cols, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      HWY_DYNAMIC_DISPATCH(dora_scale_run)(x.row(r), magnitude, norm, y.row(r), x.cols);
  });
}

void dora_scale_grad(const KernelCall& call, ThreadPool& pool) {
  const auto dy = rows_of<const float>(call.inputs[0]), x = rows_of<const float>(call.inputs[1]);
  const auto y = rows_of<float>(call.outputs[0]);
  const float* norm = call.inputs[2].as<const float>();
  for_row_blocks(pool, x.rows, x.cols, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      HWY_DYNAMIC_DISPATCH(dora_grad_run)(dy.row(r), x.row(r), norm, y.row(r), x.cols);
  });
}

}  // namespace

std::span<const Kernel> dora_kernels() {
  static constexpr Kernel kernels[] = {
      {.op = "dora_norm",
       .run = dora_norm,
       .workspace_bytes = dora_norm_workspace_bytes,
       .stored_inputs = 0b1},
      {.op = "dora_scale", .run = dora_scale, .strided_inputs = 0b1},
      {.op = "dora_scale_grad", .run = dora_scale_grad, .strided_inputs = 0b11},
  };
  return kernels;
}

}  // namespace plimsoll::cpu
#endif  // HWY_ONCE
