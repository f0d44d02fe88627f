// Reductions over any axes of operands of any strides.
#include "backends/cuda/kernels/elementwise/reduce_axes_args.h"
#include "backends/cuda/kernels/operands.h"
#include "base/at.h"
#include "ops/reduce.h"

namespace plimsoll::cuda {
namespace {

static_assert(static_cast<int>(ReduceKind::kMax) == static_cast<int>(ops::Reduce::kMax) &&
              static_cast<int>(ReduceKind::kMean) == static_cast<int>(ops::Reduce::kMean));

/// Elements of a result that a block takes: enough blocks for a card where there is one result.
constexpr int64_t kChunk = 8192;

struct PartedAxes {
  DeviceAxes kept, gone;
  int64_t results = 1, gone_elements = 1;
  bool last_stays = true;
};

PartedAxes part_axes(const ir::Shape& x, const ir::Strides& strides, const std::vector<int64_t>& axes) {
  PartedAxes parted;
  for (int i = 0; i < x.rank(); ++i) {
    const bool goes = std::find(axes.begin(), axes.end(), i) != axes.end();
    DeviceAxes& to = goes ? parted.gone : parted.kept;
    to.extent[i] = x.dim(i);
    to.stride[i] = strides[at(i)];
    (goes ? parted.gone_elements : parted.results) *= x.dim(i);
    if (x.dim(i) > 1) parted.last_stays = !goes;
  }
  return parted;
}

int64_t chunks_of(const PartedAxes& axes) {
  return axes.last_stays ? 1 : ceil_div(axes.gone_elements, kChunk);
}

int64_t reduce_bytes(const ir::OpTypes& types) {
  const ir::Shape& x = types.inputs[0].shape;
  const PartedAxes axes = part_axes(x, ir::dense_strides(x), types.attrs.ints("axes"));
  Scratch scratch;
  if (chunks_of(axes) > 1) scratch.take<float>(axes.results * chunks_of(axes));
  return scratch.bytes();
}

Status reduce(const KernelCall& call, Stream& stream) {
  const TensorRef& x = call.inputs[0];
  const PartedAxes axes = part_axes(x.shape(), x.strides, call.op->attrs.ints("axes"));
  ReduceArgs args{.x = operand(x),
                  .out = operand(call.outputs[0]),
                  .acc = data_or_null<const float>(input_or_none(call, 1)),
                  .kept_axes = axes.kept,
                  .gone_axes = axes.gone,
                  .results = axes.results,
                  .gone = axes.gone_elements,
                  .chunks = chunks_of(axes),
                  .per_chunk = kChunk,
                  .kind = static_cast<ReduceKind>(*ops::parse_reduce(call.op->attrs.str("kind")))};
  if (axes.last_stays)
    return stream.launch(kReduceColumns, blocks(args.results, kThreads), {kThreads}, 0, args);
  Scratch scratch(call);
  if (args.chunks > 1) args.partials = scratch.take<float>(args.results * args.chunks);
  PLIMSOLL_TRY(stream.launch(kReduceChunks, blocks(args.results * args.chunks, 1), {kThreads}, 0, args));
  if (args.chunks == 1) return Ok{};
  return stream.launch(kReducePartials, blocks(args.results, kThreads), {kThreads}, 0, args);
}

}  // namespace

std::span<const Kernel> reduce_axes_kernels() {
  static constexpr Kernel kernels[] = {
      {.op = "reduce", .run = reduce, .workspace_bytes = reduce_bytes, .strided_inputs = 0b1}};
  return kernels;
}

}  // namespace plimsoll::cuda
