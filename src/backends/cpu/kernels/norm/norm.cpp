// RMS and layer normalisation, on f32, bf16 and f16 rows. Forward: blocks of rows. Backward: a granule of
// rows a tile, which gives dx and the granule's share of the weight's (and bias's) gradient in one pass; the
// shares are then added in order.
#include "backends/cpu/kernels/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/norm/norm.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
//
#include <cstring>
#include <type_traits>

#include "backends/cpu/kernels/elementwise/reduce.h"
#include "backends/cpu/kernels/norm/norm_rows-inl.h"
#include "backends/cpu/kernels/operands.h"
#include "ops/rounded_copy.h"

#ifndef PLIMSOLL_BACKENDS_CPU_KERNELS_NORM_ARGS_
#define PLIMSOLL_BACKENDS_CPU_KERNELS_NORM_ARGS_
namespace plimsoll::cpu {
namespace {

// Rows of an operand in its dtype, or none; a vector is one row.
struct Rows {
  Rows() = default;
  explicit Rows(const TensorRef& ref)
      : rows(rows_of<std::byte>(ref)), dtype(ref.type.dtype), element_bytes(ir::bits(dtype) / 8) {}
  [[nodiscard]] bool given() const { return rows.data != nullptr; }
  [[nodiscard]] std::byte* row(int64_t i) const {
    return rows.data + (rows.row(i) - rows.data) * element_bytes;
  }

