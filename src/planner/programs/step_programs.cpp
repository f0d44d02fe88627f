#include "planner/programs/step_programs.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "planner/programs/finish_program.h"
#include "planner/programs/step_graphs.h"

namespace plimsoll::planner {
namespace {

using ir::Graph;
using passes::ProgramId;
using passes::ProgramRole;
using Written = StepGraphs::Written;

constexpr ProgramId kUpdate{ProgramRole::kUpdate};

/// What the first micro-batch exchanges more than the one that stands for all is once a step, too.
void add_first_gathers(const std::optional<StepCost>& first, StepCost& cost) {
  if (!first) return;
  constexpr auto kNetwork = static_cast<size_t>(Part::kNetwork);
  const auto more = [](double of_first, double of_others) { return std::max(0.0, of_first - of_others); };
  cost.update_network_bytes += more(first->network_bytes, cost.network_bytes);
  cost.update_seconds.parts[kNetwork] += more(first->seconds.parts[kNetwork], cost.seconds.parts[kNetwork]);
  cost.update_seconds.hidden += more(first->seconds.hidden, cost.seconds.hidden);
}

/// What the last micro-batch exchanges and sums is once a step, too.
void add_last_sums(const std::optional<StepCost>& last, StepCost& cost) {
  if (!last) return;
  cost.update_flops += last->update_flops;
  cost.update_bytes += last->update_bytes;
  cost.update_network_bytes += last->update_network_bytes;
  cost.update_seconds.add(last->update_seconds, 1);
  cost.update_seconds.hidden += last->seconds.hidden - cost.seconds.hidden;
  for (const Part part : {Part::kNetwork, Part::kCopies}) {
    const auto p = static_cast<size_t>(part);
    cost.update_seconds.parts[p] += last->seconds.parts[p] - cost.seconds.parts[p];
  }
}

/// Takes the graphs through the remaining passes and plans their memory.
class ProgramBuilder {
 public:
  ProgramBuilder(const models::Model& model, const StepOptions& options, const runtime::Target& target,
                 ProgramCache* cache)
      : model_(model),
        options_(options),
        target_(target),
        cache_(cache),
        costs_(costs_of(options, target)),
        graphs_(model, options, target, costs_, cache, result_),
        memory_(options.memory) {}

  Result<TrainingPrograms> plan(std::span<passes::Program> estimated) {
    std::vector<int64_t> lengths = options_.buckets;
    if (lengths.empty()) lengths = {options_.sequence_length};
    for (const int64_t length : lengths)
      if (options_.training) PLIMSOLL_TRY(add_micro_batches(bucket_of(length, options_.buckets), estimated));
    if (options_.training && options_.accumulate) PLIMSOLL_TRY(add(update()));
    if (graphs_.gathers_late()) PLIMSOLL_TRY(add(finish({ProgramRole::kGather}, graphs_.gather())));
    for (const int64_t length : lengths)
      if (options_.eval) PLIMSOLL_TRY(add_eval({ProgramRole::kEval, bucket_of(length, options_.buckets)}));
    if (options_.logits) PLIMSOLL_TRY(add(finish({ProgramRole::kLogits}, graphs_.logits())));
    PLIMSOLL_TRY(add_init(ProgramRole::kInit, [](const models::Parameter& p) {
      return !p.is_adapter && !ir::is_block(p.dtype);
    }));
    if (options_.draws_head)
      PLIMSOLL_TRY(add_init(ProgramRole::kInitHead, [&](const models::Parameter& p) {
        return model_.is_of_head(p.name) || model_.is_drawn_where_missing(p.name);
      }));
    return finished();
  }

  Result<TrainingPrograms> estimate() {
    memory_.bound_only = true;
    if (options_.training) {
      if (gathers_first()) PLIMSOLL_TRY(add(micro(first(), {})));
      PLIMSOLL_TRY(add(micro(counted(), {})));
      if (options_.sums_in_last) PLIMSOLL_TRY(add(micro(last(), {})));
      if (options_.accumulate) PLIMSOLL_TRY(add(update()));
    }
    return finished();
  }

 private:
  /// The program that stands for each micro-batch.
  [[nodiscard]] ProgramId counted() const {
    const ProgramRole role = options_.training ? costed_program(options_.accumulate) : ProgramRole::kEval;
    return {role, bucket_of(options_.sequence_length, options_.buckets)};
  }

  /// With accumulators: the first micro-batch's program, and whether it alone gathers parameters.
  [[nodiscard]] ProgramId first() const {
    return {ProgramRole::kMicroFirst, bucket_of(options_.sequence_length, options_.buckets)};
  }
  /// Where the last micro-batch's program differs from the others'.
  [[nodiscard]] ProgramId last() const {
    return {ProgramRole::kMicroLast, bucket_of(options_.sequence_length, options_.buckets)};
  }
  [[nodiscard]] bool gathers_first() const { return options_.accumulate && graphs_.gathers_late(); }

  Status add(Result<passes::Program> program) {
    if (!program) return std::move(program).error();
    programs_.push_back(std::move(*program));
    return Ok{};
  }
  Result<TrainingPrograms> finished() {
    add_first_gathers(first_, result_.cost);
    add_last_sums(last_, result_.cost);
    PLIMSOLL_ASSIGN(result_.session, finish_session(std::move(programs_), target_));
    if (options_.training) graphs_.note_shared_states(result_.session);
    return std::move(result_);
  }

