#include "train/prepare.h"

#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include "base/check.h"
#include "base/process.h"
#include "checkpoints/checkpoint_files.h"
#include "planner/assess.h"
#include "planner/budget.h"
#include "planner/search.h"
#include "settings/param_groups.h"
#include "settings/precision.h"
#include "settings/state_settings.h"
#include "train/disk_report.h"
#include "train/evaluator.h"
#include "train/memory_budget.h"
#include "train/prepare_model.h"

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
  options.pipeline.recompute_cheap = config.memory.recompute.mode != RecomputeMode::kNone;
  options.memory.separate = config.debug.plan == PlanLayout::kSeparate;
  return options;
}

int64_t scratch_bytes(const RunConfig& config, int64_t num_labels) {
  return std::max(kScratchBytes, data_scratch_bytes(config, num_labels));
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

std::string model_name(const RunConfig& config, const ConfigJson& model) {
  return config.model.preset.empty() ? model.source() : config.model.preset;
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

void describe_buckets(const Buckets& buckets, planner::PlanReport& report) {
  report.buckets = buckets.lengths;
  report.bucket_sequences = buckets.sequences;
  report.bucket_tokens = buckets.tokens;
  report.bucket_positions = buckets.positions;
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

/// The plan of one split.
Result<std::pair<planner::TrainingPrograms, planner::PlanReport>> plan_split(
    const RunConfig& config, const Prepared& prepared, const BatchSplit& split, const runtime::Target& target,
    const PrepareOptions& prepare_options) {
  const models::Model& model = *prepared.model;
  const LoaderOptions& loader = prepared.loader;
  planner::StepOptions options =
      step_options(config, split, *prepared.task, prepare_options.buckets->lengths, prepare_options.purpose);
  options.pipeline.dump_dir = prepare_options.dump_ir;
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
  report.recompute = options.pipeline.recompute_cheap ? "nearly free" : "none";
  return std::pair{std::move(programs), std::move(report)};
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

struct Planned {
  BatchSplit split;
  planner::TrainingPrograms programs;
  planner::PlanReport report;
};

/// The plan of the largest micro-batch that fits; where none does, of the one that needs least. The whole
/// batch at once stands apart: it alone has no accumulators.
Result<Planned> choose_split(const RunConfig& config, const Prepared& prepared, const runtime::Target& target,
                             const PrepareOptions& options) {
  const std::vector<BatchSplit> splits = candidate_splits(config.training);
  std::vector<double> sizes;
  for (const BatchSplit& split : splits) sizes.push_back(static_cast<double>(split.micro_batch_size));
  size_t last = 0;
  const auto plan = [&](size_t i) -> Result<Planned> {
    last = i;
    PLIMSOLL_ASSIGN(auto planned, plan_split(config, prepared, splits[i], target, options));
    return Planned{splits[i], std::move(planned.first), std::move(planned.second)};
  };
  auto best = planner::first_that_fits(sizes, budget_bytes(config.memory.budget, prepared.memory), plan);
  // The text that --dump-ir leaves is that of the plan that is run.
  if (best && !options.dump_ir.empty() && splits[last].micro_batch_size != best->split.micro_batch_size)
    for (size_t i = 0; i < splits.size(); ++i)
      if (splits[i].micro_batch_size == best->split.micro_batch_size) return plan(i);
  return best;
}

}  // namespace

TrainingDataOptions data_options(const RunConfig& config, const Prepared& prepared, bool eval) {
  TrainingDataOptions options =
      training_data_options(config, prepared.model->vocab_size(), eval, prepared.buckets.lengths);
  options.open_source = [task = prepared.task.get()](const DataFiles& files, const TrainingDataOptions& how) {
    return task->open_source(files, how);
  };
  return options;
}

int num_threads(const RunConfig& config) {
  return static_cast<int>(config.runtime.threads.value_or(num_available_cpus()));
}

Result<Prepared> prepare(const RunConfig& config, const runtime::Target& target,
                         const PrepareOptions& asked) {
  const auto start = std::chrono::steady_clock::now();
  PrepareOptions options = asked;
  PLIMSOLL_ASSIGN(Prepared prepared, prepare_model(config, options));
  prepared.memory = read_machine_memory();
  PLIMSOLL_ASSIGN(Planned planned, choose_split(config, prepared, target, options));
  prepared.split = planned.split;
  prepared.programs = std::move(planned.programs);
  prepared.report = std::move(planned.report);
  prepared.host_scratch_bytes = scratch_bytes(config, prepared.model->num_labels());
  prepared.report.model = model_name(config, prepared.model_config);
  prepared.report.num_parameters = prepared.model->num_parameters();
  if (options.purpose == Purpose::kTrain) {
    prepared.report.num_trained = prepared.model->num_trained();
    prepared.report.disk =
        disk_report(config, prepared.model_config, *prepared.model, prepared.programs.session);
    prepared.report.total_steps = config.training.max_steps;
  }
  malloc_trim(0);  // what planning needed and no longer needs goes back before the session takes its memory
  prepared.report.planning_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return prepared;
}

Result<Prepared> prepare_before_data(const RunConfig& config, const runtime::Target& target,
                                     PrepareOptions options) {
  options.looks_at_data = false;
  options.buckets = buckets_by_settings(config.data);
  // Which lengths the data will have is open. One alone is the least that any choice needs, so what does not
  // fit never will, and planning touches no more memory than the plan that is run counts.
  if (config.data.buckets.count > 0) {
    options.buckets->lengths = {config.data.sequence_length};
    options.dump_ir.clear();  // the text of programs that are not run would only mislead
  }
  return prepare(config, target, options);
}

Status prepare_after_data(const RunConfig& config, const runtime::Target& target, PrepareOptions options,
                          const RunData& data, Prepared& prepared) {
  const bool is_same =
      data.buckets.lengths == prepared.buckets.lengths && config.data.buckets.count == 0 &&
      data.labels == prepared.labels &&
      prepared.task->metrics_bytes(data.num_eval) == prepared.task->metrics_bytes(options.num_eval);
  if (is_same) {
    prepared.buckets = data.buckets;
    describe_buckets(data.buckets, prepared.report);
    return Ok{};
  }
  prepared.programs = {};  // two plans at once would be memory that neither counts
  options.buckets = data.buckets;
  options.labels = data.labels;
  options.num_eval = data.num_eval;
  PLIMSOLL_ASSIGN(prepared, prepare(config, target, options));
  return Ok{};
}

Error does_not_fit(const Prepared& prepared) {
  const planner::Budget* budget = planner::exceeded(prepared.report, prepared.report.budgets);
  PLIMSOLL_CHECK(budget != nullptr);
  return planner::does_not_fit(
      prepared.report, *budget, "the plan",
      prepared.split.micro_batch_size > 1 ? "a smaller training.micro_batch_size needs less" : "");
}

}  // namespace plimsoll::train
