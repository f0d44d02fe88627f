// Rotary positions: the table of angles, and the turn of heads.
#include <vector>

#include "backends/cuda/kernels/operands.h"
#include "backends/cuda/kernels/sequences.h"

namespace plimsoll::cuda {
namespace {

/// As rope.cu has it.
struct RopeRows {
  Operand x, y;
  const float* table = nullptr;
  int64_t rows = 0, stride = 0, heads = 0, turned = 0, half = 0, table_rows = 0;
  float sign = 1;
};

Status rope_table(const KernelCall& call, Stream& stream) {
  const int64_t half = call.inputs[0].num_elements(), rows = call.outputs[0].num_elements() / (2 * half);
  return stream.launch("rope_table", blocks(rows * half, kThreads), {kThreads}, 0,
                       call.inputs[0].as<const float>(), data_or_null<const int32_t>(input_or_none(call, 1)),
                       call.outputs[0].as<float>(), rows, half, call.op->attrs.f64("factor"));
}

Status turn(const KernelCall& call, int64_t heads, int64_t turned, Stream& stream) {
  const TensorRef &x = call.inputs[0], &table = call.inputs[1];
  RopeRows a;
  a.x = operand(x);
  a.y = operand(call.outputs[0]);
  a.table = table.as<const float>();
  a.heads = heads;
  a.turned = turned;
  a.half = table.shape().dim(2) / 2;
  a.rows = x.num_elements() / (heads * 2 * a.half);
  a.stride = x.shape().rank() == 3 ? row_stride(x) : heads * 2 * a.half;
  a.table_rows = table.shape().num_rows();
  a.sign = call.op->attrs.flag("inverse") ? -1.0F : 1.0F;
  const bool in_place = x.data == call.outputs[0].data;
  const int64_t parts = a.half % 8 == 0 ? a.half / 8 : a.half;
  return stream.launch("rope_rows", blocks(a.rows * (in_place ? turned : heads) * parts, kThreads),
                       {kThreads}, 0, a);
}

Status rope(const KernelCall& call, Stream& stream) {
  const int64_t heads = call.inputs[0].shape().dim(2);
  return turn(call, heads, heads, stream);
}

Status rope_packed(const KernelCall& call, Stream& stream) {
  const ir::Attrs& attrs = call.op->attrs;
  return turn(call, call.inputs[0].shape().dim(2) / attrs.i64("head_dim"), attrs.i64("heads"), stream);
}

}  // namespace

std::span<const Kernel> rope_kernels() {
  static const std::vector<Kernel> kernels = [] {
    std::vector<Kernel> list = {
        {.op = "rope", .run = rope},
        {.op = "rope_packed", .run = rope_packed, .strided_inputs = 0b1},
        {.op = "rope_table", .run = rope_table},
    };
    for (const Kernel& kernel : qk_norm_kernels()) list.push_back(kernel);
    return list;
  }();
  return kernels;
}

}  // namespace plimsoll::cuda
