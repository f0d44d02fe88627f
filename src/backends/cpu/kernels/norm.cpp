// RMS and layer normalisation. Forward: blocks of rows. Backward: a granule of rows a tile, which gives dx
// and the granule's share of the weight's (and bias's) gradient in one pass; the shares are then added in
// order.
#include "backends/cpu/kernels/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/norm.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
//
#include <cstring>

#include "backends/cpu/kernels/norm_rows-inl.h"
#include "backends/cpu/kernels/operands.h"
#include "backends/cpu/kernels/reduce.h"

#ifndef PLIMSOLL_BACKENDS_CPU_KERNELS_NORM_ARGS_
#define PLIMSOLL_BACKENDS_CPU_KERNELS_NORM_ARGS_
namespace plimsoll::cpu {
namespace {

// Rows [begin, end) of a forward pass. residual and sum are there in the fused ops, where x is of any dtype
// (its rows are `any_x`'s then), bias and mean in layer_norm.
struct NormForward {
  const RowsOfAny* any_x;
  ir::DType dtype;
  RowsOf<const float> x, residual;
  RowsOf<float> sum, y;
  const float *weight, *bias;
  float *mean, *rstd, eps;
};
// A backward pass; d_residual (null data where not fused) is added to dx.
struct NormBackward {
  RowsOf<const float> dy, x, d_residual;
  RowsOf<float> dx;
  const float *weight, *mean, *rstd;
};

}  // namespace
}  // namespace plimsoll::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu::HWY_NAMESPACE {
namespace {

void rms_norm_rows(const NormForward& a, int64_t begin, int64_t end) {
  const int64_t n = a.x.cols;
  for (int64_t r = begin; r < end; ++r) {
    if (a.any_x != nullptr)
      stored::with_element(a.dtype, [&](auto element) HWY_ATTR {
        using T = decltype(element);
        const norms::SummedRow<T> row{static_cast<const T*>(a.any_x->row(r)), a.residual.row(r),
                                      a.sum.row(r)};
        a.rstd[r] = norms::rms_norm_row(row, a.sum.row(r), a.weight, a.y.row(r), n, a.eps);
      });
    else
      a.rstd[r] =
          norms::rms_norm_row(norms::PlainRow{a.x.row(r)}, a.x.row(r), a.weight, a.y.row(r), n, a.eps);
  }
}

void layer_norm_rows(const NormForward& a, int64_t begin, int64_t end) {
  const int64_t n = a.x.cols;
  for (int64_t r = begin; r < end; ++r) {
    norms::Moments m{};
    if (a.any_x != nullptr)
      stored::with_element(a.dtype, [&](auto element) HWY_ATTR {
        using T = decltype(element);
        const norms::SummedRow<T> row{static_cast<const T*>(a.any_x->row(r)), a.residual.row(r),
                                      a.sum.row(r)};
        m = norms::layer_norm_row(row, a.sum.row(r), a.weight, a.bias, a.y.row(r), n, a.eps);
      });
    else
      m = norms::layer_norm_row(norms::PlainRow{a.x.row(r)}, a.x.row(r), a.weight, a.bias, a.y.row(r), n,
                                a.eps);
    a.mean[r] = m.mean;
    a.rstd[r] = m.rstd;
  }
}

// dw [n] is the granule's own.
void rms_norm_grad_rows(const NormBackward& a, int64_t begin, int64_t end, float* dw) {
  const int64_t n = a.x.cols;
  std::memset(dw, 0, static_cast<size_t>(n) * sizeof(float));
  for (int64_t r = begin; r < end; ++r) {
    if (a.d_residual.data != nullptr)
      norms::rms_norm_grad_row(a.dy.row(r), a.x.row(r), a.weight, a.rstd[r],
                               norms::AddDx{a.d_residual.row(r), a.dx.row(r)}, dw, n);
    else
      norms::rms_norm_grad_row(a.dy.row(r), a.x.row(r), a.weight, a.rstd[r], norms::StoreDx{a.dx.row(r)}, dw,
                               n);
  }
}

void layer_norm_grad_rows(const NormBackward& a, int64_t begin, int64_t end, float* dw, float* db) {
  const int64_t n = a.x.cols;
  std::memset(dw, 0, static_cast<size_t>(n) * sizeof(float));
  std::memset(db, 0, static_cast<size_t>(n) * sizeof(float));
  for (int64_t r = begin; r < end; ++r) {
    const norms::Moments m{a.mean[r], a.rstd[r]};
    if (a.d_residual.data != nullptr)
      norms::layer_norm_grad_row(a.dy.row(r), a.x.row(r), a.weight, m,
                                 norms::AddDx{a.d_residual.row(r), a.dx.row(r)}, dw, db, n);
    else
      norms::layer_norm_grad_row(a.dy.row(r), a.x.row(r), a.weight, m, norms::StoreDx{a.dx.row(r)}, dw, db,
                                 n);
  }
}

}  // namespace
}  // namespace plimsoll::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::cpu {
namespace {

HWY_EXPORT(rms_norm_rows);
HWY_EXPORT(layer_norm_rows);
HWY_EXPORT(rms_norm_grad_rows);
HWY_EXPORT(layer_norm_grad_rows);

// Operands in order: x, residual where `fused`, weight, bias where `layer`; results: sum, y, mean, rstd.
template <bool kLayer, bool kFused>
void forward(const KernelCall& call, ThreadPool& pool) {
  size_t in = 0, out = 0;
  NormForward a{};
  const RowsOfAny any_x(call.inputs[0]);
  if (kFused) a.any_x = &any_x;
  a.dtype = call.inputs[0].type.dtype;
  a.x = rows_of<const float>(call.inputs[in++]);
  if (kFused) a.residual = rows_of<const float>(call.inputs[in++]);
  a.weight = call.inputs[in++].as<const float>();
  if (kLayer) a.bias = call.inputs[in++].as<const float>();
  if (kFused) a.sum = rows_of<float>(call.outputs[out++]);
  a.y = rows_of<float>(call.outputs[out++]);
  if (kLayer) a.mean = call.outputs[out++].as<float>();
  a.rstd = call.outputs[out++].as<float>();
  a.eps = static_cast<float>(call.op->attrs.f64("eps"));
  for_row_blocks(pool, a.x.rows, a.x.cols, [&](int64_t begin, int64_t end) {
    kLayer ? HWY_DYNAMIC_DISPATCH(layer_norm_rows)(a, begin, end)
           : HWY_DYNAMIC_DISPATCH(rms_norm_rows)(a, begin, end);
  });
}

// A granule's shares: dw, and behind it db, each [cols].
template <bool kLayer>
int64_t backward_workspace_bytes(const ir::OpTypes& types, int /*num_threads*/) {
  const ir::Shape& shape = types.inputs[0].shape;
  return Granules(shape).count() * shape.dim(-1) * (kLayer ? 2 : 1) * static_cast<int64_t>(sizeof(float));
}

// Operands in order: dy, x, weight, mean where `layer`, rstd, d_residual where `fused`, acc_dw?, acc_db?.
template <bool kLayer, bool kFused>
void backward(const KernelCall& call, ThreadPool& pool) {
  size_t in = 0;
  NormBackward a{};
  a.dy = rows_of<const float>(call.inputs[in++]);
  a.x = rows_of<const float>(call.inputs[in++]);
  a.weight = call.inputs[in++].as<const float>();
  if (kLayer) a.mean = call.inputs[in++].as<const float>();
  a.rstd = call.inputs[in++].as<const float>();
  if (kFused) a.d_residual = rows_of<const float>(call.inputs[in++]);
  const TensorRef acc_dw = input_or_none(call, in++), acc_db = input_or_none(call, in++);
  a.dx = rows_of<float>(call.outputs[0]);

  const Granules granules(call.inputs[0].shape());
  const int64_t cols = a.x.cols, count = granules.count();
  float* dw = reinterpret_cast<float*>(call.workspace.data());
  float* db = dw + count * cols;
  const auto granule = [&](int64_t g, int) {
    const int64_t begin = granules.begin(g), end = granules.end(g);
    if (kLayer)
      HWY_DYNAMIC_DISPATCH(layer_norm_grad_rows)(a, begin, end, dw + g * cols, db + g * cols);
    else
      HWY_DYNAMIC_DISPATCH(rms_norm_grad_rows)(a, begin, end, dw + g * cols);
  };
  if (a.x.rows * cols > kBlockElements)
    pool.run(count, granule);
  else
    for (int64_t g = 0; g < count; ++g) granule(g, 0);  // too little to wake anyone
  add_granules(dw, count, cols, acc_dw.as<const float>(), call.outputs[1].as<float>(), pool);
  if (kLayer) add_granules(db, count, cols, acc_db.as<const float>(), call.outputs[2].as<float>(), pool);
}

}  // namespace

