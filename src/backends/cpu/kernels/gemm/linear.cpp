// Linear layers: maps operands and layouts of `linear`, `linear_add` and `linear_dw` to one GEMM.
#include "backends/cpu/kernels/gemm/linear.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "backends/cpu/kernels/gemm/gemm.h"
#include "backends/cpu/kernels/gemm/linear_quantized.h"
#include "backends/cpu/kernels/operands.h"
#include "backends/cpu/widened.h"
#include "base/check.h"

namespace plimsoll::cpu {
namespace {

GemmTypes gemm_types(const ir::OpTypes& types) {
  return {precision_of(types.attrs, types.inputs[0].dtype, types.inputs[1].dtype), types.outputs[0].dtype};
}

int64_t linear_workspace_bytes(const ir::OpTypes& types, int num_threads) {
  if (ir::is_block(types.inputs[1].dtype)) return quantized_workspace_bytes(types, num_threads);
  const ir::Shape &x = types.inputs[0].shape, &y = types.outputs[0].shape;
  return gemm_workspace_bytes(x.num_rows(), y.dim(-1), x.dim(-1), num_threads, gemm_types(types));
}

void linear(const KernelCall& call, ThreadPool& pool) {
  if (ir::is_block(call.inputs[1].type.dtype)) return quantized_linear(call, pool);
  const StoredRows x = stored_rows(call.inputs[0]), y = stored_rows(call.outputs[0]);
  const TensorRef bias = input_or_none(call, 2);
  gemm({.m = y.rows,
        .n = y.cols,
        .k = x.cols,
        .a = {x.data, x.stride, 1, x.dtype},
        .b = weight_as_b(call.inputs[1], call.op->attrs.flag("transposed")),
        .c = y.data,
        .c_row_stride = y.stride,
        .bias = bias.data,
        .precision = precision_of(call.op->attrs, x.dtype, call.inputs[1].type.dtype),
        .c_dtype = y.dtype,
        .bias_dtype = bias.type.dtype,
        .past_caches = beyond_caches(y.rows * y.cols, y.dtype)},
       pool, call.workspace);
}

int64_t added_columns(const ir::TensorType& weight, const ir::Attrs& attrs) {
  return weight.shape.dim(attrs.flag("transposed") ? 1 : 0);
}

int64_t linear_add_workspace_bytes(const ir::OpTypes& types, int num_threads) {
  const ir::Shape& x = types.inputs[0].shape;
  GemmTypes gemm = gemm_types(types);
  gemm.plus_c = true;
  return gemm_workspace_bytes(x.num_rows(), added_columns(types.inputs[1], types.attrs), x.dim(-1),
                              num_threads, gemm);
}

void linear_add(const KernelCall& call, ThreadPool& pool) {
  const TensorRef &weight = call.inputs[1], &base = call.inputs[2], &out = call.outputs[0];
  if (base.data != out.data) std::memcpy(out.data, base.data, static_cast<size_t>(out.type.bytes().count));
  const StoredRows x = stored_rows(call.inputs[0]), y = stored_rows(out);
  const ir::Attrs& attrs = call.op->attrs;
  gemm({.m = y.rows,
        .n = added_columns(weight.type, attrs),
        .k = x.cols,
        .a = {x.data, x.stride, 1, x.dtype},
        .b = weight_as_b(weight, attrs.flag("transposed")),
        .c = y.data + attrs.i64("column") * ir::bits(y.dtype) / 8,
        .c_row_stride = y.stride,
        .plus_c = true,
        .precision = precision_of(attrs, x.dtype, weight.type.dtype),
        .c_dtype = y.dtype},
       pool, call.workspace);
}

int64_t linear_dw_workspace_bytes(const ir::OpTypes& types, int num_threads) {
  const ir::Shape& dw = types.outputs[0].shape;
  return gemm_workspace_bytes(dw.dim(0), dw.dim(1), types.inputs[0].shape.num_rows(), num_threads,
                              gemm_types(types));
}

void linear_dw(const KernelCall& call, ThreadPool& pool) {
  const TensorRef acc = input_or_none(call, 2);
  const TensorRef& dw = call.outputs[0];
  if (acc && acc.data != dw.data) std::memcpy(dw.data, acc.data, static_cast<size_t>(dw.type.bytes().count));
  const StoredRows x = stored_rows(call.inputs[0]), dy = stored_rows(call.inputs[1]);
  weight_gradient({.x = x,
                   .dy = dy,
                   .dw = dw.data,
                   .dw_dtype = dw.type.dtype,
                   .transposed = call.op->attrs.flag("transposed"),
                   .segment = Granules(call.inputs[0].shape()).segment(),
                   .accumulate = static_cast<bool>(acc),
                   .precision = precision_of(call.op->attrs, x.dtype, dy.dtype)},
                  pool, call.workspace);
}

// linear_dw_db, which only cards compute at once, is the two ops one after the other, in the same scratch.

const Kernel& sum_kernel() { return *find_kernel("sum_rows"); }

int64_t linear_dw_db_workspace_bytes(const ir::OpTypes& types, int num_threads) {
  ir::OpTypes sum{"sum_rows", {types.inputs[1]}, {types.outputs[1]}, types.attrs};
  if (types.has(3)) sum.inputs.push_back(types.inputs[3]);
  return std::max(linear_dw_workspace_bytes(types, num_threads),
                  kernel_workspace_bytes(sum_kernel(), sum, num_threads));
}

void linear_dw_db(const KernelCall& call, ThreadPool& pool) {
  const std::array<TensorRef, 2> rows = {call.inputs[1], input_or_none(call, 3)};
  linear_dw(call, pool);
  run_kernel(sum_kernel(),
             {call.op, std::span(rows).first(rows[1] ? 2 : 1), call.outputs.subspan(1), call.workspace},
             pool);
}

}  // namespace

StoredRows stored_rows(const TensorRef& ref) {
  const auto rows = matrix_of<std::byte>(ref);
  return {ref.data, ref.type.dtype, rows.rows, rows.cols, rows.stride};
}

ConstMatrix weight_as_b(const TensorRef& weight, bool transposed) {
  const int64_t rows = weight.strides[0], cols = weight.strides[1];
  return transposed ? ConstMatrix{weight.data, rows, cols, weight.type.dtype}
                    : ConstMatrix{weight.data, cols, rows, weight.type.dtype};
}

void weight_gradient(const WeightGradient& g, ThreadPool& pool, std::span<std::byte> workspace) {
  const StoredRows &left = g.transposed ? g.x : g.dy, &right = g.transposed ? g.dy : g.x;
  gemm({.m = left.cols,
        .n = right.cols,
        .k = left.rows,
        .a = {left.data, 1, left.stride, left.dtype},
        .b = {right.data, right.stride, 1, right.dtype},
        .c = g.dw,
        .c_row_stride = right.cols,
        .k_segment = g.segment,
        .accumulate = g.accumulate,
        .precision = g.precision,
        .c_dtype = g.dw_dtype,
        .past_caches = beyond_caches(left.cols * right.cols, g.dw_dtype)},
       pool, workspace);
}

std::span<const Kernel> linear_kernels() {
  static constexpr Kernel kernels[] = {
      {.op = "linear",
       .run = linear,
       .workspace_bytes = linear_workspace_bytes,
       .strided_inputs = 0b11,
       .stored_dtypes = true},
      {.op = "linear_add",
       .run = linear_add,
       .workspace_bytes = linear_add_workspace_bytes,
       .strided_inputs = 0b11,
       .stored_dtypes = true},
      {.op = "linear_dw",
       .run = linear_dw,
       .workspace_bytes = linear_dw_workspace_bytes,
       .strided_inputs = 0b11,
       .stored_dtypes = true},
      {.op = "linear_dw_db",
       .run = linear_dw_db,
       .workspace_bytes = linear_dw_db_workspace_bytes,
       .strided_inputs = 0b11,
       .stored_dtypes = true},
  };
  return kernels;
}

}  // namespace plimsoll::cpu
