#include "strategy/plan_strategy.h"

#include <algorithm>
#include <utility>

#include "checkpoints/adapter_start.h"
#include "checkpoints/checkpoint_files.h"
#include "checkpoints/quantize_weights.h"
#include "datasets/packed_dataset.h"
#include "io/atomic_directory.h"
#include "planner/programs/largest_backward.h"
#include "planner/programs/loss_chunks.h"
#include "planner/report/assess.h"
#include "planner/report/budget.h"
#include "settings/named_profile.h"
#include "settings/offload.h"
#include "settings/optimizer_in_backward.h"
#include "settings/precision.h"
#include "settings/recompute.h"
#include "settings/state_settings.h"
#include "strategy/memory_budget.h"
#include "strategy/plan_cache.h"
#include "strategy/update_placement.h"

namespace plimsoll::strategy {
namespace {

/// Through at least this much memory data is read and dumped gradients are summed.
constexpr int64_t kScratchBytes = int64_t{256} << 10;
/// A thread that reads weights or a checkpoint: its buffer and the stack that it touches.
constexpr int64_t kReadBytesPerThread = int64_t{320} << 10;
/// What a thread that reads ahead touches of its stack and of its allocator's.
constexpr int64_t kStackBytesPerThread = int64_t{48} << 10;
/// The queues of what lies on the disk: three threads, and the pages that each moves through.
constexpr int64_t kDiskQueueBytes = 3 * (int64_t{320} << 10);
/// Going back to the best checkpoint in the end: the buffers that it is read through (checkpoint_read.cpp),
/// while those of saving are still there.
constexpr int64_t kCheckpointReadBytes = int64_t{3} << 20;
/// Headers of files to be written: name, type, shape and offsets of a tensor.
constexpr int64_t kHeaderBytesPerTensor = 256;

bool dumps_steps(const settings::RunConfig& config) { return !config.debug.dump_dir.empty(); }

}  // namespace

planner::Accumulation accumulation_of(const settings::RunConfig& config, const settings::BatchSplit& split) {
  const bool dumps_gradients = dumps_steps(config) && config.dumps("gradients");
  return {split.grad_accum_steps, split.grad_accum_steps > 1 || dumps_gradients};
}

optimizers::OptimizerOptions optimizer_options(const settings::RunConfig& config) {
  optimizers::OptimizerOptions options{
      config.training.optimizer, config.clip_norm(),
      config.training.momentum > 0 || config.training.adafactor.beta1.has_value()};
  options.num_groups = static_cast<int64_t>(config.training.param_groups.size());
  options.muon_ns_steps = config.training.muon.ns_steps;
  options.state = settings::state_choice(config.training, config.lora.enabled).dtypes;
  if (config.scales_loss()) options.loss_scaling = settings::loss_scaling(config.training.loss_scale);
  return options;
}

namespace {

planner::StepOptions step_options(const settings::RunConfig& config, const settings::BatchSplit& split,
                                  const tasks::Task& task, const std::vector<int64_t>& buckets,
                                  Purpose purpose) {
  planner::StepOptions options;
  options.training = purpose == Purpose::kTrain;
  options.micro_batch_size = split.micro_batch_size;
  options.sequence_length = config.data.sequence_length;
  options.buckets = buckets;
  options.task = &task;
  options.eval = !options.training || config.evaluates_while_training();
  if (options.training) {
    const bool dumps = dumps_steps(config);
    options.accumulate = accumulation_of(config, split).has_accumulators;
    options.logits = dumps && config.dumps("logits");
  }
  options.optimizer = optimizer_options(config);
  options.decay_all = config.training.weight_decay_scope == settings::DecayScope::kAll;
  settings::set_precision(config.training, options.pipeline);
  options.pipeline.runs_twice = options.training && config.debug.verify_steps > 0;
  options.memory.separate = config.debug.plan == settings::PlanLayout::kSeparate;
  return options;
}

/// What an evaluation of `num_examples` takes beside its data.
int64_t evaluation_host_bytes(const settings::RunConfig& config, const tasks::Task& task,
                              int64_t num_examples) {
  const int64_t positions = config.training.global_batch_size * int64_t{sizeof(int64_t)};
  if (!task.has_metrics()) return positions;
  const ir::Shape outputs = task.logits_shape(config.training.global_batch_size);
  const int64_t kinds = config.data.num_eval_parts() > 1 ? 2 : 1;  // of each part, and of all
  return positions + outputs.num_elements() * int64_t{sizeof(float)} +
         kinds * task.metrics_bytes(num_examples);
}

int64_t host_bytes(const Prepared& prepared, const settings::RunConfig& config,
                   const PrepareOptions& options) {
  const models::Model& model = *prepared.model;
  const int threads = options.num_threads;
  int64_t tensors = 0;
  for (const auto& p : model.parameters()) tensors += static_cast<int64_t>(p.views.size());
  const bool trains = options.purpose == Purpose::kTrain,
             evaluates = !trains || config.evaluates_while_training();
  const int64_t eval_parts = evaluates ? static_cast<int64_t>(config.data.num_eval_parts()) : 0;
  const int64_t train_sources = trains ? std::max<int64_t>(1, std::ssize(config.data.weights)) : 0;
  const int64_t kept = trains && config.data.keep_in_memory ? config.data.keep_in_memory->count : 0;
  return kept + (train_sources + eval_parts) * datasets::PackedDataset::kRememberedBytes +
         checkpoints::start_adapters_bytes(model) + checkpoints::quantize_scratch(model, threads) +
         scratch_bytes(config, model.num_labels()) + tensors * kHeaderBytesPerTensor +
         threads * kReadBytesPerThread +
         ((trains ? 1 : 0) + eval_parts) * preprocessing::order_host_bytes(config) +
         (evaluates ? evaluation_host_bytes(config, *prepared.task, options.num_eval) : 0);
}

/// memory.device_budget; a share of a card is of what plans may take of it.
int64_t device_budget_bytes(const settings::MemoryBudget& budget, const runtime::Target& target,
                            const MachineMemory& memory) {
  if (budget.kind != settings::MemoryBudget::Kind::kShare || target.memory_bytes() == 0)
    return budget_bytes(budget, memory);
  return static_cast<int64_t>(budget.share * static_cast<double>(target.memory_bytes()));
}

/// What the run is to stay within. The two pools are bounded where the user bounds them, the device where it
/// has memory of its own. memory.budget is the process's: beside a card the host's side of it.
std::vector<planner::Budget> budgets_of(const settings::RunConfig& config, const runtime::Target& target,
                                        const MachineMemory& memory, int64_t more_bytes) {
  using planner::Bounded;
  const settings::MemorySettings& m = config.memory;
  const auto automatic = [](const settings::MemoryBudget& b) {
    return b.kind == settings::MemoryBudget::Kind::kAuto;
  };
  std::vector<planner::Budget> budgets = {
      {"memory.budget", Bounded::kProcess, budget_bytes(m.budget, memory), automatic(m.budget)}};
  if (!automatic(m.device_budget))
    budgets.push_back(
        {"memory.device_budget", Bounded::kDevice, device_budget_bytes(m.device_budget, target, memory)});
  if (!automatic(m.host_budget))
    budgets.push_back({"memory.host_budget", Bounded::kHost, budget_bytes(m.host_budget, memory)});
  if (!automatic(m.disk_budget))
    budgets.push_back({"memory.disk_budget", Bounded::kDisk, m.disk_budget.bytes});
  else if (const auto free = io::free_space(settings::offload_folder(config)); free && target.is_in_process())
    budgets.push_back({"memory.disk_budget", Bounded::kDisk, *free, /*automatic=*/true});
  if (target.memory_bytes() > 0)
    budgets.push_back({settings::planned_card(config)        ? planner::kCardOfProfile
                       : config.runtime.device == "discrete" ? "runtime.discrete.memory"
                                                             : planner::kCardHere,
                       Bounded::kDevice, target.memory_bytes()});
  for (planner::Budget& budget : budgets) budget.bytes += more_bytes;
  return budgets;
}

int64_t parameter_bytes(const models::Model& model) {
  int64_t bytes = 0;
  for (const models::Parameter& p : model.parameters())
    bytes += ir::TensorType{p.dtype, p.shape}.bytes().count;
  return bytes;
}

/// An evaluation has no step: its figures are those of one micro-batch.
planner::Work work_of_step(const planner::StepCost& cost, int64_t micro_batch_size,
                           const planner::Accumulation& accumulation, const settings::RunConfig& config,
                           const planner::CostModel& costs, const tasks::Unit& unit) {
  const int64_t count = accumulation.num_micro_batches;
  const auto times = static_cast<double>(count);
  planner::StepSeconds seconds = cost.update_seconds;
  seconds.add(cost.seconds, times);
  return {.flops = cost.flops * times + cost.update_flops,
          .recompute_flops = cost.recompute_flops * times,
          .bytes = cost.bytes * times + cost.update_bytes,
          .units = micro_batch_size * count * unit.of(config.data.sequence_length),
          .unit = std::string(unit.name),
          .micro_batch_size = micro_batch_size,
          .grad_accum_steps = count,
          .seconds = seconds,
          .rates = costs.profile().rates,
          .profile = costs.profile().name};
}

/// Adds what the programs of one step move between the device and other memory. An estimate has no first
/// micro-batch.
void add_moved(const passes::SessionPlan& session, const std::vector<planner::ProgramRuns>& runs,
               planner::PlanReport& report) {
  for (const auto& [id, times] : runs) {
    const int program = session.find_program(id);
    if (program < 0) continue;
    const passes::BytesMoved moved =
        passes::bytes_moved(session.programs[static_cast<size_t>(program)].graph);
    report.offload_out_bytes += moved.out * times;
    report.offload_in_bytes += moved.in * times;
  }
}

/// Why the updates stand behind backward: for the plan to say.
std::string why_behind_backward(const settings::RunConfig& config, const settings::BatchSplit& split,
                                bool fits) {
  if (config.memory.optimizer_in_backward == settings::OptimizerInBackward::kFalse)
    return "memory.optimizer_in_backward is false";
  std::string against = settings::against_optimizer_in_backward(config, split.grad_accum_steps);
  if (!against.empty()) return against;
  return fits ? "the plan fits without" : "its arena would be larger";
}

passes::OffloadOptions offload_of(const settings::RunConfig& config, const Prepared& prepared,
                                  const Strategy& strategy) {
  passes::OffloadOptions offload =
      strategy.offload.any() ? strategy.offload : settings::offload_options(config);
  offload.num_blocks = num_blocks(*prepared.model);
  return offload;
}

/// Without classes that the run has nothing of: nobody is told of master weights that there are none of.
passes::OffloadOptions with_states_alone(passes::OffloadOptions offload, const passes::SessionPlan& session) {
  for (const auto& [c, state_class] :
       {std::pair{passes::OffloadClass::kMasters, ir::StateClass::kMasterWeight},
        {passes::OffloadClass::kOptimizer, ir::StateClass::kOptimizerState}})
    if (std::ranges::none_of(session.states, [&, &of = state_class](const passes::SessionState& s) {
          return s.decl.state_class == of;
        }))
      offload.spaces[static_cast<size_t>(c)] = ir::MemorySpace::kDevice;
  return offload;
}

/// As plan_strategy, or where it `sketches` as estimate_strategy.
Result<PlannedStep> plan_with(const passes::OffloadOptions& offload, const settings::RunConfig& config,
                              const Prepared& prepared, const Strategy& strategy,
                              const runtime::Target& target, const PrepareOptions& prepare_options,
                              bool estimates, planner::ScheduledPrograms* scheduled) {
  const settings::BatchSplit& split = strategy.split;
  const std::vector<std::string>& recomputed = strategy.recomputed;
  const models::Model& model = *prepared.model;
  const datasets::LoaderOptions& loader = prepared.loader;
  planner::StepOptions options =
      step_options(config, split, *prepared.task, prepare_options.buckets->lengths, prepare_options.purpose);
  options.costs = prepared.costs.get();
  options.chunk_tokens = strategy.chunk_tokens;
  if (!prepare_options.finds_least && target.shares_host_memory())
    options.memory.room_bytes = budget_bytes(config.memory.budget, prepared.memory) +
                                prepare_options.more_bytes - parameter_bytes(model);
  options.optimizer_in_backward = strategy.optimizer_in_backward;
  options.second_backward = strategy.optimizer_in_backward && config.clip_norm();
  options.estimate = options.memory.bound_only = estimates;
  options.scheduled = scheduled;
  if (prepare_options.known != nullptr) options.known = &prepare_options.known->programs();
  if (strategy.tolerance > 0) options.memory.tolerance = strategy.tolerance;
  settings::RecomputeSettings recompute = config.memory.recompute;
  if (strategy.recompute_all) recompute.mode = settings::RecomputeMode::kFull;
  settings::set_recompute(recompute, options.pipeline);
  options.pipeline.offload = offload;
  options.pipeline.dump_dir = prepare_options.dump_ir;
  // Pass by pass where somebody looks; the plan that is chosen is verified as a whole.
  options.pipeline.verify = prepare_options.verify && !prepare_options.dump_ir.empty();
  options.finds_gains = (!estimates || (scheduled == nullptr && strategy.chunk_tokens == 0)) &&
                        !strategy.recompute_all && chooses_recompute(config, prepare_options) &&
                        recomputed.empty();
  if (!recomputed.empty())
    options.pipeline.recompute = {passes::RecomputePolicy::Kind::kLayers, 0, recomputed};
  if (prepared.fresh_head) options.drawn_alone = models::Model::kScore;
  PLIMSOLL_ASSIGN(auto programs, planner::build_training_programs(model, options, target));
  PLIMSOLL_TRY(settings::check_overrides_used(programs, model, config.training));
  planner::Surroundings surroundings{.num_threads = prepare_options.num_threads,
                                     .host_bytes = host_bytes(prepared, config, prepare_options),
                                     .unwritten_ops = programs.unwritten_ops};
  if (options.training) {
    surroundings.host_bytes +=
        checkpoints::checkpoint_host_bytes(model, programs.session,
                                           checkpoints::final_format(config, prepared.model_config, model)) +
        datasets::Loader::host_bytes(loader, config.data.sequence_length) +
        loader.num_threads * kStackBytesPerThread;
    if (config.training.load_best_model_at_end) surroundings.host_bytes += kCheckpointReadBytes;
    surroundings.file_phases = {"save"};
    if (dumps_steps(config)) surroundings.file_phases.emplace_back("dump");
  }
  if (programs.session.pool(ir::MemorySpace::kDisk).total() > 0) surroundings.host_bytes += kDiskQueueBytes;
  planner::PlanReport report = planner::assess(programs.session, target, surroundings);
  const planner::Accumulation accumulation =
      options.training ? accumulation_of(config, split) : planner::Accumulation{};
  planner::describe_work(work_of_step(programs.cost, split.micro_batch_size, accumulation, config,
                                      *prepared.costs, prepared.task->unit()),
                         report);
  describe_buckets(*prepare_options.buckets, report);
  report.offload = settings::offload_text(with_states_alone(options.pipeline.offload, programs.session));
  report.update_on_host = options.pipeline.offload.updates_on_host;
  if (options.training) {
    const int64_t bucket = planner::bucket_of(options.sequence_length, options.buckets);
    add_moved(programs.session, planner::runs_per_step(accumulation, bucket), report);
    report.state = settings::state_words(config.training, options.accumulate, config.lora.enabled);
    report.recompute_set = programs.recomputed;
    report.recompute = settings::recompute_text(recompute, report.recompute_set);
    report.optimizer_in_backward = strategy.optimizer_in_backward;
    report.second_backward = options.second_backward;
    if (const passes::Program* program = planner::largest_backward(programs.session))
      report.loss_chunk_tokens = planner::chunk_tokens_of(*program);
  }
  hold_against_budgets(config, prepared, strategy, target, prepare_options, report);
  return PlannedStep{strategy, std::move(programs), std::move(report)};
}

/// The same, with the updates where they are quicker; gradients and weights on their way take memory of the
/// host's, so that where that is short the device updates after all.
Result<PlannedStep> plan_as(const settings::RunConfig& config, const Prepared& prepared,
                            const Strategy& strategy, const runtime::Target& target,
                            const PrepareOptions& options, bool estimates,
                            planner::ScheduledPrograms* scheduled) {
  passes::OffloadOptions offload = offload_of(config, prepared, strategy);
  offload.updates_on_host = options.purpose == Purpose::kTrain &&
                            updates_on_host(config, prepared, target, offload, strategy.split);
  const auto plan = [&] {
    return plan_with(offload, config, prepared, strategy, target, options, estimates, scheduled);
  };
  PLIMSOLL_ASSIGN(PlannedStep planned, plan());
  const planner::Budget* over = planner::exceeded(planned.report, planned.report.budgets);
  const bool is_half_precision = over != nullptr && (over->bounded == planner::Bounded::kHost ||
                                                     over->bounded == planner::Bounded::kProcess);
  if (!is_half_precision || !offload.updates_on_host ||
      config.memory.update_on_host != settings::UpdateOnHost::kAuto)
    return planned;
  offload.updates_on_host = false;
  PLIMSOLL_ASSIGN(PlannedStep moved, plan());
  return planner::is_better(moved.report, planned.report) ? std::move(moved) : std::move(planned);
}

}  // namespace

bool chooses_recompute(const settings::RunConfig& config, const PrepareOptions& options) {
  return options.purpose == Purpose::kTrain && config.memory.recompute.mode == settings::RecomputeMode::kAuto;
}

Result<PlannedStep> plan_strategy(const settings::RunConfig& config, const Prepared& prepared,
                                  const Strategy& strategy, const runtime::Target& target,
                                  const PrepareOptions& options) {
  return plan_as(config, prepared, strategy, target, options, false, nullptr);
}

Result<PlannedStep> estimate_strategy(const settings::RunConfig& config, const Prepared& prepared,
                                      const Strategy& strategy, const runtime::Target& target,
                                      const PrepareOptions& options, planner::ScheduledPrograms* scheduled) {
  PrepareOptions estimating = options;
  estimating.verify = false;
  estimating.dump_ir.clear();
  return plan_as(config, prepared, strategy, target, estimating, true, scheduled);
}

std::shared_ptr<const StrategyFacts> facts_of(const PlannedStep& planned, const Prepared& prepared,
                                              const runtime::Target& target) {
  const passes::Program* program = planner::largest_backward(planned.programs.session);
  if (program == nullptr) return {};
  auto facts = std::make_shared<StrategyFacts>();
  facts->arena_bytes = program->plan.device().arena_bytes;
  facts->alive_bytes = planner::most_alive(*program, {});
  const std::vector<planner::LossChunk> chunks = planner::smaller_chunks(*program, target);
  for (const planner::LossChunk& chunk : chunks)
    facts->chunks.push_back({chunk.tokens, planner::most_alive(*program, chunk)});
  facts->alive = planner::alive_by_block(*program, static_cast<size_t>(num_blocks(*prepared.model)));
  if (planned.programs.gains.empty()) return facts;
  facts->chain = planner::recompute_chain(*program, planned.programs.gains, chunks, *prepared.costs);
  return facts;
}

void hold_against_budgets(const settings::RunConfig& config, const Prepared& prepared,
                          const Strategy& strategy, const runtime::Target& target,
                          const PrepareOptions& options, planner::PlanReport& report) {
  report.budgets = budgets_of(config, target, prepared.memory, options.more_bytes);
  report.budget_bytes = report.budgets.front().bytes;
  report.fits = planner::exceeded(report, report.budgets) == nullptr;
  if (options.purpose == Purpose::kTrain && !strategy.optimizer_in_backward)
    report.no_optimizer_in_backward = why_behind_backward(config, strategy.split, report.fits);
}

int32_t num_blocks(const models::Model& model) {
  int32_t count = 0;
  for (const models::Parameter& p : model.parameters()) count = std::max(count, p.block + 1);
  return count;
}

int64_t scratch_bytes(const settings::RunConfig& config, int64_t num_labels) {
  return std::max(kScratchBytes, preprocessing::data_scratch_bytes(config, num_labels));
}

void describe_buckets(const preprocessing::Buckets& buckets, planner::PlanReport& report) {
  report.buckets = buckets.lengths;
  report.bucket_sequences = buckets.sequences;
  report.bucket_tokens = buckets.tokens;
  report.bucket_positions = buckets.positions;
}

}  // namespace plimsoll::strategy
