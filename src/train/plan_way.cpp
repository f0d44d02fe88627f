#include "train/plan_way.h"

#include <algorithm>
#include <map>
#include <utility>

#include "checkpoints/adapter_start.h"
#include "checkpoints/checkpoint_files.h"
#include "checkpoints/quantize_weights.h"
#include "data/packed_dataset.h"
#include "io/atomic_directory.h"
#include "planner/assess.h"
#include "planner/budget.h"
#include "planner/largest_backward.h"
#include "planner/loss_chunks.h"
#include "settings/named_profile.h"
#include "settings/offload.h"
#include "settings/optimizer_in_backward.h"
#include "settings/precision.h"
#include "settings/recompute.h"
#include "settings/state_settings.h"
#include "train/evaluator.h"
#include "train/known_ways.h"
#include "train/memory_budget.h"
#include "train/update_place.h"

namespace plimsoll {
bool operator==(const BatchSplit& a, const BatchSplit& b) {
  return a.micro_batch_size == b.micro_batch_size && a.grad_accum_steps == b.grad_accum_steps;
}
}  // namespace plimsoll

namespace plimsoll::train {
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

bool dumps_steps(const RunConfig& config) { return !config.debug.dump_dir.empty(); }

}  // namespace

optimizers::OptimizerOptions optimizer_options(const RunConfig& config) {
  optimizers::OptimizerOptions options{
      config.training.optimizer, config.clip_norm(),
      config.training.momentum > 0 || config.training.adafactor.beta1.has_value()};
  options.num_groups = static_cast<int64_t>(config.training.param_groups.size());
  options.muon_ns_steps = config.training.muon.ns_steps;
  options.state = state_choice(config.training, config.lora.enabled).dtypes;
  if (config.scales_loss()) options.loss_scaling = loss_scaling(config.training.loss_scale);
  return options;
}

namespace {

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
  options.optimizer = optimizer_options(config);
  options.decay_all = config.training.weight_decay_scope == DecayScope::kAll;
  set_precision(config.training, options.pipeline);
  options.pipeline.rehearses = options.training && config.debug.verify_steps > 0;
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
  const int64_t eval_parts = evaluates ? static_cast<int64_t>(config.data.num_eval_parts()) : 0;
  const int64_t train_sources = trains ? std::max<int64_t>(1, std::ssize(config.data.weights)) : 0;
  const int64_t kept = trains && config.data.keep_in_memory ? config.data.keep_in_memory->count : 0;
  return kept + (train_sources + eval_parts) * PackedDataset::kRememberedBytes + start_adapters_bytes(model) +
         quantize_scratch(model, threads) + scratch_bytes(config, model.num_labels()) +
         tensors * kHeaderBytesPerTensor + threads * kReadBytesPerThread +
         ((trains ? 1 : 0) + eval_parts) * order_host_bytes(config) +
         (evaluates ? Evaluator::host_bytes(config, *prepared.task, model, options.num_eval) : 0);
}

/// memory.device_budget; a share of a card is of what plans may take of it.
int64_t device_budget_bytes(const MemoryBudget& budget, const runtime::Target& target,
                            const MachineMemory& memory) {
  if (budget.kind != MemoryBudget::Kind::kShare || target.memory_bytes() == 0)
    return budget_bytes(budget, memory);
  return static_cast<int64_t>(budget.share * static_cast<double>(target.memory_bytes()));
}

