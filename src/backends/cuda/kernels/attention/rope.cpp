// Rotary positions: the table of angles, and the turn of heads.
#include "backends/cuda/kernels/attention/rope_args.h"
#include "backends/cuda/kernels/operands.h"

namespace plimsoll::cuda {
namespace {

Status rope_table(const KernelCall& call, Stream& stream) {
  const int64_t half = call.inputs[0].num_elements(), rows = call.outputs[0].num_elements() / (2 * half);
  return stream.launch(kRopeTable, blocks(rows * half, kThreads), {kThreads}, 0,
                       {.inv_freq = call.inputs[0].as<const float>(),
                        .positions = data_or_null<const int32_t>(input_or_none(call, 1)),
                        .table = call.outputs[0].as<float>(),
                        .rows = rows,
                        .half = half,
                        .factor = call.op->attrs.f64("factor")});
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
  return stream.launch(kRopeRows, blocks(a.rows * (in_place ? turned : heads) * parts, kThreads), {kThreads},
                       0, a);
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
  static constexpr Kernel kernels[] = {
      {.op = "rope", .run = rope},
      {.op = "rope_packed", .run = rope_packed, .strided_inputs = 0b1},
      {.op = "rope_table", .run = rope_table},
  };
  return kernels;
}

}  // namespace plimsoll::cuda
