// The graphs of a training session's programs, from the model and the task up to the passes that arrange them
// in memory (step_programs.h lists the programs).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "ir/builder.h"
#include "optimizers/shared_states.h"
#include "passes/pipeline.h"
#include "passes/program_id.h"
#include "planner/cost/cost_model.h"
#include "planner/programs/initial_values.h"
#include "planner/programs/program_cache.h"
#include "planner/programs/step_programs.h"

namespace plimsoll::planner {

/// What estimates times: the options' costs, or those of a CPU that was not measured.
CostModel costs_of(const StepOptions& options, const runtime::Target& target);

/// The words that random ops draw from.
inline ir::StateDecl random_state() {
  return {std::string(kRandomState), {ir::DType::kI32, {4}}, ir::StateClass::kScalars};
}

/// Writes one graph after another. What the graphs say of themselves - gradients, matched overrides, gains of
/// recomputation - it writes into the result that it was given.
class StepGraphs {
 public:
  /// All outlive it, and it does not move, since pipelines refer to it. `cache` null: each graph is written
  /// anew.
  StepGraphs(const models::Model& model, const StepOptions& options, const runtime::Target& target,
             const CostModel& costs, ProgramCache* cache, TrainingPrograms& result);
  StepGraphs(const StepGraphs&) = delete;
  StepGraphs& operator=(const StepGraphs&) = delete;

  /// A graph and the passes that it has gone through.
  struct Written {
    ir::Graph graph;
    passes::Pipeline pipeline;
    passes::AutodiffReport derivative = {};
  };
  /// A program with gradients, up to what depends on recomputation and offload, or of several ranks to what
  /// depends on their exchanges: from the cache where that has it. `differentiated`: what it begins with,
  /// where the caller has it.
  Result<Written> training(const passes::ProgramId& id, std::optional<Written> differentiated = {});
  /// Forward and backward up to the gradients, which are stored.
  Result<Written> differentiated(const passes::ProgramId& id);
  /// Norm, clip and update from the accumulators.
  Result<Written> update();
  /// Makes the parameters whole that the ranks have updated.
  Result<Written> gather();
  Result<Written> eval(const passes::ProgramId& id);
  Result<Written> logits();
  /// Draws the parameters that `drawn` picks.
  Result<Written> init(passes::ProgramRole role, const std::function<bool(const models::Parameter&)>& drawn);

  /// Whether there are parameters that the next step gathers.
  [[nodiscard]] bool gathers_late() const { return !late_.empty(); }
  /// Notes in the session which states the ranks share.
  void note_shared_states(passes::SessionPlan& session) const;

  /// Whether graphs come from the cache: not where each pass leaves its text.
  [[nodiscard]] bool uses_cache() const { return cache_ != nullptr && !is_shown(); }
  [[nodiscard]] bool is_shown() const { return !options_.pipeline.dump_dir.empty(); }
  /// Null where the cache has none.
  [[nodiscard]] const ProgramBeginning* find_beginning(const passes::ProgramId& id) const;
  /// Whether the cache has it, with its order or without.
  [[nodiscard]] bool knows(const passes::ProgramId& id) const {
    return find_beginning(id) != nullptr || find_ordered(id) != nullptr;
  }
  /// What the result says of a program that begins so.
  void note_beginning(const ProgramBeginning& beginning);
  /// What the result says of a program whose passes have run: layers that are recomputed, and its precision,
  /// which is that of the first program described and of the update.
  void describe(const passes::ProgramId& id, const ir::Graph& graph, const passes::Pipeline& pipeline);
  void describe_precision(const passes::ProgramId& id, const ir::Graph& graph,
                          const passes::AutocastReport& report);
  [[nodiscard]] bool has_described() const { return has_described_; }

 private:
  [[nodiscard]] passes::Pipeline pipeline(const passes::ProgramId& id, const ir::Graph& graph,
                                          passes::PipelineProgress progress = {});
  [[nodiscard]] int64_t length_of(const passes::ProgramId& id) const {
    return id.bucket == 0 ? options_.sequence_length : id.bucket;
  }
  [[nodiscard]] int64_t chunk_tokens(const passes::ProgramId& id) const;
  [[nodiscard]] BeginningKey key_of(const passes::ProgramId& id) const;
  [[nodiscard]] BeginningKey ordered_key_of(const passes::ProgramId& id) const;
  [[nodiscard]] const ProgramBeginning* find_ordered(const passes::ProgramId& id) const;
  /// Whether strategies may differ in the ranks' exchanges alone, and share what stands before these.
  [[nodiscard]] bool shares_order() const;
  Written resumed(const passes::ProgramId& id, const ProgramBeginning& beginning);
  Result<Written> tidied(const passes::ProgramId& id, std::optional<Written> differentiated);
  void note_overrides(const passes::AutocastReport& report);
  Written begin(const passes::ProgramId& id);
  Status forward(const passes::ProgramId& id, Written& written, ir::ValueId& loss, bool training);
  std::vector<ir::ValueId> inputs(const passes::ProgramId& id, ir::Builder& b) const;
  /// Behind the gradients the update, or with accumulators the sums; then tidied.
  Status complete(const passes::ProgramId& id, Written& written);
  Status accumulate(const passes::ProgramId& id, Written& written);
  ir::ValueId sum_of_uses(ir::Builder& b, const std::vector<ir::ValueId>& uses) const;
  Status sum_in_last(ir::Graph& graph) const;
  void add_ranks(ir::Builder& b, const std::vector<int64_t>& pieces, std::vector<ir::ValueId>& sums) const;
  [[nodiscard]] std::vector<ir::ValueId> sums_over_ranks(ir::Builder& b, const Written& written) const;
  Status append_update(ir::Builder& b, const std::vector<ir::ValueId>& gradients) const;
  void append_running(ir::Builder& b, const models::Buffer& buffer) const;
  [[nodiscard]] std::vector<models::Buffer> running_buffers() const;
  void read_averages(ir::Graph& graph) const;
  [[nodiscard]] std::vector<optimizers::Update> updates(const std::vector<ir::ValueId>& gradients) const;
  [[nodiscard]] std::vector<optimizers::RuledUpdate> ruled_updates() const;
  void find_shared_states();
  /// Of those that a program with these reads makes whole.
  [[nodiscard]] passes::Sharding sharding(passes::ProgramRole role) const;
  /// By trained parameter: elements of this rank's piece of its accumulator; 0: it has all of it.
  [[nodiscard]] std::vector<int64_t> gradient_pieces() const;
  [[nodiscard]] std::vector<ir::ValueId> trained_reads(const ir::Graph& graph) const;

  const models::Model& model_;
  const StepOptions& options_;
  const runtime::Target& target_;
  const CostModel& costs_;
  ProgramCache* cache_;
  TrainingPrograms& result_;
  bool has_described_ = false;
  int64_t fp8_slots_ = 0;  ///< of delayed scaling, which the training programs have; 0: none
  std::vector<const models::Parameter*> trained_;
  std::vector<std::string> frozen_;
  SharedByName shared_;            ///< what ranks share of the state
  std::vector<std::string> late_;  ///< parameters that the next step gathers
};

}  // namespace plimsoll::planner