/// What the run is to stay within. The two pools are bounded where the user bounds them, the device where it
/// has memory of its own. memory.budget is the process's: beside a card the host's side of it.
std::vector<planner::Budget> budgets_of(const RunConfig& config, const runtime::Target& target,
                                        const MachineMemory& memory, int64_t more_bytes) {
  using planner::Bounded;
  const MemorySettings& m = config.memory;
  const auto automatic = [](const MemoryBudget& b) { return b.kind == MemoryBudget::Kind::kAuto; };
  std::vector<planner::Budget> budgets = {
      {"memory.budget", Bounded::kProcess, budget_bytes(m.budget, memory), automatic(m.budget)}};
  if (!automatic(m.device_budget))
    budgets.push_back(
        {"memory.device_budget", Bounded::kDevice, device_budget_bytes(m.device_budget, target, memory)});
  if (!automatic(m.host_budget))
    budgets.push_back({"memory.host_budget", Bounded::kHost, budget_bytes(m.host_budget, memory)});
  if (!automatic(m.disk_budget))
    budgets.push_back({"memory.disk_budget", Bounded::kDisk, m.disk_budget.bytes});
  else if (const auto free = free_space(offload_folder(config)); free && target.is_in_process())
    budgets.push_back({"memory.disk_budget", Bounded::kDisk, *free, /*automatic=*/true});
  if (target.memory_bytes() > 0)
    budgets.push_back({planned_card(config)                  ? planner::kCardOfProfile
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
planner::Work work_of_step(const planner::StepCost& cost, const BatchSplit& split, const RunConfig& config,
                           const planner::CostModel& costs, bool training) {
  const int64_t count = training ? split.grad_accum_steps : 1;
  const auto times = static_cast<double>(count);
  planner::StepSeconds seconds = cost.update_seconds;
  seconds.add(cost.seconds, times);
  return {.flops = cost.flops * times + cost.update_flops,
          .recompute_flops = cost.recompute_flops * times,
          .bytes = cost.bytes * times + cost.update_bytes,
          .tokens = split.micro_batch_size * count * config.data.sequence_length,
          .micro_batch_size = split.micro_batch_size,
          .grad_accum_steps = count,
          .seconds = seconds,
          .rates = costs.profile().rates,
          .profile = costs.profile().name};
}

/// Between the device and elsewhere, by the programs of one step; with buckets of the longest.
void add_moved(const passes::SessionPlan& session, int64_t num_micro_batches, planner::PlanReport& report) {
  std::map<std::string, passes::BytesMoved> by_name;
  for (const passes::Program& program : session.programs)
    by_name[program.graph.name.substr(0, program.graph.name.find('@'))] = passes::bytes_moved(program.graph);
  for (const auto& [name, times] : {std::pair<std::string, int64_t>{"step", 1},
                                    {"micro_first", 1},
                                    {"micro_next", num_micro_batches - 1},
                                    {"update", 1}}) {
    report.offload_out_bytes += by_name[name].out * times;
    report.offload_in_bytes += by_name[name].in * times;
  }
}

/// Why the updates stand behind backward: for the plan to say.
std::string why_behind_backward(const RunConfig& config, const BatchSplit& split, bool fits) {
  if (config.memory.optimizer_in_backward == OptimizerInBackward::kFalse)
    return "memory.optimizer_in_backward is false";
  std::string against = against_optimizer_in_backward(config, split.grad_accum_steps);
  if (!against.empty()) return against;
  return fits ? "the plan fits without" : "its arena would be larger";
}

passes::OffloadOptions offload_of(const RunConfig& config, const Prepared& prepared, const Way& way) {
  passes::OffloadOptions offload = way.offload.any() ? way.offload : offload_options(config);
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

/// As plan_way, or where it `sketches` as sketch_way.
Result<Planned> plan_with(const passes::OffloadOptions& offload, const RunConfig& config,
                          const Prepared& prepared, const Way& way, const runtime::Target& target,
                          const PrepareOptions& prepare_options, bool sketches,
                          planner::ScheduledPrograms* scheduled) {
  const BatchSplit& split = way.split;
  const std::vector<std::string>& recomputed = way.recomputed;
  const models::Model& model = *prepared.model;
  const LoaderOptions& loader = prepared.loader;
  planner::StepOptions options =
      step_options(config, split, *prepared.task, prepare_options.buckets->lengths, prepare_options.purpose);
  options.costs = prepared.costs.get();
  options.chunk_tokens = way.chunk_tokens;
  if (!prepare_options.finds_least && target.shares_host_memory())
    options.memory.room_bytes = budget_bytes(config.memory.budget, prepared.memory) +
                                prepare_options.more_bytes - parameter_bytes(model);
  options.optimizer_in_backward = way.optimizer_in_backward;
  options.second_backward = way.optimizer_in_backward && config.clip_norm();
  options.sketch = options.memory.bound_only = sketches;
  options.scheduled = scheduled;
  if (prepare_options.known != nullptr) options.known = &prepare_options.known->programs();
  if (way.tolerance > 0) options.memory.tolerance = way.tolerance;
  RecomputeSettings recompute = config.memory.recompute;
  if (way.recompute_all) recompute.mode = RecomputeMode::kFull;
  set_recompute(recompute, options.pipeline);
  options.pipeline.offload = offload;
  options.pipeline.dump_dir = prepare_options.dump_ir;
  // Pass by pass where somebody looks; the plan that is chosen is verified as a whole.
  options.pipeline.verify = prepare_options.verify && !prepare_options.dump_ir.empty();
  options.finds_gains = (!sketches || (scheduled == nullptr && way.chunk_tokens == 0)) &&
                        !way.recompute_all && chooses_recompute(config, prepare_options) &&
                        recomputed.empty();
  if (!recomputed.empty())
    options.pipeline.recompute = {passes::RecomputePolicy::Kind::kLayers, 0, recomputed};
  if (prepared.fresh_head) options.drawn_alone = models::Model::kScore;
  PLIMSOLL_ASSIGN(auto programs, planner::build_training_programs(model, options, target));
  PLIMSOLL_TRY(check_overrides_used(programs, model, config.training));
  planner::Surroundings surroundings{.num_threads = prepare_options.num_threads,
                                     .host_bytes = host_bytes(prepared, config, prepare_options),
                                     .unwritten_ops = programs.unwritten_ops};
  if (options.training) {
    surroundings.host_bytes +=
        checkpoint_host_bytes(model, programs.session, final_format(config, prepared.model_config, model)) +
        Loader::host_bytes(loader, config.data.sequence_length) + loader.num_threads * kStackBytesPerThread;
    if (config.training.load_best_model_at_end) surroundings.host_bytes += kCheckpointReadBytes;
    surroundings.file_phases = {"save"};
    if (dumps_steps(config)) surroundings.file_phases.emplace_back("dump");
  }
  if (programs.session.pool(ir::MemorySpace::kDisk).total() > 0) surroundings.host_bytes += kDiskQueueBytes;
  planner::PlanReport report = planner::assess(programs.session, target, surroundings);
  planner::describe_work(work_of_step(programs.cost, split, config, *prepared.costs, options.training),
                         report);
  describe_buckets(*prepare_options.buckets, report);
  report.offload = offload_text(with_states_alone(options.pipeline.offload, programs.session));
  report.update_on_host = options.pipeline.offload.updates_on_host;
  add_moved(programs.session, split.grad_accum_steps, report);
  if (options.training) report.state = state_words(config.training, options.accumulate, config.lora.enabled);
  if (options.training) {
    report.recompute_set = programs.recomputed;
    report.recompute = recompute_text(recompute, report.recompute_set);
    report.optimizer_in_backward = way.optimizer_in_backward;
    report.second_backward = options.second_backward;
    if (const passes::Program* program = planner::largest_backward(programs.session))
      report.loss_chunk_tokens = planner::chunk_tokens_of(*program);
  }
  hold_against_budgets(config, prepared, way, target, prepare_options, report);
  return Planned{way, std::move(programs), std::move(report)};
}

/// The same, with the updates where they are quicker; gradients and weights on their way take memory of the
/// host's, so that where that is short the device updates after all.
Result<Planned> plan_as(const RunConfig& config, const Prepared& prepared, const Way& way,
                        const runtime::Target& target, const PrepareOptions& options, bool sketches,
                        planner::ScheduledPrograms* scheduled) {
  passes::OffloadOptions offload = offload_of(config, prepared, way);
  offload.updates_on_host =
      options.purpose == Purpose::kTrain && updates_on_host(config, prepared, target, offload, way.split);
  const auto plan = [&] {
    return plan_with(offload, config, prepared, way, target, options, sketches, scheduled);
  };
  PLIMSOLL_ASSIGN(Planned planned, plan());
  const planner::Budget* over = planner::exceeded(planned.report, planned.report.budgets);
  const bool is_short = over != nullptr && (over->bounded == planner::Bounded::kHost ||
                                            over->bounded == planner::Bounded::kProcess);
  if (!is_short || !offload.updates_on_host || config.memory.update_on_host != UpdateOnHost::kAuto)
    return planned;
  offload.updates_on_host = false;
  PLIMSOLL_ASSIGN(Planned moved, plan());
  return planner::is_better(moved.report, planned.report) ? std::move(moved) : std::move(planned);
}

}  // namespace

bool chooses_recompute(const RunConfig& config, const PrepareOptions& options) {
  return options.purpose == Purpose::kTrain && config.memory.recompute.mode == RecomputeMode::kAuto;
}

Result<Planned> plan_way(const RunConfig& config, const Prepared& prepared, const Way& way,
                         const runtime::Target& target, const PrepareOptions& options) {
  return plan_as(config, prepared, way, target, options, false, nullptr);
}

Result<Planned> sketch_way(const RunConfig& config, const Prepared& prepared, const Way& way,
                           const runtime::Target& target, const PrepareOptions& options,
                           planner::ScheduledPrograms* scheduled) {
  PrepareOptions sketching = options;
  sketching.verify = false;
  sketching.dump_ir.clear();
  return plan_as(config, prepared, way, target, sketching, true, scheduled);
}

std::shared_ptr<const WayFacts> facts_of(const Planned& planned, const Prepared& prepared,
                                         const runtime::Target& target) {
  const passes::Program* program = planner::largest_backward(planned.programs.session);
  if (program == nullptr) return {};
  auto facts = std::make_shared<WayFacts>();
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

void hold_against_budgets(const RunConfig& config, const Prepared& prepared, const Way& way,
                          const runtime::Target& target, const PrepareOptions& options,
                          planner::PlanReport& report) {
  report.budgets = budgets_of(config, target, prepared.memory, options.more_bytes);
  report.budget_bytes = report.budgets.front().bytes;
  report.fits = planner::exceeded(report, report.budgets) == nullptr;
  if (options.purpose == Purpose::kTrain && !way.optimizer_in_backward)
    report.no_optimizer_in_backward = why_behind_backward(config, way.split, report.fits);
}

int32_t num_blocks(const models::Model& model) {
  int32_t count = 0;
  for (const models::Parameter& p : model.parameters()) count = std::max(count, p.block + 1);
  return count;
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