  Status add_micro_batches(int64_t bucket, std::span<passes::Program> estimated) {
    if (!options_.accumulate) return add(micro({ProgramRole::kStep, bucket}, estimated));
    const ProgramId first{ProgramRole::kMicroFirst, bucket}, next{ProgramRole::kMicroNext, bucket};
    // Both begin alike. Where passes leave their texts, each goes from its beginning.
    std::optional<Written> begun;
    if (!graphs_.is_shown() && !graphs_.knows(first) && !graphs_.knows(next)) {
      PLIMSOLL_ASSIGN(begun, graphs_.differentiated(first));
    }
    PLIMSOLL_TRY(add(micro(first, estimated, begun)));
    if (options_.sums_in_last) PLIMSOLL_TRY(add(micro({ProgramRole::kMicroLast, bucket}, estimated, begun)));
    return add(micro(next, estimated, std::move(begun)));
  }

  Result<passes::Program> micro(const ProgramId& id, std::span<passes::Program> estimated,
                                std::optional<Written> begun = {}) {
    const ProgramBeginning* beginning = graphs_.find_beginning(id);
    // Not the first one: its passes say what the result tells of them.
    const auto same = std::ranges::find(estimated, id, &passes::Program::id);
    if (beginning != nullptr && graphs_.has_described() && same != estimated.end()) {
      graphs_.note_beginning(*beginning);
      return place({id, std::move(same->graph), std::move(same->binding)});
    }
    return finish(id, graphs_.training(id, std::move(begun)));
  }

  Result<passes::Program> update() {
    if (!graphs_.uses_cache()) return finish(kUpdate, graphs_.update());
    const UpdateKey key{result_.gradients, options_.pipeline.offload, options_.pipeline.overlaps_ranks,
                        graphs_.gathers_late(), options_.sums_in_last};
    if (cache_->find_update(key) == nullptr) {
      PLIMSOLL_ASSIGN(Written written, graphs_.update());
      PLIMSOLL_ASSIGN(BoundProgram bound,
                      bind_program(kUpdate, std::move(written.graph), written.pipeline, target_));
      cache_->set_update(key, std::move(bound));
    }
    PLIMSOLL_ASSIGN(passes::Program program, place(*cache_->find_update(key)));
    graphs_.describe_precision(kUpdate, program.graph, {});
    return program;
  }

  Status add_eval(const ProgramId& id) { return add(finish(id, graphs_.eval(id))); }
  Status add_init(ProgramRole role, const std::function<bool(const models::Parameter&)>& drawn) {
    return add(finish({role}, graphs_.init(role, drawn)));
  }

  Result<passes::Program> finish(const ProgramId& id, Result<Written> written) {
    if (!written) return std::move(written).error();
    PLIMSOLL_ASSIGN(BoundProgram bound,
                    bind_program(id, std::move(written->graph), written->pipeline, target_));
    PLIMSOLL_ASSIGN(passes::Program program, place_program(std::move(bound), memory_, end()));
    graphs_.describe(id, program.graph, written->pipeline);
    note(program);
    return program;
  }
  Result<passes::Program> place(BoundProgram bound) {
    PLIMSOLL_ASSIGN(passes::Program program, place_program(std::move(bound), memory_, end()));
    note(program);
    return program;
  }
  [[nodiscard]] PlannedTo end() const {
    if (options_.are_candidates) return PlannedTo::kOffsets;
    return options_.pipeline.verify ? PlannedTo::kVerified : PlannedTo::kIssue;
  }
  /// The arenas of all programs share their space, and the cost is that of a step.
  void note(const passes::Program& program) {
    for (size_t s = 0; s < ir::kNumSpaces; ++s)
      memory_.taken_bytes[s] = std::max(memory_.taken_bytes[s], program.plan.pools[s].arena_bytes);
    if (program.id == counted() || program.id == kUpdate)
      add_cost(program.graph, program.id.role, costs_, result_.cost);
    if (gathers_first() && program.id == first())
      add_cost(program.graph, program.id.role, costs_, first_.emplace());
    if (program.id == last()) add_cost(program.graph, program.id.role, costs_, last_.emplace());
  }

  const models::Model& model_;
  const StepOptions& options_;
  const runtime::Target& target_;
  ProgramCache* cache_;
  const CostModel costs_;
  TrainingPrograms result_;
  StepGraphs graphs_;
  passes::MemoryPlanOptions memory_;
  std::vector<passes::Program> programs_;
  std::optional<StepCost> first_;  ///< of the first micro-batch, where that alone gathers
  std::optional<StepCost> last_;   ///< of the last one, where that alone sums over ranks
};

}  // namespace

std::string input_state(std::string_view name, int64_t bucket) {
  return bucket == 0 ? fmt::format("batch.{}", name) : fmt::format("batch.{}@{}", name, bucket);
}

Result<TrainingPrograms> build_training_programs(const models::Model& model, const StepOptions& options,
                                                 const runtime::Target& target) {
  return ProgramBuilder(model, options, target, nullptr).plan({});
}

Result<TrainingPrograms> build_training_programs(const models::Model& model, const StepOptions& options,
                                                 const runtime::Target& target, ProgramCache& cache,
                                                 std::vector<passes::Program>&& estimated) {
  return ProgramBuilder(model, options, target, &cache).plan(estimated);
}

Result<TrainingPrograms> estimate_training_programs(const models::Model& model, const StepOptions& options,
                                                    const runtime::Target& target, ProgramCache& cache) {
  return ProgramBuilder(model, options, target, &cache).estimate();
}

}  // namespace plimsoll::planner
