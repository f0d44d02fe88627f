#include "library/traced_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/check.h"
#include "ops/elementwise.h"
#include "ops/loss.h"
#include "ops/op_list.h"
#include "ops/structure.h"
#include "passes/training/autodiff.h"
#include "planner/programs/step_programs.h"

namespace plimsoll::library {
namespace {

using ir::Op;
using ir::OpId;
using ir::ValueId;

/// The block that reads the value; none where several do.
int32_t block_of(const ir::Graph& graph, ValueId value) {
  std::optional<int32_t> block;
  for (const OpId id : graph.order()) {
    const Op& op = graph.op(id);
    if (std::ranges::find(op.inputs, value) == op.inputs.end()) continue;
    if (block && *block != op.block) return ir::kNoBlock;
    block = op.block;
  }
  return block.value_or(ir::kNoBlock);
}

/// The trace's ops in another graph, one after the other.
class Replay {
 public:
  Replay(const Trace& trace, ir::Builder& b, const models::Model& model, const tasks::LossOperands& operands)
      : trace_(trace),
        graph_(trace.graph()),
        b_(b),
        model_(model),
        operands_(operands),
        values_(trace.graph().num_values()) {}

  void give(ValueId traced, ValueId value) { at(traced) = value; }

  void append(OpId id) {
    const Op& op = graph_.op(id);
    b_.stand_with(op);
    if (op.def->state == ir::StateAccess::kRead) return read(op);
    if (draws(op) && !operands_.training) return append_quietly(op);
    std::vector<ValueId> inputs;
    for (const ValueId v : op.inputs) inputs.push_back(v.valid() ? at(v) : ValueId{});
    if (const auto mean = trace_.mean_loss(); mean && op.outputs[0] == mean->sum)
      inputs.push_back(b_.op("pointwise", {operands_.grad_scale, at(mean->count)}, {{"expr", "div(x0,x1)"}}));
    keep(op, b_.ops(op.def->name, std::move(inputs), op.attrs));
  }

  /// The loss stands outside of all blocks, wherever its last op does.
  tasks::Outputs outputs() {
    b_.stand_with(Op{});
    const ValueId loss = single(at(trace_.loss()));
    if (const auto mean = trace_.mean_loss())
      return {.loss = at(mean->sum), .logits = {}, .total = total(loss)};
    const ValueId root = ops::root_loss(b_, loss, operands_.grad_scale);
    return {.loss = root, .logits = {}, .total = total(root)};
  }

 private:
  ValueId& at(ValueId traced) { return values_[static_cast<size_t>(traced.index)]; }

  void keep(const Op& op, const std::vector<ValueId>& results) {
    for (size_t i = 0; i < op.outputs.size(); ++i) at(op.outputs[i]) = results[i];
  }

  static bool draws(const Op& op) {
    const auto random = static_cast<size_t>(op.def->random);
    return op.def->random >= 0 && random < op.inputs.size() && op.inputs[random].valid();
  }

  /// A parameter, a constant or what dropout draws from; inputs were given.
  void read(const Op& op) {
    const ValueId traced = op.outputs[0];
    if (at(traced).valid()) return;
    const ir::StateDecl& state = *graph_.find_state(op.attrs.str("name"));
    if (state.state_class == ir::StateClass::kParameter)
      at(traced) = model_.read_parameter(b_, state.name);
    else if (state.state_class == ir::StateClass::kConstant)
      at(traced) = b_.state(state);
    else
      at(traced) = operands_.random;
  }

  /// An op that draws, as it is without: dropout is its operand, attention has all weights.
  void append_quietly(const Op& op) {
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
    ir::Attrs attrs;
    for (const auto& [name, value] : op.attrs.entries())
      if (name != "p" && name != "key") attrs.set(name, value);
    keep(op, b_.ops(op.def->name, std::move(inputs), std::move(attrs)));
  }

  /// f32[1].
  ValueId single(ValueId loss) {
    if (b_.type(loss).shape.rank() != 1) loss = ops::reshape(b_, loss, {1});
    return ops::cast(b_, loss, ir::DType::kF32);
  }
  ValueId total(ValueId loss) { return operands_.acc.valid() ? ops::add(b_, operands_.acc, loss) : loss; }

