#include "library/traced_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/check.h"
#include "library/replay.h"
#include "ops/op_list.h"
#include "passes/training/autodiff.h"
#include "planner/programs/step_programs.h"

namespace plimsoll::library {
namespace {

using ir::Op;
using ir::OpId;
using ir::ValueId;

/// The block that reads the value; none where several do.
int32_t block_of(const ir::Graph& graph, const std::vector<bool>& needed, ValueId value) {
  std::optional<int32_t> block;
  for (const OpId id : graph.order()) {
    const Op& op = graph.op(id);
    if (!needed[static_cast<size_t>(id.index)] || std::ranges::find(op.inputs, value) == op.inputs.end())
      continue;
    if (block && *block != op.block) return ir::kNoBlock;
    block = op.block;
  }
  return block.value_or(ir::kNoBlock);
}

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
  const std::vector<bool> needed = needed_ops(trace);
  add_norms(trace, needed);
  for (const TracedBuffer& buffer : trace.buffers()) buffers_.push_back(buffer.as_buffer());
  for (const std::string& name : followed_) {
    const auto& buffer = *std::ranges::find(trace.buffers(), name, &TracedBuffer::name);
    buffers_.push_back({kept_state(name), buffer.shape, 0, ""});
  }
  for (const TracedParameter& p : trace.parameters()) {
    const bool are_filters = p.kind() == ir::ParameterKind::kFilters;
    const auto form = are_filters ? models::FileForm::kFilters : models::FileForm::kAsStored;
    const ir::Shape shape = p.stored_shape();
    models::Parameter parameter{
        .name = p.name, .kind = p.kind(), .shape = shape, .views = {{p.name, 0, shape, form}}};
    parameter.init = p.options.init == FirstValue::kNormal ? models::Init::kNormal
                     : p.options.init == FirstValue::kOnes ? models::Init::kOnes
                                                           : models::Init::kZeros;
    parameter.init_std = p.options.number;
    parameter.block = block_of(trace.graph(), needed, p.value);
    parameter.trained = p.options.trained;
    parameter.is_hidden = parameter.kind == models::ParameterKind::kLinear;
    parameters_.push_back(std::move(parameter));
  }
}

/// A layer is called by what its running mean is called before ".running_mean", or as a whole.
void TracedModel::add_norms(const Trace& trace, const std::vector<bool>& needed) {
  const auto follow = [&](ValueId buffer) {
    const std::string& name = trace.find_buffer(buffer)->name;
    if (std::ranges::find(followed_, name) == followed_.end()) followed_.push_back(name);
  };
  for (const TracedNorm& norm : trace.norms()) {
    const bool is_batch = norm.mean.valid();
    if (is_batch && !needed[static_cast<size_t>(trace.graph().value(norm.mean).producer.index)]) continue;
    const TracedBuffer& mean = *trace.find_buffer(norm.running_mean);
    const std::string name = mean.name.substr(0, mean.name.rfind(".running_mean"));
    auto layer = std::ranges::find(batch_norms_, name, &models::BatchNormLayer::name);
    if (layer == batch_norms_.end())
      layer = batch_norms_.insert(
          layer, {name, mean.shape.dim(0), norm.eps, norm.momentum, models::NormStatistics::kFrozen});
    if (!is_batch) continue;
    layer->statistics = models::NormStatistics::kBatch;
    follow(norm.running_mean);
    follow(norm.running_variance);
    count_call(trace, mean.name);
  }
}

/// The number of batches beside a running mean counts each call of a part.
void TracedModel::count_call(const Trace& trace, const std::string& running_mean) {
  if (!running_mean.ends_with(models::kRunningMean)) return;
  const std::string name =
      running_mean.substr(0, running_mean.size() - std::string_view(models::kRunningMean).size()) +
      models::kUpdateCount;
  const auto buffer = std::ranges::find(trace.buffers(), name, &TracedBuffer::name);
  if (buffer != trace.buffers().end() && buffer->options.is_count) ++counts_[name];
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
  Replay replay(*trace_, needed_, b, model, operands);
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
