// Losses, each one number.
#include <fmt/format.h>

#include <numeric>

#include "library/front_ops.h"
#include "ops/loss.h"

namespace plimsoll::library {
namespace {

using ir::ValueId;

/// sum / count, which a plan knows as the mean of a cross-entropy: its head and its loss can be one op.
Result<Values> build_cross_entropy(OpCall& call) {
  const ir::TensorType logits = call.type(size_t{0}), labels = call.type(1);
  if (call.attrs.integer("ignore_index") != ops::kIgnoreTarget)
    return call.attrs.wrong("ignore_index", "-100");
  const std::vector<int64_t> dims = extents(logits.shape);
  if (dims.size() < 2 || labels.dtype != ir::DType::kI32 ||
      extents(labels.shape) != std::vector<int64_t>(dims.begin(), dims.end() - 1))
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("cross_entropy: logits {} and labels {}, expected […, classes] and integers […]",
                             ir::to_string(logits), ir::to_string(labels))};
  PLIMSOLL_TRY(call.trace.note_range(call.inputs[1], dims.back(), /*ignores=*/true, "cross_entropy"));
  std::vector<int64_t> axes(dims.size() - 1);
  std::iota(axes.begin(), axes.end(), 0);
  // Without a label that counts the mean is 0, and no gradient comes of it.
  const ValueId counts = call.pointwise(fmt::format("ne(x0,{})", ops::kIgnoreTarget), {call.inputs[1]});
  const ValueId count = call.pointwise("max(x0,1)", {call.reduce("sum", counts, axes, /*keeps=*/false)});
  const ValueId sum = ops::cross_entropy(call.b, call.inputs[0], call.inputs[1], {}, {}).loss;
  const ValueId mean = call.pointwise("div(x0,x1)", {sum, count});
  call.trace.note_mean(mean, {sum, count});
  return Values{mean};
}

Result<Values> mean_of(OpCall& call, std::string_view name, std::string expression) {
  if (!(call.type(size_t{0}).shape == call.type(1).shape))
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{}: the shapes differ: {} and {}", name, ir::to_string(call.type(size_t{0})),
                             ir::to_string(call.type(1)))};
  return Values{call.mean_of_all(call.pointwise(std::move(expression), {call.inputs[0], call.inputs[1]}))};
}

Result<Values> build_mse(OpCall& call) { return mean_of(call, "mse", "t0=sub(x0,x1);mul(t0,t0)"); }

Result<Values> build_bce(OpCall& call) {
  return mean_of(call, "bce_with_logits", "add(mul(sub(1,x1),x0),softplus(neg(x0)))");
}

}  // namespace

FrontGroup front_losses() {
  static const std::vector<FrontOp> kOps = {
      {"cross_entropy",
       "the mean of -log softmax(logits)[label] over labels that are not ignored",
       {"logits", "labels"},
       {{"ignore_index", "-100"}},
       build_cross_entropy},
      {"mse", "the mean of (a - b) squared", {"a", "b"}, {}, build_mse},
      {"bce_with_logits", "the mean binary cross-entropy of logits", {"logits", "labels"}, {}, build_bce},
  };
  return kOps;
}

}  // namespace plimsoll::library