std::span<const Kernel> norm_kernels() {
  static constexpr Kernel kernels[] = {
      {.op = "add_layer_norm", .run = forward<true, true>, .strided_inputs = 0b11, .stored_inputs = 0b1},
      {.op = "add_rms_norm", .run = forward<false, true>, .strided_inputs = 0b11, .stored_inputs = 0b1},
      {.op = "layer_norm", .run = forward<true, false>, .strided_inputs = 0b1},
      {.op = "layer_norm_grad",
       .run = backward<true, false>,
       .workspace_bytes = backward_workspace_bytes<true>,
       .strided_inputs = 0b11},
      {.op = "layer_norm_grad_add",
       .run = backward<true, true>,
       .workspace_bytes = backward_workspace_bytes<true>,
       .strided_inputs = 0b100011},
      {.op = "rms_norm", .run = forward<false, false>, .strided_inputs = 0b1},
      {.op = "rms_norm_grad",
       .run = backward<false, false>,
       .workspace_bytes = backward_workspace_bytes<false>,
       .strided_inputs = 0b11},
      {.op = "rms_norm_grad_add",
       .run = backward<false, true>,
       .workspace_bytes = backward_workspace_bytes<false>,
       .strided_inputs = 0b10011},
  };
  return kernels;
}

}  // namespace plimsoll::cpu
#endif
