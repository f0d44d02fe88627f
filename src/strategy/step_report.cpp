#include "strategy/step_report.h"

#include <algorithm>
#include <utility>

#include "checkpoints/adapter_start.h"
#include "checkpoints/checkpoint_files.h"
#include "checkpoints/quantize_weights.h"
#include "datasets/packed_dataset.h"
#include "devices/devices.h"
#include "io/atomic_directory.h"
#include "planner/programs/largest_backward.h"
#include "planner/programs/loss_chunks.h"
#include "planner/report/assess.h"
#include "planner/report/budget.h"
#include "runtime/shared_states.h"
#include "settings/distributed.h"
#include "settings/named_profile.h"
#include "settings/offload.h"
#include "settings/optimizer_in_backward.h"
#include "settings/recompute.h"
#include "settings/state_settings.h"
#include "strategy/memory_budget.h"
#include "strategy/step_options.h"

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
/// Of several ranks: the thread that watches them, its messages, and the memory between them.
constexpr int64_t kRankBytes = int64_t{1} << 20;
/// A library of MPI beside that, and its buffers for messages of each rank: 14 to 20 MB of Open MPI 4.1 and
/// MPICH 4.0 and 5.0 with two ranks, 16 of Open MPI's with four.
constexpr int64_t kMpiBytes = int64_t{18} << 20, kMpiBytesPerRank = int64_t{1} << 20;
/// NCCL on the host, beside what it takes of the card: an estimate, of its library and what it pins.
constexpr int64_t kNcclBytes = int64_t{256} << 20;
/// Headers of files to be written: name, type, shape and offsets of a tensor.
constexpr int64_t kHeaderBytesPerTensor = 256;