  const Trace& trace_;
  const ir::Graph& graph_;
  ir::Builder& b_;
  const models::Model& model_;
  const tasks::LossOperands& operands_;
  std::vector<ValueId> values_;  // by value of the trace
};

/// For each parameter whether a gradient of the loss comes to it.
Result<std::vector<bool>> learning(const std::shared_ptr<const Trace>& trace) {
  const TracedModel model(*trace);
  const TracedTask task(trace);
  ir::Graph graph;
  ir::Builder b(graph, ops::find_op);
  std::vector<ValueId> inputs;
  for (const datasets::TensorSpec& input : task.inputs())
    inputs.push_back(
        b.state({planner::input_state(input.name), input.batch_type(1, 1), ir::StateClass::kInput}));
  const ValueId scale =
      b.state({std::string(planner::kGradScaleState), {ir::DType::kF32, {1}}, ir::StateClass::kScalars});
  const ValueId random =
      b.state({std::string(planner::kRandomState), {ir::DType::kI32, {4}}, ir::StateClass::kScalars});
  const tasks::Outputs outputs =
      task.forward(b, model, inputs, {.grad_scale = scale, .training = true, .random = random});
  PLIMSOLL_TRY(b.status());
  std::map<std::string, ValueId, std::less<>> reads;
  for (const OpId id : graph.order())
    if (graph.op(id).def->state == ir::StateAccess::kRead)
      reads.emplace(graph.op(id).attrs.str("name"), graph.op(id).outputs[0]);
  std::vector<ValueId> wrt;
  for (const models::Parameter& p : model.parameters()) wrt.push_back(reads.at(p.name));
  PLIMSOLL_ASSIGN(const passes::AutodiffReport report, passes::autodiff(graph, {outputs.loss, wrt}));
  std::vector<bool> learns;
  for (const auto& contributions : report.contributions) learns.push_back(!contributions.empty());
  return learns;
}

}  // namespace

TracedModel::TracedModel(const Trace& trace) {
  for (const TracedParameter& p : trace.parameters()) {
    models::Parameter parameter{
        .name = p.name, .kind = p.kind(), .shape = p.shape, .views = {{p.name, 0, p.shape}}};
    parameter.init = p.options.init == FirstValue::kNormal ? models::Init::kNormal
                     : p.options.init == FirstValue::kOnes ? models::Init::kOnes
                                                           : models::Init::kZeros;
    parameter.init_std = p.options.number;
    parameter.block = block_of(trace.graph(), p.value);
    parameter.trained = p.options.trained;
    parameter.is_hidden = parameter.kind == models::ParameterKind::kLinear;
    parameters_.push_back(std::move(parameter));
  }
}

TracedTask::TracedTask(std::shared_ptr<const Trace> trace)
    : trace_(std::move(trace)), needed_(needed_ops(*trace_)) {
  for (const TracedInput& input : trace_->inputs())
    inputs_.push_back(
        {.name = input.name, .dtype = input.type.dtype, .shape = input.type.shape, .of_batch = true});
}

tasks::Outputs TracedTask::forward(ir::Builder& b, const models::Model& model,
                                   std::span<const ValueId> inputs,
                                   const tasks::LossOperands& operands) const {
  Replay replay(*trace_, b, model, operands);
  for (size_t i = 0; i < inputs.size(); ++i) replay.give(trace_->inputs()[i].value, inputs[i]);
  for (const OpId id : trace_->graph().order())
    if (needed_[static_cast<size_t>(id.index)]) replay.append(id);
  return replay.outputs();
}

ValueId TracedTask::logits(ir::Builder& /*b*/, const models::Model& /*model*/,
                           std::span<const ValueId> /*inputs*/) const {
  PLIMSOLL_FAIL("logits of a trace");
}

Result<std::unique_ptr<datasets::ExampleSource>> TracedTask::open_source(
    const datasets::DataFiles& /*files*/, const datasets::SourceOptions& /*options*/) const {
  PLIMSOLL_FAIL("files of a trace");
}

std::vector<bool> needed_ops(const Trace& trace) {
  const ir::Graph& graph = trace.graph();
  std::vector<bool> needed(graph.num_ops(), false);
  std::vector<ValueId> asked = {trace.loss()};
  if (const auto mean = trace.mean_loss()) asked.push_back(mean->count);
  while (!asked.empty()) {
    const OpId id = graph.value(asked.back()).producer;
    asked.pop_back();
    if (needed[static_cast<size_t>(id.index)]) continue;
    needed[static_cast<size_t>(id.index)] = true;
    for (const ValueId v : graph.op(id).inputs)
      if (v.valid()) asked.push_back(v);
  }
  return needed;
}

Status check_trace(const std::shared_ptr<const Trace>& trace) {
  if (!trace->loss().valid())
    return Error{ErrorCode::kInvalidArgument, "the model has no loss", {}, "return it from forward"};
  if (trace->scopes().is_open())
    return Error{ErrorCode::kInvalidArgument, "a scope is still open", trace->scopes().layer()};
  const std::vector<bool> needed = needed_ops(*trace);
  std::vector<std::string_view> unused;
  for (const TracedParameter& p : trace->parameters())
    if (!needed[static_cast<size_t>(trace->graph().value(p.value).producer.index)]) unused.push_back(p.name);
  if (unused.empty()) {
    PLIMSOLL_ASSIGN(const std::vector<bool> learns, learning(trace));
    bool is_trained = false;
    for (size_t i = 0; i < learns.size(); ++i) {
      const TracedParameter& p = trace->parameters()[i];
      if (p.options.trained && !learns[i]) unused.push_back(p.name);
      is_trained = is_trained || (p.options.trained && learns[i]);
    }
    if (!is_trained && unused.empty())
      return Error{ErrorCode::kInvalidArgument, "the model has no parameter that learns"};
  }
  if (unused.empty()) return Ok{};
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("the loss does not depend on {}", fmt::join(unused, ", ")),
               {},
               "leave it out, use it in forward, or freeze it where it is used without a gradient"};
}

}  // namespace plimsoll::library
