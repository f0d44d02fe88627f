#include "backends/cuda/kernels/norm/sums.h"

#include "backends/cuda/kernels/norm/row_strides.h"
#include "backends/cuda/kernels/norm/sums_args.h"

namespace plimsoll::cuda {
namespace {

Status sum_rows(const KernelCall& call, Stream& stream) {
  const TensorRef& dy = call.inputs[0];
  auto* partial = Scratch(call).take<float>(column_sum_elements(dy.shape()));
  return sum_columns({dy}, partial, input_or_none(call, 1), call.outputs[0], stream);
}

}  // namespace

int64_t column_sum_bytes(const ir::OpTypes& types) {
  Scratch scratch;
  scratch.take<float>(column_sum_elements(types.inputs[0].shape));
  return scratch.bytes();
}

Status accepts_column_sum(const ir::OpTypes& types, int /*capability*/) {
  constexpr int64_t kMost = 65535;  // granules are the second dimension of the grid
  if (Granules(types.inputs[0].shape).count() <= kMost) return Ok{};
  return Error{ErrorCode::kInvalidArgument,
               "sums over rows on a CUDA card take at most 65,535 times 256 rows at once", "runtime.device",
               "set training.micro_batch_size=auto, or to less"};
}

Status add_partials(const float* partial, int64_t granules, int64_t cols, const TensorRef& acc,
                    const TensorRef& out, Stream& stream) {
  return stream.launch(
      kAddPartials, blocks(cols, 64), {64}, 0,
      {.partial = partial, .granules = granules, .cols = cols, .acc = operand(acc), .out = operand(out)});
}

Status sum_columns(const ColumnSum& sum, float* partial, const TensorRef& acc, const TensorRef& out,
                   Stream& stream) {
  const Granules granules(sum.dy.shape());
  const int64_t cols = sum.dy.shape().dim(-1);
  ColumnSums a;
  a.dy = operand(sum.dy);
  a.dy_rows = row_strides(sum.dy);
  if (sum.x) {
    a.x = operand(sum.x);
    a.x_rows = row_strides(sum.x);
  }
  a.mean = sum.mean;
  a.rstd = sum.rstd;
  a.partial = partial;
  a.granules = device_granules(granules);
  a.cols = cols;
  const Dim grid{static_cast<uint32_t>(ceil_div(cols, kColumnsOfBlock)),
                 static_cast<uint32_t>(granules.count())};
  PLIMSOLL_TRY(stream.launch(kSumColumns, grid, {kColumnsOfBlock, kRowsOfBlock}, 0, a));
  return add_partials(partial, granules.count(), cols, acc, out, stream);
}

std::span<const Kernel> sum_kernels() {
  static constexpr Kernel kernels[] = {
      {.op = "sum_rows",
       .run = sum_rows,
       .workspace_bytes = column_sum_bytes,
       .strided_inputs = 0b1,
       .accepts = accepts_column_sum},
  };
  return kernels;
}

}  // namespace plimsoll::cuda
