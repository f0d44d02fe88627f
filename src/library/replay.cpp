#include "library/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ops/elementwise.h"
#include "ops/loss.h"
#include "ops/pointwise.h"
#include "ops/structure.h"

namespace plimsoll::library {
namespace {

using ir::Op;
using ir::OpId;
using ir::ValueId;

bool draws(const Op& op) {
  const auto random = static_cast<size_t>(op.def->random);
  return op.def->random >= 0 && random < op.inputs.size() && op.inputs[random].valid();
}

ir::Attrs without(const ir::Attrs& attrs, std::initializer_list<std::string_view> names) {
  ir::Attrs left;
  for (const auto& [name, value] : attrs.entries())
    if (std::ranges::find(names, name) == names.end()) left.set(name, value);
  return left;
}

}  // namespace

Replay::Replay(const Trace& trace, const std::vector<bool>& needed, ir::Builder& b,
               const models::Model& model, const tasks::LossOperands& operands)
    : trace_(trace),
      graph_(trace.graph()),
      b_(b),
      model_(model),
      operands_(operands),
      values_(trace.graph().num_values()) {
  for (const TracedNorm& norm : trace.norms())
    if (norm.mean.valid() && needed[static_cast<size_t>(graph_.value(norm.mean).producer.index)])
      ++norms_to_come_[norm.running_mean.index], ++norms_to_come_[norm.running_variance.index];
}

void Replay::append(OpId id) {
  const Op& op = graph_.op(id);
  b_.stand_with(op);
  if (op.def->state == ir::StateAccess::kRead) return read(op);
  if (draws(op) && !operands_.training) return append_quietly(op);
  if (const TracedNorm* norm = running_norm(op.outputs[0])) return append_statistics(op, *norm);
  std::vector<ValueId> inputs;
  for (const ValueId v : op.inputs) inputs.push_back(v.valid() ? at(v) : ValueId{});
  if (const auto mean = trace_.mean_loss(); mean && op.outputs[0] == mean->sum)
    inputs.push_back(b_.op("pointwise", {operands_.grad_scale, at(mean->count)}, {{"expr", "div(x0,x1)"}}));
  const bool has_running =
      !operands_.training && op.inputs.size() > 1 && running_norm(op.inputs[1]) != nullptr;
  keep(op, b_.ops(op.def->name, std::move(inputs), has_running ? without(op.attrs, {"batch"}) : op.attrs));
}

tasks::Outputs Replay::outputs() {
  b_.stand_with(Op{});
  const ValueId loss = single(at(trace_.loss()));
  if (const auto mean = trace_.mean_loss())
    return {.loss = at(mean->sum), .logits = {}, .total = total(loss)};
  const ValueId root = ops::root_loss(b_, loss, operands_.grad_scale);
  return {.loss = root, .logits = {}, .total = total(root)};
}

void Replay::keep(const Op& op, const std::vector<ValueId>& results) {
  for (size_t i = 0; i < op.outputs.size(); ++i) at(op.outputs[i]) = results[i];
}

/// A parameter, a constant, a buffer or what dropout draws from; inputs were given.
void Replay::read(const Op& op) {
  const ValueId traced = op.outputs[0];
  if (at(traced).valid()) return;
  const ir::StateDecl& state = *graph_.find_state(op.attrs.str("name"));
  if (state.state_class == ir::StateClass::kParameter)
    at(traced) = model_.read_parameter(b_, state.name);
  else if (state.state_class == ir::StateClass::kConstant || state.state_class == ir::StateClass::kBuffer)
    at(traced) = b_.state(state);
  else
    at(traced) = operands_.random;
}

/// An op that draws, as it is without: dropout is its operand, attention has all weights.
void Replay::append_quietly(const Op& op) {
  if (op.def->random == 1) {
    at(op.outputs[0]) = at(op.inputs[0]);
    return;
  }
  std::vector<ValueId> inputs;
  for (int32_t i = 0; i < op.def->random; ++i) {
    const ValueId v = op.inputs[static_cast<size_t>(i)];
    inputs.push_back(v.valid() ? at(v) : ValueId{});
  }
  while (!inputs.empty() && !inputs.back().valid()) inputs.pop_back();
  keep(op, b_.ops(op.def->name, std::move(inputs), without(op.attrs, {"p", "key"})));
}

const TracedNorm* Replay::running_norm(ValueId mean) const {
  if (!mean.valid()) return nullptr;  // as the mean of a norm without statistics of the batch
  const auto found = std::ranges::find(trace_.norms(), mean, &TracedNorm::mean);
  return found == trace_.norms().end() ? nullptr : &*found;
}

void Replay::append_statistics(const Op& op, const TracedNorm& norm) {
  if (!operands_.training) {
    at(norm.mean) = current(norm.running_mean), at(norm.variance) = current(norm.running_variance);
    return;
  }
  keep(op, b_.ops(op.def->name, {at(op.inputs[0])}, op.attrs));
  if (!at(norm.variance).valid()) return;
  const auto count = static_cast<double>(norm.count);
  follow(norm.running_mean, at(norm.mean), 1 - norm.momentum, norm.momentum);
  follow(norm.running_variance, at(norm.variance), 1 - norm.momentum, norm.momentum * count / (count - 1));
}

ValueId Replay::current(ValueId buffer) {
  if (!at(buffer).valid())
    at(buffer) = b_.state(*graph_.find_state(graph_.op(graph_.value(buffer).producer).attrs.str("name")));
  return at(buffer);
}

/// A layer that is called twice follows twice; the buffer is written once.
void Replay::follow(ValueId running, ValueId value, double keep, double share) {
  const std::string next = fmt::format("add(mul({},x0),mul({},x1))", keep, share);
  at(running) = ops::pointwise(b_, next, {current(running), value});
  if (--norms_to_come_[running.index] > 0) return;
  b_.assign(graph_.op(graph_.value(running).producer).attrs.str("name"), at(running));
}

/// f32[1].
ValueId Replay::single(ValueId loss) {
  if (b_.type(loss).shape.rank() != 1) loss = ops::reshape(b_, loss, {1});
  return ops::cast(b_, loss, ir::DType::kF32);
}

ValueId Replay::total(ValueId loss) {
  return operands_.acc.valid() ? ops::add(b_, operands_.acc, loss) : loss;
}

}  // namespace plimsoll::library
