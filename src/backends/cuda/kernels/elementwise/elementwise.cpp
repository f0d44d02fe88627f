// Arithmetic element by element, casts, copies and constants.
#include <bit>
#include <cstring>
#include <vector>

#include "backends/cuda/kernels/elementwise/copies.h"
#include "backends/cuda/kernels/elementwise/elementwise_args.h"

namespace plimsoll::cuda {
namespace {

Dim grid_of(int64_t n) { return blocks(n, kEach * kThreads); }

template <BinaryOp kWhat>
Status binary(const KernelCall& call, Stream& stream) {
  const int64_t n = call.outputs[0].num_elements();
  return stream.launch(kBinary, grid_of(n), {kThreads}, 0,
                       {.x = operand(call.inputs[0]),
                        .y = operand(call.inputs[1]),
                        .out = operand(call.outputs[0]),
                        .n = n,
                        .what = kWhat});
}

Status scale(const KernelCall& call, Stream& stream) {
  const int64_t n = call.outputs[0].num_elements();
  return stream.launch(kScaled, grid_of(n), {kThreads}, 0,
                       {.x = operand(call.inputs[0]),
                        .s = call.inputs[1].as<const float>(),
                        .out = operand(call.outputs[0]),
                        .n = n});
}

Status bias_add(const KernelCall& call, Stream& stream) {
  const int64_t n = call.outputs[0].num_elements();
  return stream.launch(kBiasAddRows, grid_of(n), {kThreads}, 0,
                       {.x = operand(call.inputs[0]),
                        .bias = operand(call.inputs[1]),
                        .out = operand(call.outputs[0]),
                        .n = n,
                        .cols = call.inputs[1].num_elements()});
}

Status cast(const KernelCall& call, Stream& stream) {
  const Operand x = operand(call.inputs[0]), out = operand(call.outputs[0]);
  const int64_t n = call.outputs[0].num_elements();
  if (x.dtype != kU8) return cast_elements(x, out, n, stream);
  return stream.launch(kCastBytes, blocks(n, kThreads), {kThreads}, 0, {.x = x, .out = out, .n = n});
}

Status fill(const KernelCall& call, Stream& stream) {
  const auto value = static_cast<float>(call.op->attrs.f64("value"));
  return stream.fill(call.outputs[0].data, call.outputs[0].type.bytes().count,
                     std::bit_cast<uint32_t>(value));
}

Status copy(const KernelCall& call, Stream& stream) {
  return copy_elements(call.inputs[0], call.outputs[0], call, stream);
}

/// The part of `whole` along its last axis.
TensorRef columns_of(const TensorRef& whole, const ir::Shape& shape, int64_t first) {
  TensorRef part = whole;
  part.data += first * (ir::bits(whole.type.dtype) / 8);
  part.type.shape = shape;
  return part;
}

Status concat(const KernelCall& call, Stream& stream) {
  int64_t first = 0;
  for (const TensorRef& part : call.inputs) {
    PLIMSOLL_TRY(copy_elements(part, columns_of(call.outputs[0], part.shape(), first), call, stream));
    first += part.shape().dim(-1);
  }
  return Ok{};
}

Status concat_rows(const KernelCall& call, Stream& stream) {
  TensorRef to = call.outputs[0];
  for (const TensorRef& part : call.inputs) {
    to.type = part.type;
    PLIMSOLL_TRY(copy_elements(part, to, call, stream));
    to.data += part.type.bytes().count;
  }
  return Ok{};
}

struct Axis {
  int64_t extent, from, to;
};

/// Axes from the innermost on, those that lie one behind the other in both made one.
std::vector<Axis> collapsed(const TensorRef& from, const TensorRef& to) {
  std::vector<Axis> axes;
  for (int i = from.shape().rank() - 1; i >= 0; --i) {
    const auto at = static_cast<size_t>(i);
    const Axis axis{from.shape().dim(i), from.strides[at], to.strides[at]};
    if (axis.extent == 1) continue;
    if (!axes.empty() && axis.from == axes.back().from * axes.back().extent &&
        axis.to == axes.back().to * axes.back().extent)
      axes.back().extent *= axis.extent;
    else
      axes.push_back(axis);
  }
  if (axes.empty()) axes.push_back({1, 1, 1});
  return axes;
}

/// In units of 16 bytes, where runs, strides and addresses are multiples of that; the unit's bytes.
int32_t widen(std::vector<Axis>& axes, const TensorRef& from, const TensorRef& to, int64_t element) {
  const int64_t each = 16 / element;
  bool fits = axes[0].from == 1 && axes[0].to == 1 && axes[0].extent % each == 0 &&
              (std::bit_cast<uintptr_t>(from.data) | std::bit_cast<uintptr_t>(to.data)) % 16 == 0;
  for (size_t i = 1; i < axes.size(); ++i) fits = fits && axes[i].from % each == 0 && axes[i].to % each == 0;
  if (!fits) return static_cast<int32_t>(element);
  axes[0].extent /= each;
  for (size_t i = 1; i < axes.size(); ++i) axes[i].from /= each, axes[i].to /= each;
  return 16;
}

}  // namespace

Status copy_elements(const TensorRef& from, const TensorRef& to, const KernelCall& call, Stream& stream) {
  if (ir::is_block(from.type.dtype) || (from.is_dense() && to.is_dense()))
    return from.data == to.data ? Status(Ok{}) : stream.copy(to.data, from.data, from.type.bytes().count);
  std::vector<Axis> axes = collapsed(from, to);
  if (axes.size() > 4) return cannot(call, "a view of more than four axes");
  const int32_t unit = widen(axes, from, to, ir::bits(from.type.dtype) / 8);
  CopyStrided c{.from_data = from.data, .to_data = to.data, .unit = unit};
  int64_t units = 1;
  for (size_t i = 0; i < axes.size(); ++i) {
    c.extent[3 - i] = axes[i].extent;
    c.from[3 - i] = axes[i].from;
    c.to[3 - i] = axes[i].to;
    units *= axes[i].extent;
  }
  return stream.launch(kCopyStrided, blocks(units, kThreads), {kThreads}, 0, c);
}

Status cast_elements(const Operand& from, const Operand& to, int64_t n, Stream& stream) {
  if (from.dtype == to.dtype)
    return from.data == to.data ? Status(Ok{})
                                : stream.copy(to.data, from.data, n * (from.dtype == kF32 ? 4 : 2));
  return stream.launch(kScaled, grid_of(n), {kThreads}, 0, {.x = from, .out = to, .n = n});
}

Status cast_to_rows(const Operand& from, int64_t stride, const Operand& to, int64_t rows, int64_t cols,
                    bool tf32, Stream& stream) {
  return stream.launch(
      kCastRows, grid_of(rows * cols), {kThreads}, 0,
      {.x = from, .stride = stride, .out = to, .rows = rows, .cols = cols, .tf32 = tf32 ? 1 : 0});
}

std::span<const Kernel> elementwise_kernels() {
  static constexpr Kernel kernels[] = {
      {.op = "add", .run = binary<BinaryOp::kAdd>},
      {.op = "bias_add", .run = bias_add},
      {.op = "cast", .run = cast},
      {.op = "concat", .run = concat, .strided_inputs = ~0U},
      {.op = "concat_rows", .run = concat_rows},
      {.op = "copy", .run = copy, .strided_inputs = 0b1},
      {.op = "fill", .run = fill},
      {.op = "mul", .run = binary<BinaryOp::kMul>},
      {.op = "scale", .run = scale},
  };
  return kernels;
}

}  // namespace plimsoll::cuda
