#include "strategy/step_options.h"

#include <algorithm>

#include "ops/shard.h"
#include "settings/distributed.h"
#include "settings/precision.h"
#include "settings/recompute.h"
#include "settings/state_settings.h"
#include "strategy/memory_budget.h"

namespace plimsoll::strategy {
namespace {

/// Of a rank, where ranks share them.
int64_t parameter_bytes(const models::Model& model, const settings::DistributedSettings& distributed) {
  const int64_t ranks = settings::shares_parameters(distributed) ? distributed.num_ranks() : 1;
  int64_t bytes = 0;
  for (const models::Parameter& p : model.parameters()) {
    const ir::TensorType whole{p.dtype, p.shape};
    bytes += std::min(whole.bytes().count, ops::piece_type(whole, ranks).bytes().count);
  }
  return bytes;
}

/// What the run asks of its programs, whatever the strategy.
planner::StepOptions run_options(const RunScope& scope, const settings::BatchSplit& split) {
  const settings::RunConfig& config = scope.config;
  planner::StepOptions options;
  options.training = scope.options.purpose == Purpose::kTrain;
  options.micro_batch_size = split.micro_batch_size;
  options.sequence_length = config.data.sequence_length;
  options.buckets = scope.options.buckets->lengths;
  options.task = scope.prepared.task.get();
  options.eval = !options.training || config.is_embedded || config.evaluates_while_training();
  if (options.training) {
    options.accumulate = accumulation_of(config, split).has_accumulators;
    options.ranks = config.distributed.num_ranks();
    options.shares_gradients = settings::shares_gradients(config.distributed);
    options.logits = dumps_steps(config) && config.dumps("logits");
  }
  options.optimizer = optimizer_options(config);
  // A single micro-batch has accumulators for a dump alone, which changes no bit.
  if (split.grad_accum_steps == 1 && !caller_accumulates(config))
    options.optimizer.state.accumulators = ir::DType::kF32;
  options.decay_all = config.training.weight_decay_scope == settings::DecayScope::kAll;
  settings::set_precision(config.training, options.pipeline);
  options.pipeline.fp8.ranks = options.ranks;
  options.pipeline.fp8.dumps = dumps_steps(config) && config.dumps("quantized");
  options.pipeline.fp8.dumps_operands = dumps_steps(config) && config.dumps("operands");
  options.pipeline.runs_twice = options.training && config.debug.verify_steps > 0;
  options.memory.separate = config.debug.plan == settings::PlanLayout::kSeparate;
  options.costs = scope.prepared.costs.get();
  options.draws_head = scope.prepared.fresh_head;
  return options;
}

/// Whether products round weights apart, each time that they read them.
bool rounds_weights(const RunScope& scope) {
  const auto computes_in = [&](settings::Precision p) { return scope.config.computes_in(p); };
  return scope.target.rounds_apart() &&
         (computes_in(settings::Precision::kBf16) || computes_in(settings::Precision::kFp16)) &&
         std::ranges::any_of(scope.prepared.model->parameters(),
                             [](const models::Parameter& p) { return p.dtype == ir::DType::kF32; });
}

}  // namespace

bool caller_accumulates(const settings::RunConfig& config) {
  return config.is_embedded && !config.training.gradient_accumulation_steps;
}

bool dumps_steps(const settings::RunConfig& config) { return !config.debug.dump_dir.empty(); }

planner::Accumulation accumulation_of(const settings::RunConfig& config, const settings::BatchSplit& split) {
  const bool dumps_gradients = dumps_steps(config) && config.dumps("gradients");
  // Ranks that have pieces of the gradients, or round them, add up what the micro-batches left.
  const bool ranks_accumulate =
      config.distributed.num_ranks() > 1 &&
      (settings::shares_gradients(config.distributed) ||
       settings::state_choice(config.training, config.lora.enabled).dtypes.gradients != ir::DType::kF32);
  return {split.grad_accum_steps,
          split.grad_accum_steps > 1 || dumps_gradients || caller_accumulates(config) || ranks_accumulate};
}

optimizers::OptimizerOptions optimizer_options(const settings::RunConfig& config) {
  optimizers::OptimizerOptions options{
      config.training.optimizer, config.clip_norm(),
      config.training.momentum > 0 || config.training.adafactor.beta1.has_value()};
  options.num_groups = static_cast<int64_t>(config.training.param_groups.size());
  options.muon_ns_steps = config.training.muon.ns_steps;
  options.averages = config.training.ema_decay.has_value();
  options.ranks = settings::updating_ranks(config.distributed);
  options.shares_parameters = settings::shares_parameters(config.distributed);
  options.state = settings::state_choice(config.training, config.lora.enabled).dtypes;
  if (config.scales_loss() || config.is_embedded)
    options.loss_scaling = settings::loss_scaling(config.training.loss_scale);
  return options;
}

bool may_keep_weight_copies(const RunScope& scope) {
  const settings::RunConfig& config = scope.config;
  if (scope.options.purpose != Purpose::kTrain || config.is_embedded ||
      settings::shares_parameters(config.distributed))
    return false;
  const bool quantises = config.computes_in(settings::Precision::kFp8);
  const bool dumps_codes = dumps_steps(config) && config.dumps("quantized");
  return quantises ? !dumps_codes : rounds_weights(scope);
}

settings::RecomputeSettings recompute_of(const settings::RunConfig& config, const Strategy& strategy) {
  settings::RecomputeSettings recompute = config.memory.recompute;
  if (strategy.recompute_all) recompute.mode = settings::RecomputeMode::kFull;
  return recompute;
}

planner::StepOptions step_options(const RunScope& scope, const Strategy& strategy,
                                  const passes::OffloadOptions& offload, bool finds_least) {
  const settings::RunConfig& config = scope.config;
  planner::StepOptions options = run_options(scope, strategy.split);
  options.chunk_tokens = strategy.chunk_tokens;
  if (!finds_least && scope.target.shares_host_memory())
    options.memory.room_bytes = budget_bytes(config.memory.budget, scope.prepared.memory) +
                                scope.options.more_bytes -
                                parameter_bytes(*scope.prepared.model, config.distributed);
  options.optimizer_in_backward = strategy.optimizer_in_backward;
  options.keeps_weight_copies = strategy.keeps_weight_copies;
  options.pipeline.overlaps_ranks = strategy.overlaps_ranks;
  options.gathered_blocks = strategy.gathered_blocks;
  // What averages and copies to other places read is whole behind the update.
  options.gathers_late = strategy.overlaps_ranks && options.optimizer.ranks > 1 &&
                         !options.optimizer.shares_parameters && !options.optimizer.averages &&
                         !offload.any();
  options.sums_in_last = strategy.overlaps_ranks && options.ranks > 1 && options.accumulate &&
                         strategy.split.grad_accum_steps > 1 && !options.shares_gradients &&
                         options.optimizer.state.gradients == ir::DType::kF32 && !offload.any();
  options.second_backward = strategy.optimizer_in_backward && config.clip_norm();
  if (strategy.tolerance > 0) options.memory.tolerance = strategy.tolerance;
  settings::set_recompute(recompute_of(config, strategy), options.pipeline);
  options.pipeline.offload = offload;
  options.are_candidates = true;
  options.pipeline.verify = false;  // candidates are not verified; the plan that runs is, as a whole
  if (!strategy.recomputed.empty())
    options.pipeline.recompute = {passes::RecomputePolicy::Kind::kLayers, 0, strategy.recomputed};
  const std::span<const int32_t> always = scope.prepared.task->checkpointed_blocks();
  options.pipeline.recompute.always.assign(always.begin(), always.end());
  options.finds_gains =
      !strategy.recompute_all && strategy.recomputed.empty() && chooses_recompute(config, scope.options);
  return options;
}

}  // namespace plimsoll::strategy
