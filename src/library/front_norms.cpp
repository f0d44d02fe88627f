// Norms. Those of images have their channels on axis 1, as torch's have.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "library/front_ops.h"
#include "library/invalid.h"
#include "ops/batch_norm.h"
#include "ops/group_norm.h"
#include "ops/norm.h"
#include "ops/op_list.h"

namespace plimsoll::library {
namespace {

using ir::ValueId;

Result<Values> build_rms_norm(OpCall& call) {
  const double eps = call.attrs.number("eps");
  return Values{ops::rms_norm(call.b, call.inputs[0], call.inputs[1], eps).y};
}

Result<Values> build_layer_norm(OpCall& call) {
  const double eps = call.attrs.number("eps");
  return Values{ops::layer_norm(call.b, call.inputs[0], call.inputs[1], call.inputs[2], eps).y};
}

/// x [N, C, ...] with its channels behind all other axes.
ValueId channels_behind(const OpCall& call, ValueId x) {
  const int rank = call.type(x).shape.rank();
  if (rank == 4) return call.channels_last(x);
  std::vector<int64_t> axes(static_cast<size_t>(rank));
  std::iota(axes.begin(), axes.end(), 0);
  std::rotate(axes.begin() + 1, axes.begin() + 2, axes.end());
  return call.permute(x, std::move(axes));
}

/// And back: [N, ..., C] as [N, C, ...].
ValueId channels_second(const OpCall& call, ValueId y) {
  const int rank = call.type(y).shape.rank();
  if (rank == 4) return call.channels_first(y);
  std::vector<int64_t> axes(static_cast<size_t>(rank));
  std::iota(axes.begin(), axes.end(), 0);
  std::rotate(axes.begin() + 1, axes.end() - 1, axes.end());
  return call.permute(y, std::move(axes));
}

/// Operand `input` [channels], or a constant of `otherwise` where it is left out.
Result<ValueId> row(const OpCall& call, size_t input, std::string_view name, int64_t channels,
                    float otherwise) {
  if (call.has(input)) {
    const ir::TensorType& type = call.type(input);
    if (type.shape == ir::Shape{channels}) return call.inputs[input];
    return invalid(fmt::format("{} is {}, and x has {} channels", name, ir::to_string(type), channels));
  }
  const std::vector<float> values(static_cast<size_t>(channels), otherwise);
  const auto bytes = std::as_bytes(std::span(values));
  return call.trace.own_constant({ir::DType::kF32, {channels}}, {bytes.begin(), bytes.end()});
}

Result<int64_t> channels_of(const OpCall& call, std::string_view op, int least) {
  const ir::TensorType& x = call.type(size_t{0});
  if (x.shape.rank() < least)
    return invalid(fmt::format("{}: x is {}, expected [batch, channels{}]", op, ir::to_string(x),
                               least > 2 ? ", …" : ""));
  return x.shape.dim(1);
}

/// The running values, which are buffers; both or none.
Status take_running(const OpCall& call, TracedNorm& norm) {
  if (call.has(3) != call.has(4)) return invalid("batch_norm: one of the running values is left out");
  if (!call.has(3)) return Ok{};
  norm.running_mean = call.inputs[3], norm.running_variance = call.inputs[4];
  const TracedBuffer* mean = call.trace.find_buffer(norm.running_mean);
  const TracedBuffer* variance = call.trace.find_buffer(norm.running_variance);
  if (mean == nullptr || variance == nullptr || mean == variance)
    return invalid("batch_norm: running values are no buffers", "declare them with kind buffer");
  const ir::Shape channels{call.type(size_t{0}).shape.dim(1)};
  if (mean->shape == channels && variance->shape == channels) return Ok{};
  return invalid(fmt::format("batch_norm: running values are {} and {}, and x has {} channels",
                             ir::to_string(mean->shape), ir::to_string(variance->shape), channels.dim(0)));
}

Result<Values> build_batch_norm(OpCall& call) {
  PLIMSOLL_ASSIGN(const int64_t channels, channels_of(call, "batch_norm", 2));
  PLIMSOLL_ASSIGN(const ValueId weight, row(call, 1, "batch_norm: weight", channels, 1));
  PLIMSOLL_ASSIGN(const ValueId bias, row(call, 2, "batch_norm: bias", channels, 0));
  TracedNorm norm{.eps = call.attrs.number("eps"),
                  .momentum = call.attrs.number("momentum"),
                  .count = call.type(size_t{0}).num_elements() / channels};
  PLIMSOLL_TRY(take_running(call, norm));
  const bool has_running = norm.running_mean.valid();
  const bool is_batch = call.attrs.flag("training") || !has_running;
  if (!(norm.momentum >= 0 && norm.momentum <= 1))
    return call.attrs.wrong("momentum", "a number from 0 to 1");
  if (is_batch && norm.count < 2)
    return invalid("batch_norm: a channel has one value, whose variance is unknown",
                   "give it a larger batch, or use the running values");
  const ValueId x = channels_behind(call, call.inputs[0]);
  ValueId mean = norm.running_mean, variance = norm.running_variance;
  if (is_batch) {
    const ops::BatchStatistics statistics = ops::batch_statistics(call.b, x);
    mean = norm.mean = statistics.mean, variance = norm.variance = statistics.variance;
  }
  if (has_running) call.trace.note_norm(norm);
  const ValueId y =
      ops::batch_norm(call.b, x, mean, variance, weight, bias, {}, {.eps = norm.eps, .batch = is_batch});
  return Values{channels_second(call, y)};
}

Result<Values> build_group_norm(OpCall& call) {
  PLIMSOLL_ASSIGN(const int64_t channels, channels_of(call, "group_norm", 3));
  const int64_t groups = call.attrs.integer("groups");
  if (groups < 1 || channels % groups != 0)
    return call.attrs.wrong("groups", fmt::format("a divisor of the {} channels", channels));
  PLIMSOLL_ASSIGN(const ValueId weight, row(call, 1, "group_norm: weight", channels, 1));
  PLIMSOLL_ASSIGN(const ValueId bias, row(call, 2, "group_norm: bias", channels, 0));
  const double eps = call.attrs.number("eps");
  const ValueId x = channels_behind(call, call.inputs[0]);
  return Values{channels_second(call, ops::group_norm(call.b, x, weight, bias, groups, eps).y)};
}

/// The op that makes x, where it is a batch norm without activation in the block of what follows.
const ir::Op* plain_norm(const OpCall& call, ValueId x) {
  const ir::Op& op = call.b.graph().op(call.b.graph().value(x).producer);
  const bool is_plain =
      op.def == ops::find_op("batch_norm") && !op.attrs.flag("relu") && op.inputs.size() == 5;
  return is_plain && op.block == call.trace.scopes().block() ? &op : nullptr;
}

}  // namespace

ValueId norm_with_relu(const OpCall& call, ValueId x) {
  const ValueId image = call.trace.find_channels_last(x);
  if (!image.valid()) return {};
  const ir::Op* norm = plain_norm(call, image);
  ValueId residual;
  const ir::Op& made = call.b.graph().op(call.b.graph().value(image).producer);
  if (norm == nullptr && made.def == ops::find_op("add")) {
    norm = plain_norm(call, made.inputs[0]);
    residual = made.inputs[norm != nullptr ? 1 : 0];
    if (norm == nullptr) norm = plain_norm(call, made.inputs[1]);
  }
  if (norm == nullptr) return {};
  const std::vector<ValueId> in = norm->inputs;
  const ops::BatchNorm how{.eps = norm->attrs.f64("eps"), .batch = norm->attrs.flag("batch"), .relu = true};
  return call.channels_first(ops::batch_norm(call.b, in[0], in[1], in[2], in[3], in[4], residual, how));
}

FrontGroup front_norms() {
  static const std::vector<FrontOp> kOps = {
      {"rms_norm",
       "root-mean-square normalisation of the last axis",
       {"x", "weight"},
       {{"eps", "1e-6"}},
       build_rms_norm},
      {"layer_norm",
       "normalisation of the last axis",
       {"x", "weight", "bias"},
       {{"eps", "1e-5"}},
       build_layer_norm},
      {"batch_norm",
       "normalisation of each channel of x [batch, channels, ...] over the batch",
       {"x", "weight?", "bias?", "running_mean?", "running_var?"},
       {{"eps", "1e-5"}, {"momentum", "0.1"}, {"training", "true"}},
       build_batch_norm},
      {"group_norm",
       "normalisation of groups of channels of x [batch, channels, ...]",
       {"x", "weight?", "bias?"},
       {{"groups"}, {"eps", "1e-5"}},
       build_group_norm},
  };
  return kOps;
}

}  // namespace plimsoll::library