  RowsOf<std::byte> rows = {};
  ir::DType dtype = ir::DType::kF32;
  int64_t element_bytes = 4;
};

// Rows [begin, end) of a forward pass. residual and sum are there in the fused ops, bias and mean in
// layer_norm.
struct NormForward {
  bool all_f32;  ///< operands and results
  Rows x, residual, sum, y, weight, bias;
  float *mean, *rstd, eps;
};
// A backward pass; d_residual (not given where not fused) is added to dx, of which `rounded`, where given, is
// a copy. Not all are f32 then.
struct NormBackward {
  bool all_f32;
  Rows dy, x, d_residual, dx, weight, rounded;
  const float *mean, *rstd;
};

}  // namespace
}  // namespace plimsoll::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu::HWY_NAMESPACE {
namespace {

// Row: float*, or stored::Any.
template <class Row>
HWY_INLINE Row row_of(const Rows& rows, int64_t i) {
  if constexpr (std::is_same_v<Row, float*>)
    return reinterpret_cast<float*>(rows.row(i));
  else
    return Row{rows.row(i), rows.dtype};
}

template <class Row>
void rms_norm_rows_as(const NormForward& a, int64_t begin, int64_t end) {
  const int64_t n = a.x.rows.cols;
  const Row weight = row_of<Row>(a.weight, 0);
  for (int64_t r = begin; r < end; ++r) {
    const Row x = row_of<Row>(a.x, r), y = row_of<Row>(a.y, r);
    if (a.sum.given()) {
      const norms::SummedRow<Row> row{x, row_of<Row>(a.residual, r), row_of<Row>(a.sum, r)};
      a.rstd[r] = norms::rms_norm_row(row, row.sum, weight, y, n, a.eps);
    } else {
      a.rstd[r] = norms::rms_norm_row(norms::PlainRow<Row>{x}, x, weight, y, n, a.eps);
    }
  }
}

template <class Row>
void layer_norm_rows_as(const NormForward& a, int64_t begin, int64_t end) {
  const int64_t n = a.x.rows.cols;
  const Row weight = row_of<Row>(a.weight, 0), bias = row_of<Row>(a.bias, 0);
  for (int64_t r = begin; r < end; ++r) {
    const Row x = row_of<Row>(a.x, r), y = row_of<Row>(a.y, r);
    norms::Moments m{};
    if (a.sum.given()) {
      const norms::SummedRow<Row> row{x, row_of<Row>(a.residual, r), row_of<Row>(a.sum, r)};
      m = norms::layer_norm_row(row, row.sum, weight, bias, y, n, a.eps);
    } else {
      m = norms::layer_norm_row(norms::PlainRow<Row>{x}, x, weight, bias, y, n, a.eps);
    }
    a.mean[r] = m.mean;
    a.rstd[r] = m.rstd;
  }
}

// Calls gradient(out) with what becomes of row r of dx.
template <class Row, class Gradient>
HWY_INLINE void with_out(const NormBackward& a, int64_t r, Gradient gradient) {
  const Row dx = row_of<Row>(a.dx, r);
  const auto copying = [&](auto out) HWY_ATTR {
    if constexpr (std::is_same_v<Row, stored::Any>)
      if (a.rounded.given())
        return gradient(norms::CopyDx<decltype(out)>{out, row_of<stored::Any>(a.rounded, r)});
    gradient(out);
  };
  if (a.d_residual.given())
    copying(norms::AddDx<Row>{row_of<Row>(a.d_residual, r), dx});
  else
    copying(norms::StoreDx<Row>{dx});
}

// dw [n] is the granule's own.
template <class Row>
void rms_norm_grad_rows_as(const NormBackward& a, int64_t begin, int64_t end, float* dw) {
  const int64_t n = a.x.rows.cols;
  const Row weight = row_of<Row>(a.weight, 0);
  for (int64_t r = begin; r < end; ++r)
    with_out<Row>(a, r, [&](auto out) HWY_ATTR {
      norms::rms_norm_grad_row(row_of<Row>(a.dy, r), row_of<Row>(a.x, r), weight, a.rstd[r], out, dw, n);
    });
}

template <class Row>
void layer_norm_grad_rows_as(const NormBackward& a, int64_t begin, int64_t end, float* dw, float* db) {
  const int64_t n = a.x.rows.cols;
  const Row weight = row_of<Row>(a.weight, 0);
  for (int64_t r = begin; r < end; ++r)
    with_out<Row>(a, r, [&](auto out) HWY_ATTR {
      norms::layer_norm_grad_row(row_of<Row>(a.dy, r), row_of<Row>(a.x, r), weight,
                                 norms::Moments{a.mean[r], a.rstd[r]}, out, dw, db, n);
    });
}

void rms_norm_rows(const NormForward& a, int64_t begin, int64_t end) {
  a.all_f32 ? rms_norm_rows_as<float*>(a, begin, end) : rms_norm_rows_as<stored::Any>(a, begin, end);
}
void layer_norm_rows(const NormForward& a, int64_t begin, int64_t end) {
  a.all_f32 ? layer_norm_rows_as<float*>(a, begin, end) : layer_norm_rows_as<stored::Any>(a, begin, end);
}
void rms_norm_grad_rows(const NormBackward& a, int64_t begin, int64_t end, float* dw) {
  std::memset(dw, 0, static_cast<size_t>(a.x.rows.cols) * sizeof(float));
  a.all_f32 ? rms_norm_grad_rows_as<float*>(a, begin, end, dw)
            : rms_norm_grad_rows_as<stored::Any>(a, begin, end, dw);
}
void layer_norm_grad_rows(const NormBackward& a, int64_t begin, int64_t end, float* dw, float* db) {
  std::memset(dw, 0, static_cast<size_t>(a.x.rows.cols) * sizeof(float));
  std::memset(db, 0, static_cast<size_t>(a.x.rows.cols) * sizeof(float));
  a.all_f32 ? layer_norm_grad_rows_as<float*>(a, begin, end, dw, db)
            : layer_norm_grad_rows_as<stored::Any>(a, begin, end, dw, db);
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

bool all_f32(const KernelCall& call) {
  const auto is_f32 = [](const TensorRef& ref) { return !ref || ref.type.dtype == ir::DType::kF32; };
  return std::all_of(call.inputs.begin(), call.inputs.end(), is_f32) &&
         std::all_of(call.outputs.begin(), call.outputs.end(), is_f32);
}

// Operands in order: x, residual where `fused`, weight, bias where `layer`; results: sum, y, mean, rstd.
template <bool kLayer, bool kFused>
void forward(const KernelCall& call, ThreadPool& pool) {
  size_t in = 0, out = 0;
  NormForward a{};
  a.all_f32 = all_f32(call);
  a.x = Rows(call.inputs[in++]);
  if (kFused) a.residual = Rows(call.inputs[in++]);
  a.weight = Rows(call.inputs[in++]);
  if (kLayer) a.bias = Rows(call.inputs[in++]);
  if (kFused) a.sum = Rows(call.outputs[out++]);
  a.y = Rows(call.outputs[out++]);
  if (kLayer) a.mean = call.outputs[out++].as<float>();
  a.rstd = call.outputs[out++].as<float>();
  a.eps = static_cast<float>(call.op->attrs.f64("eps"));
  for_row_blocks(pool, a.x.rows.rows, a.x.rows.cols, [&](int64_t begin, int64_t end) {
    kLayer ? HWY_DYNAMIC_DISPATCH(layer_norm_rows)(a, begin, end)
           : HWY_DYNAMIC_DISPATCH(rms_norm_rows)(a, begin, end);
  });
}

// A granule's shares: dw, and behind it db, each [cols]; then a row of f32 for a dw of another dtype.
template <bool kLayer>
int64_t backward_workspace_bytes(const ir::OpTypes& types, int /*num_threads*/) {
  const ir::Shape& shape = types.inputs[0].shape;
  const bool converts = ops::results_without_copy(types.attrs, types.outputs.size()) > 1 &&
                        ir::is_half_precision(types.outputs[1].dtype);
  const int64_t rows = Granules(shape).count() * (kLayer ? 2 : 1) + (converts ? 1 : 0);
  return rows * shape.dim(-1) * static_cast<int64_t>(sizeof(float));
}

// Operands in order: dy, x, weight, mean where `layer`, rstd, d_residual where `fused`, acc_dw?, acc_db?.
template <bool kLayer, bool kFused>
void backward(const KernelCall& call, ThreadPool& pool) {
  size_t in = 0;
  NormBackward a{};
  a.all_f32 = all_f32(call);
  a.dy = Rows(call.inputs[in++]);
  a.x = Rows(call.inputs[in++]);
  a.weight = Rows(call.inputs[in++]);
  if (kLayer) a.mean = call.inputs[in++].as<const float>();
  a.rstd = call.inputs[in++].as<const float>();
  if (kFused) a.d_residual = Rows(call.inputs[in++]);
  const TensorRef acc_dw = input_or_none(call, in++), acc_db = input_or_none(call, in++);
  a.dx = Rows(call.outputs[0]);
  if (ops::has_rounded_copy(call.op->attrs)) a.rounded = Rows(call.outputs.back());

  const Granules granules(call.inputs[0].shape());
  const int64_t cols = a.x.rows.cols, count = granules.count();
  float* dw = reinterpret_cast<float*>(call.workspace.data());
  float* db = dw + count * cols;
  float* row = dw + count * cols * (kLayer ? 2 : 1);
  const auto granule = [&](int64_t g, int) {
    const int64_t begin = granules.begin(g), end = granules.end(g);
    if (kLayer)
      HWY_DYNAMIC_DISPATCH(layer_norm_grad_rows)(a, begin, end, dw + g * cols, db + g * cols);
    else
      HWY_DYNAMIC_DISPATCH(rms_norm_grad_rows)(a, begin, end, dw + g * cols);
  };
  if (a.x.rows.rows * cols > kBlockElements)
    pool.run(count, granule);
  else
    for (int64_t g = 0; g < count; ++g) granule(g, 0);  // too little to wake anyone
  if (ops::results_without_copy(call.op->attrs, call.outputs.size()) == 1) return;  // frozen
  add_granules(dw, count, acc_dw, call.outputs[1], row, pool);
  if (kLayer) add_granules(db, count, acc_db, call.outputs[2], row, pool);
}

}  // namespace

std::span<const Kernel> norm_kernels() {
  static constexpr Kernel kernels[] = {
      {.op = "add_layer_norm", .run = forward<true, true>, .strided_inputs = 0b11, .stored_dtypes = true},
      {.op = "add_rms_norm", .run = forward<false, true>, .strided_inputs = 0b11, .stored_dtypes = true},
      {.op = "layer_norm", .run = forward<true, false>, .strided_inputs = 0b1, .stored_dtypes = true},
      {.op = "layer_norm_grad",
       .run = backward<true, false>,
       .workspace_bytes = backward_workspace_bytes<true>,
       .strided_inputs = 0b11,
       .stored_dtypes = true},
      {.op = "layer_norm_grad_add",
       .run = backward<true, true>,
       .workspace_bytes = backward_workspace_bytes<true>,
       .strided_inputs = 0b100011,
       .stored_dtypes = true},
      {.op = "rms_norm", .run = forward<false, false>, .strided_inputs = 0b1, .stored_dtypes = true},
      {.op = "rms_norm_grad",
       .run = backward<false, false>,
       .workspace_bytes = backward_workspace_bytes<false>,
       .strided_inputs = 0b11,
       .stored_dtypes = true},
      {.op = "rms_norm_grad_add",
       .run = backward<false, true>,
       .workspace_bytes = backward_workspace_bytes<false>,
       .strided_inputs = 0b10011,
       .stored_dtypes = true},
  };
  return kernels;
}

}  // namespace plimsoll::cpu
#endif