int64_t rank_bytes(const settings::RunConfig& config) {
  const int64_t ranks = config.distributed.num_ranks();
  int64_t bytes = kRankBytes;
  if (config.distributed.transport == "mpi") bytes += kMpiBytes + ranks * kMpiBytesPerRank;
  if (settings::is_for_card(config)) bytes += devices::exchange_bytes(devices::DeviceKind::kCuda, ranks);
  if (settings::uses_nccl(config)) bytes += kNcclBytes;
  return bytes;
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

/// Memory of the host beside the programs, whoever trains or evaluates.
int64_t host_bytes(const RunScope& scope) {
  const settings::RunConfig& config = scope.config;
  const PrepareOptions& options = scope.options;
  const models::Model& model = *scope.prepared.model;
  const int threads = options.num_threads;
  int64_t tensors = 0;
  for (const auto& p : model.parameters()) tensors += static_cast<int64_t>(p.views.size());
  const bool trains = options.purpose == Purpose::kTrain,
             evaluates = !trains || config.evaluates_while_training();
  const int64_t eval_parts = evaluates ? static_cast<int64_t>(config.data.num_eval_parts()) : 0;
  const int64_t train_sources = trains ? std::max<int64_t>(1, std::ssize(config.data.weights)) : 0;
  const int64_t sharing =
      trains && settings::shares_parameters(config.distributed) ? config.distributed.num_ranks() : 1;
  const int64_t kept = trains && config.data.keep_in_memory ? config.data.keep_in_memory->count : 0;
  return kept +
         (train_sources + eval_parts) *
             (datasets::PackedDataset::kRememberedBytes + scope.prepared.task->source_bytes()) +
         checkpoints::start_adapters_bytes(model, sharing) + checkpoints::quantize_scratch(model, threads) +
         scratch_bytes(config, scope.prepared) + tensors * kHeaderBytesPerTensor +
         threads * kReadBytesPerThread +
         ((trains ? 1 : 0) + eval_parts) * preprocessing::order_host_bytes(config) +
         (evaluates ? evaluation_host_bytes(config, *scope.prepared.task, options.num_eval) : 0);
}

/// What the process has beside the programs.
planner::Surroundings surroundings_of(const RunScope& scope, const planner::TrainingPrograms& programs) {
  const settings::RunConfig& config = scope.config;
  const models::Model& model = *scope.prepared.model;
  if (config.is_embedded)
    return {.num_threads = scope.options.num_threads,
            .unwritten_ops = programs.unwritten_ops,
            .counts_process = false};
  const datasets::LoaderOptions& loader = scope.prepared.loader;
  planner::Surroundings surroundings{.num_threads = scope.options.num_threads,
                                     .host_bytes = host_bytes(scope),
                                     .unwritten_ops = programs.unwritten_ops};
  if (scope.options.purpose == Purpose::kTrain) {
    surroundings.host_bytes +=
        checkpoints::checkpoint_host_bytes(
            model, programs.session, checkpoints::final_format(config, scope.prepared.model_config, model)) +
        datasets::Loader::host_bytes(loader, config.data.sequence_length) +
        loader.num_threads * kStackBytesPerThread;
    if (config.training.load_best_model_at_end) surroundings.host_bytes += kCheckpointReadBytes;
    if (config.distributed.num_ranks() > 1) surroundings.host_bytes += rank_bytes(config);
    if (const int64_t ranks = settings::updating_ranks(config.distributed); ranks > 1)
      surroundings.host_bytes += runtime::SharedStates::host_bytes(ranks);
    surroundings.file_phases = {"save"};
    if (dumps_steps(config)) surroundings.file_phases.emplace_back("dump");
  }
  if (programs.session.pool(ir::MemorySpace::kDisk).total() > 0) surroundings.host_bytes += kDiskQueueBytes;
  return surroundings;
}

/// memory.device_budget; a share of a card is of what plans may take of it.
int64_t device_budget_bytes(const settings::MemoryBudget& budget, const runtime::Target& target,
                            const MachineMemory& memory) {
  if (budget.kind != settings::MemoryBudget::Kind::kShare || target.memory_bytes() == 0)
    return budget_bytes(budget, memory);
  return static_cast<int64_t>(budget.share * static_cast<double>(target.memory_bytes()));
}

/// For offload to the disk. Ranks plan by themselves, and would disagree on what the others have left of it.
std::optional<int64_t> free_disk(const settings::RunConfig& config) {
  if (config.distributed.num_ranks() > 1) return std::nullopt;
  return io::free_space(settings::offload_folder(config));
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
  else if (const auto free = free_disk(config); free && target.is_in_process())
    budgets.push_back({"memory.disk_budget", Bounded::kDisk, *free, /*automatic=*/true});
  if (target.memory_bytes() > 0)
    budgets.push_back({settings::planned_card(config)        ? planner::kCardOfProfile
                       : config.runtime.device == "discrete" ? "runtime.discrete.memory"
                                                             : planner::kCardHere,
                       Bounded::kDevice, target.memory_bytes()});
  for (planner::Budget& budget : budgets) budget.bytes += more_bytes;
  return budgets;
}

/// An evaluation has no step: its figures are those of one micro-batch.
planner::Work work_of_step(const planner::StepCost& cost, int64_t micro_batch_size,
                           const planner::Accumulation& accumulation, int64_t sequence_length,
                           const planner::CostModel& costs, const tasks::Unit& unit) {
  const int64_t count = accumulation.num_micro_batches;
  const auto times = static_cast<double>(count);
  planner::StepSeconds seconds = cost.update_seconds;
  seconds.add(cost.seconds, times);
  return {.flops = cost.flops * times + cost.update_flops,
          .recompute_flops = cost.recompute_flops * times,
          .bytes = cost.bytes * times + cost.update_bytes,
          .network_bytes = cost.network_bytes * times + cost.update_network_bytes,
          .units = micro_batch_size * count * unit.of(sequence_length),
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

void describe_training(const RunScope& scope, const Strategy& strategy, const planner::StepOptions& options,
                       const planner::TrainingPrograms& programs, planner::PlanReport& report) {
  const settings::RunConfig& config = scope.config;
  const int64_t bucket = planner::bucket_of(options.sequence_length, options.buckets);
  planner::Accumulation accumulation = accumulation_of(config, strategy.split);
  accumulation.sums_in_last = options.sums_in_last;
  add_moved(programs.session, planner::runs_per_step(accumulation, bucket), report);
  report.state = settings::state_words(config.training, options.accumulate, config.lora.enabled);
  for (const models::BatchNormLayer& layer : scope.prepared.model->batch_norms()) {
    ++(layer.statistics == models::NormStatistics::kBatch ? report.batch_norms : report.frozen_norms);
    report.norms_synchronised = layer.ranks > 1;
  }
  report.recompute_set = programs.recomputed;
  report.recompute = settings::recompute_text(
      recompute_of(config, strategy),
      {programs.recomputed_layers, programs.recomputed_parts, scope.prepared.model->num_blocks()});
  report.optimizer_in_backward = strategy.optimizer_in_backward;
  report.second_backward = options.second_backward;
  report.gathered_layers = strategy.gathered_blocks;
  if (const passes::Program* program = planner::largest_backward(programs.session))
    report.loss_chunk_tokens = planner::chunk_tokens_of(*program);
}

}  // namespace

planner::PlanReport report_of(const RunScope& scope, const Strategy& strategy,
                              const planner::StepOptions& options,
                              const planner::TrainingPrograms& programs) {
  planner::PlanReport report =
      planner::assess(programs.session, scope.target, surroundings_of(scope, programs));
  const planner::Accumulation accumulation =
      options.training ? accumulation_of(scope.config, strategy.split) : planner::Accumulation{};
  planner::describe_work(
      work_of_step(programs.cost, strategy.split.micro_batch_size, accumulation, options.sequence_length,
                   *scope.prepared.costs, scope.prepared.task->unit()),
      report);
  describe_buckets(*scope.options.buckets, report);
  report.offload = settings::offload_text(with_states_alone(options.pipeline.offload, programs.session));
  report.update_on_host = options.pipeline.offload.updates_on_host;
  report.ranks = options.ranks;
  report.network_described = scope.prepared.costs->network().is_described;
  report.units *= options.ranks;  // of the effective batch, as a step's event counts them
  if (options.training) describe_training(scope, strategy, options, programs, report);
  return report;
}

void compare_with_budgets(const RunScope& scope, const Strategy& strategy, planner::PlanReport& report) {
  report.budgets = budgets_of(scope.config, scope.target, scope.prepared.memory, scope.options.more_bytes);
  report.budget_bytes = report.budgets.front().bytes;
  report.fits = planner::exceeded(report, report.budgets) == nullptr;
  if (scope.options.purpose == Purpose::kTrain && !strategy.optimizer_in_backward)
    report.no_optimizer_in_backward = why_behind_backward(scope.config, strategy.split, report.fits);
}

int64_t scratch_bytes(const settings::RunConfig& config, const Prepared& prepared) {
  return std::max({kScratchBytes, preprocessing::data_scratch_bytes(config, prepared.model->num_labels()),
                   prepared.task->scratch_bytes()});
}

void describe_buckets(const preprocessing::Buckets& buckets, planner::PlanReport& report) {
  report.buckets = buckets.lengths;
  report.bucket_sequences = buckets.sequences;
  report.bucket_tokens = buckets.tokens;
  report.bucket_positions = buckets.positions;
}

}  // namespace plimsoll::strategy
