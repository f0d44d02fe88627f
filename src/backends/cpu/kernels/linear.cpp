// Linear maps: operands and layouts of `linear` and `linear_dw` put into terms of the one GEMM.
#include "backends/cpu/kernels/linear.h"

#include <cstring>

#include "backends/cpu/kernels/gemm.h"
#include "backends/cpu/kernels/operands.h"

namespace plimsoll::cpu {
namespace {

int64_t linear_workspace_bytes(const ir::OpTypes& types, int num_threads) {
  const ir::Shape &x = types.inputs[0].shape, &y = types.outputs[0].shape;
  return gemm_workspace_bytes(x.num_rows(), y.dim(-1), x.dim(-1), num_threads);
}

void linear(const KernelCall& call, ThreadPool& pool) {
  const auto x = matrix_of<const float>(call.inputs[0]);
  const auto y = matrix_of<float>(call.outputs[0]);
  const TensorRef bias = input_or_none(call, 2);
  gemm({.m = y.rows,
        .n = y.cols,
        .k = x.cols,
        .a = {x.data, x.stride, 1},
        .b = weight_as_b(call.inputs[1], call.op->attrs.flag("transposed")),
        .c = y.data,
        .c_row_stride = y.stride,
        .bias = bias.as<const float>()},
       pool, call.workspace);
}

int64_t linear_dw_workspace_bytes(const ir::OpTypes& types, int num_threads) {
  const ir::Shape& dw = types.outputs[0].shape;
  return gemm_workspace_bytes(dw.dim(0), dw.dim(1), types.inputs[0].shape.num_rows(), num_threads);
}

void linear_dw(const KernelCall& call, ThreadPool& pool) {
  const TensorRef acc = input_or_none(call, 2);
  float* dw = call.outputs[0].as<float>();
  if (acc && acc.data != call.outputs[0].data)
    std::memcpy(dw, acc.data, static_cast<size_t>(call.outputs[0].num_elements()) * sizeof(float));
  weight_gradient({.x = matrix_of<const float>(call.inputs[0]),
                   .dy = matrix_of<const float>(call.inputs[1]),
                   .dw = dw,
                   .transposed = call.op->attrs.flag("transposed"),
                   .segment = Granules(call.inputs[0].shape()).segment(),
                   .accumulate = static_cast<bool>(acc)},
                  pool, call.workspace);
}

}  // namespace

ConstMatrix weight_as_b(const TensorRef& weight, bool transposed) {
  const float* data = weight.as<const float>();
  const int64_t rows = weight.strides[0], cols = weight.strides[1];
  return transposed ? ConstMatrix{data, rows, cols} : ConstMatrix{data, cols, rows};
}

void weight_gradient(const WeightGradient& g, ThreadPool& pool, std::span<std::byte> workspace) {
  const RowsOf<const float>&left = g.transposed ? g.x : g.dy, &right = g.transposed ? g.dy : g.x;
  gemm({.m = left.cols,
        .n = right.cols,
        .k = left.rows,
        .a = {left.data, 1, left.stride},
        .b = {right.data, right.stride, 1},
        .c = g.dw,
        .c_row_stride = right.cols,
        .k_segment = g.segment,
        .accumulate = g.accumulate},
       pool, workspace);
}

std::span<const Kernel> linear_kernels() {
  static constexpr Kernel kernels[] = {
      {.op = "linear", .run = linear, .workspace_bytes = linear_workspace_bytes, .strided_inputs = 0b11},
      {.op = "linear_dw",
       .run = linear_dw,
       .workspace_bytes = linear_dw_workspace_bytes,
       .strided_inputs = 0b11},
  };
  return kernels;
}

}  // namespace plimsoll::cpu
