#include "train/choose_plan.h"

#include <algorithm>
#include <optional>

#include "checkpoints/checkpoint_files.h"
#include "planner/assess.h"
#include "planner/budget.h"
#include "planner/rates.h"
#include "planner/recompute_fit.h"
#include "planner/search.h"
#include "settings/precision.h"
#include "settings/recompute.h"
#include "settings/state_settings.h"
#include "train/evaluator.h"
#include "train/memory_budget.h"

namespace plimsoll::train {
namespace {

/// Through at least this much memory data is read and dumped gradients are summed.
constexpr int64_t kScratchBytes = int64_t{256} << 10;
/// A thread that reads weights or a checkpoint: its buffer and the stack that it touches.
constexpr int64_t kReadBytesPerThread = int64_t{320} << 10;
/// What a thread that reads ahead touches of its stack and of its allocator's.
constexpr int64_t kStackBytesPerThread = int64_t{48} << 10;
/// Going back to the best checkpoint in the end: the buffers that it is read through (checkpoint_read.cpp),
/// while those of saving are still there.
constexpr int64_t kCheckpointReadBytes = int64_t{3} << 20;
/// Headers of files to be written: name, type, shape and offsets of a tensor.
constexpr int64_t kHeaderBytesPerTensor = 256;

bool dumps_steps(const RunConfig& config) { return !config.debug.dump_dir.empty(); }

planner::StepOptions step_options(const RunConfig& config, const BatchSplit& split, const tasks::Task& task,
                                  const std::vector<int64_t>& buckets, Purpose purpose) {
  planner::StepOptions options;
  options.training = purpose == Purpose::kTrain;
  options.micro_batch_size = split.micro_batch_size;
  options.sequence_length = config.data.sequence_length;
  options.buckets = buckets;
  options.task = &task;
  options.eval = !options.training || config.evaluates_while_training();
  if (options.training) {
    const bool dumps = dumps_steps(config);
    options.accumulate = split.grad_accum_steps > 1 || (dumps && config.dumps("gradients"));
    options.logits = dumps && config.dumps("logits");
  }
  options.optimizer = {config.training.optimizer, config.clip_norm(),
                       config.training.momentum > 0 || config.training.adafactor.beta1.has_value()};
  options.optimizer.num_groups = static_cast<int64_t>(config.training.param_groups.size());
  options.optimizer.state = state_choice(config.training).dtypes;
  if (config.scales_loss()) options.optimizer.loss_scaling = loss_scaling(config.training.loss_scale);
  options.decay_all = config.training.weight_decay_scope == DecayScope::kAll;
  set_precision(config.training, options.pipeline);
  set_recompute(config.memory.recompute, options.pipeline);
  options.memory.separate = config.debug.plan == PlanLayout::kSeparate;
  return options;
}

int64_t host_bytes(const Prepared& prepared, const RunConfig& config, const PrepareOptions& options) {
  const models::Model& model = *prepared.model;
  const int threads = options.num_threads;
  int64_t tensors = 0;
  for (const auto& p : model.parameters()) tensors += static_cast<int64_t>(p.views.size());
  const bool trains = options.purpose == Purpose::kTrain,
             evaluates = !trains || config.evaluates_while_training();
  return scratch_bytes(config, model.num_labels()) + tensors * kHeaderBytesPerTensor +
         threads * kReadBytesPerThread +
         ((trains ? 1 : 0) + (evaluates ? static_cast<int64_t>(config.data.num_eval_parts()) : 0)) *
             order_host_bytes(config) +
         (evaluates ? Evaluator::host_bytes(config, *prepared.task, model, options.num_eval) : 0);
}

/// What the run is to stay within. The two pools are bounded where the user bounds them, the device where it
/// has memory of its own.
std::vector<planner::Budget> budgets_of(const RunConfig& config, const runtime::Target& target,
                                        const MachineMemory& memory) {
  using planner::Bounded;
  const MemorySettings& m = config.memory;
  const auto automatic = [](const MemoryBudget& b) { return b.kind == MemoryBudget::Kind::kAuto; };
  std::vector<planner::Budget> budgets = {
      {"memory.budget", Bounded::kProcess, budget_bytes(m.budget, memory), automatic(m.budget)}};
  if (!automatic(m.device_budget))
    budgets.push_back({"memory.device_budget", Bounded::kDevice, budget_bytes(m.device_budget, memory)});
  if (!automatic(m.host_budget))
    budgets.push_back({"memory.host_budget", Bounded::kHost, budget_bytes(m.host_budget, memory)});
  if (target.memory_bytes() > 0)
    budgets.push_back({"runtime.discrete.memory", Bounded::kDevice, target.memory_bytes()});
  return budgets;
}

/// An evaluation has no step: its figures are those of one micro-batch.
planner::Work work_of_step(const planner::StepCost& cost, const BatchSplit& split, const RunConfig& config,
                           const runtime::Target& target, bool training) {
  const int64_t count = training ? split.grad_accum_steps : 1;
  const auto times = static_cast<double>(count);
  return {.flops = cost.flops * times + cost.update_flops,
          .recompute_flops = cost.recompute_flops * times,
          .bytes = cost.bytes * times + cost.update_bytes,
          .tokens = split.micro_batch_size * count * config.data.sequence_length,
          .micro_batch_size = split.micro_batch_size,
          .grad_accum_steps = count,
          .matrix_units = config.computes_in(Precision::kBf16) && target.has_matrix_units(ir::DType::kBf16)};
}

bool chooses_recompute(const RunConfig& config, const PrepareOptions& options) {
  return options.purpose == Purpose::kTrain && config.memory.recompute.mode == RecomputeMode::kAuto;
}

/// The plan of one split.
Result<Planned> plan_split(const RunConfig& config, const Prepared& prepared, const BatchSplit& split,
                           const runtime::Target& target, const PrepareOptions& prepare_options,
                           const std::vector<std::string>& recomputed) {
  const models::Model& model = *prepared.model;
  const LoaderOptions& loader = prepared.loader;
  planner::StepOptions options =
      step_options(config, split, *prepared.task, prepare_options.buckets->lengths, prepare_options.purpose);
  options.pipeline.dump_dir = prepare_options.dump_ir;
  options.finds_gains = chooses_recompute(config, prepare_options) && recomputed.empty();
  if (!recomputed.empty())
    options.pipeline.recompute = {passes::RecomputePolicy::Kind::kLayers, 0, recomputed};
  if (prepared.fresh_head) options.drawn_alone = models::Model::kScore;
  PLIMSOLL_ASSIGN(auto programs, planner::build_training_programs(model, options, target));
  PLIMSOLL_TRY(check_overrides_used(programs, model, config.training));
  planner::Surroundings surroundings{.num_threads = prepare_options.num_threads,
                                     .host_bytes = host_bytes(prepared, config, prepare_options),
                                     .budgets = budgets_of(config, target, prepared.memory)};
  if (options.training) {
    surroundings.host_bytes +=
        checkpoint_host_bytes(model, programs.session, final_format(config, prepared.model_config, model)) +
        Loader::host_bytes(loader, config.data.sequence_length) + loader.num_threads * kStackBytesPerThread;
    if (config.training.load_best_model_at_end) surroundings.host_bytes += kCheckpointReadBytes;
    surroundings.file_phases = {"save"};
    if (dumps_steps(config)) surroundings.file_phases.emplace_back("dump");
  }
  planner::PlanReport report = planner::assess(programs.session, target, surroundings);
  planner::describe_work(work_of_step(programs.cost, split, config, target, options.training), report);
  describe_buckets(*prepare_options.buckets, report);
  if (options.training) report.state = state_words(config.training, options.accumulate);
  if (options.training) {
    report.recompute_set = programs.recomputed;
    report.recompute = recompute_text(config.memory.recompute, report.recompute_set);
  }
  return Planned{split, std::move(programs), std::move(report)};
}

/// Divisors of the global batch, the largest first; the one that is given where one is.
std::vector<BatchSplit> candidate_splits(const TrainingSettings& training) {
  if (const auto fixed = fixed_batch_split(training)) return {*fixed};
  std::vector<BatchSplit> splits;
  for (int64_t micro = training.global_batch_size; micro >= 1; --micro)
    if (training.global_batch_size % micro == 0)
      splits.push_back({micro, training.global_batch_size / micro});
  return splits;
}

/// The program with backward that needs most.
const passes::Program* largest_backward(const passes::SessionPlan& session) {
  const passes::Program* largest = nullptr;
  for (const passes::Program& p : session.programs) {
    const bool trains = p.graph.name.starts_with("step") || p.graph.name.starts_with("micro_");
    if (trains && (largest == nullptr || p.plan.device().arena_bytes > largest->plan.device().arena_bytes))
      largest = &p;
  }
  return largest;
}

/// The same split with as much computed again as it takes to fit, or to need least.
Result<Planned> recompute_to_fit(const RunConfig& config, const Prepared& prepared,
                                 const runtime::Target& target, const PrepareOptions& options,
                                 Planned plain) {
  const passes::Program* program = largest_backward(plain.programs.session);
  if (program == nullptr || plain.programs.gains.empty()) return plain;
  const bool tiles = config.computes_in(Precision::kBf16) && target.has_matrix_units(ir::DType::kBf16);
  const planner::RecomputeChain chain =
      planner::recompute_chain(*program, plain.programs.gains, [&](const ir::Cost& cost) {
        return planner::estimate_seconds(cost.flops, cost.bytes, options.num_threads, tiles);
      });
  const int64_t arena = program->plan.device().arena_bytes;
  const BatchSplit split = plain.split;
  plain.programs = {};  // several plans at once would be memory that none of them counts
  return planner::fit_by_recompute<Planned>(
      plain.report, chain, arena, options.finds_least, [&](const std::vector<std::string>& layers) {
        return plan_split(config, prepared, split, target, options, layers);
      });
}

/// What fits before what does not, then what is faster, or exceeds less.
bool is_better(const planner::PlanReport& a, const planner::PlanReport& b) {
  if (a.fits != b.fits) return a.fits;
  return a.fits ? a.seconds_estimated < b.seconds_estimated
                : planner::excess_bytes(a) < planner::excess_bytes(b);
}

/// Without text: the way of the micro-batch that is largest of those that fit; where none does, with as much
/// computed again as it takes.
Result<Planned> search(const RunConfig& config, const Prepared& prepared, const runtime::Target& target,
                       const PrepareOptions& options) {
  const std::vector<BatchSplit> splits = candidate_splits(config.training);
  std::vector<double> sizes;
  for (const BatchSplit& split : splits) sizes.push_back(static_cast<double>(split.micro_batch_size));
  const auto plan = [&](size_t i) { return plan_split(config, prepared, splits[i], target, options, {}); };
  auto best = planner::first_that_fits(sizes, budget_bytes(config.memory.budget, prepared.memory), plan);
  if (!best || !chooses_recompute(config, options)) return best;
  const bool is_whole = best->split.grad_accum_steps == splits[0].grad_accum_steps;
  if (best->report.fits && is_whole) return best;
  if (!best->report.fits) {
    PLIMSOLL_ASSIGN(best, recompute_to_fit(config, prepared, target, options, std::move(*best)));
  }
  if (splits.size() == 1) return best;
  // The whole batch at once has no accumulators and reads weights once, the smallest part the least to keep.
  auto second = plan(is_whole ? splits.size() - 1 : 0);
  PrepareOptions how = options;
  how.finds_least = options.finds_least && !best->report.fits;
  if (second && !second->report.fits)
    second = recompute_to_fit(config, prepared, target, how, std::move(*second));
  if (second && is_better(second->report, best->report))
    return second;  // what cannot be planned does not fit
  return best;
}

}  // namespace

Result<Planned> choose_plan(const RunConfig& config, const Prepared& prepared, const runtime::Target& target,
                            const PrepareOptions& options) {
  PrepareOptions silent = options;
  silent.dump_ir.clear();
  PLIMSOLL_ASSIGN(Planned planned, search(config, prepared, target, silent));
  if (options.dump_ir.empty()) return planned;
  // The text that --dump-ir leaves is that of the plan that is run.
  return plan_split(config, prepared, planned.split, target, options, planned.report.recompute_set);
}

int64_t scratch_bytes(const RunConfig& config, int64_t num_labels) {
  return std::max(kScratchBytes, data_scratch_bytes(config, num_labels));
}

void describe_buckets(const Buckets& buckets, planner::PlanReport& report) {
  report.buckets = buckets.lengths;
  report.bucket_sequences = buckets.sequences;
  report.bucket_tokens = buckets.tokens;
  report.bucket_positions = buckets.positions;
}

}  // namespace plimsoll::train
