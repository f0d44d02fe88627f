// The programs of a training session, from a model and the shapes of a step to bound, planned programs.
//
//   without accumulation       step         forward, backward, norm, clip, update; gradients are arena values
//   with it (or for a dump)    micro_first  forward, backward, gradients written to their accumulators
//                              micro_next   the same, added
//                              update       norm, clip, update from the accumulators
//   where ranks sum early      micro_last   as micro_next, and each gradient summed over the ranks once it is
//                                           complete; the update finds the sums
//   where ranks gather late    gather       the parameters, for what reads them between steps
//   always                     init         random parameters
//   where asked for            init_head    the random parameter of a head that the weights lack
//   where asked for            eval         forward to the loss
//                              logits       forward to the logits (a dump)
//
// With buckets there are step, micro_first, micro_next and eval for each length, "step@128", with inputs of
// its own; parameters, accumulators and the arena are common to all.
//
// A parameter that is used several times (a tied head) has an accumulator a use: each goes on adding in order
// of tokens, and the sum over uses is taken once, at the update. So any split into micro-batches gives
// bit-identical results.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "models/model.h"
#include "optimizers/optimizer.h"
#include "passes/memory/memory_plan.h"
#include "passes/pipeline.h"
#include "passes/session_plan.h"
#include "planner/cost/cost_model.h"
#include "planner/cost/step_cost.h"
#include "planner/programs/accumulation.h"
#include "planner/programs/program_cache.h"
#include "planner/recompute/recompute_chain.h"
#include "planner/report/precision_report.h"
#include "runtime/target.h"
#include "tasks/task.h"

namespace plimsoll::planner {

// States by which the host and the programs speak.
/// An input of the task, for programs of that bucket: "batch.tokens", "batch.tokens@128".
std::string input_state(std::string_view name, int64_t bucket = 0);
inline constexpr std::string_view kGradScaleState =
    "step.grad_scale";  ///< f32[1]: 1 / targets (or examples) of the effective batch
inline constexpr std::string_view kRandomState = "step.random";  ///< i32[4], see ops.h
/// f32[1]: the sum of the targets' or examples' losses. Programs add to it; the host sets it to kLossStart
/// before the first one: the neutral element of addition, with which a sum begins as its first term, bit for
/// bit.
inline constexpr std::string_view kLossState = "step.loss";
inline constexpr float kLossStart = -0.0F;
/// f32, Task::logits_shape: what `logits` gives, and `eval` of a task with metrics.
inline constexpr std::string_view kLogitsState = "dump.logits";

struct StepOptions {
  int64_t micro_batch_size = 1;
  int64_t sequence_length = 0;
  /// Lengths with programs of their own, ascending, the last sequence_length; empty: that one.
  std::vector<int64_t> buckets = {};
  const tasks::Task* task = nullptr;  ///< what is trained for; outlives the call
  bool accumulate =
      false;          ///< gradients have accumulators: several micro-batches, ranks, or a dump of gradients
  int64_t ranks = 1;  ///< that sum gradients and losses before the update, from accumulators
  /// Ranks have their pieces of the accumulators alone, of gradients whose update they share (ZeRO-2): the
  /// sum over ranks is taken in each micro-batch.
  bool shares_gradients = false;
  /// Of how many blocks, the last ones, parameters that ranks share stay whole from forward to backward.
  int32_t gathered_blocks = 0;
  /// Parameters whose update ranks share are gathered behind the next step's forward, and are whole between
  /// steps only behind the program `gather`. Without averages and offload, which read them before.
  bool gathers_late = false;
  /// With several micro-batches of ranks that have whole accumulators, of f32: the last one's backward sums
  /// each gradient over the ranks, in a program of its own, and the update finds the sums.
  bool sums_in_last = false;
  bool eval = false;     ///< with the eval program
  bool logits = false;   ///< with the logits program
  bool training = true;  ///< false: neither gradients nor update
  /// A program of its own draws the classifier's head and what files may lack beside it, `init_head`.
  bool draws_head = false;
  optimizers::OptimizerOptions optimizer = {};
  /// Each update where its gradient is complete: without accumulation and loss scaling, which want all
  /// gradients first, and with clipping by a second backward alone.
  bool optimizer_in_backward = false, second_backward = false;
  bool keeps_weight_copies = false;  ///< weights are quantised or rounded once a step, and kept for all of it
  bool decay_all = false;            ///< weight decay on vectors too, where no group says it itself
  /// Logits of head and loss that exist at once. More tokens a chunk make its GEMMs faster.
  int64_t logits_bytes = int64_t{128} << 20;
  int64_t chunk_tokens = 0;          ///< tokens of a chunk, a multiple of ops::kLossRows; 0: by logits_bytes
  const CostModel* costs = nullptr;  ///< outlives the call; null: a CPU's that was not measured
  bool finds_gains = false;          ///< what computing layers again would gain
  passes::PipelineOptions pipeline = {};
  passes::MemoryPlanOptions memory = {};
  /// The programs are compared with others, and run only behind issue_program.
  bool are_candidates = false;
};

struct TrainingPrograms {
  passes::SessionPlan session;
  /// Where accumulated; in the order of the model's parameters that are trained.
  std::vector<GradientStates> gradients;
  StepCost cost;
  PrecisionReport precision;
  std::vector<LayerGain> gains;          ///< of the longest sequence's program with backward, where asked for
  std::vector<std::string> recomputed;   ///< layers, as RecomputePolicy names them
  int32_t recomputed_layers = 0;         ///< of them: whole ones, those of a run counted one by one
  int32_t recomputed_parts = 0;          ///< of them: parts of a layer
  std::vector<bool> overrides_used;      ///< by precision override: whether it matched in any program
  std::vector<std::string> overridable;  ///< with overrides: names that they could match, see autocast.h
  int64_t unwritten_ops = 0;             ///< of an estimate without graphs: how many ops they would have
};

/// Builds, optimises, binds and plans every program. `target` is asked for workspaces and strides alone.
/// Errors: kInvalidArgument from shapes that do not fit.
Result<TrainingPrograms> build_training_programs(const models::Model& model, const StepOptions& options,
                                                 const runtime::Target& target);

/// The same. Parts that `cache` has are not written again, parts that it lacks are added to it. `estimated`:
/// the programs of an estimate with the same options and nothing offloaded; those behind the first are placed
/// instead of being made again.
Result<TrainingPrograms> build_training_programs(const models::Model& model, const StepOptions& options,
                                                 const runtime::Target& target, ProgramCache& cache,
                                                 std::vector<passes::Program>&& estimated = {});

/// An estimate of memory and seconds, from the program that needs most memory and the update, without
/// offsets: the plan needs as much, but for how its offsets pack. None of its programs can run.
Result<TrainingPrograms> estimate_training_programs(const models::Model& model, const StepOptions& options,
                                                    const runtime::Target& target, ProgramCache& cache);

}  // namespace plimsoll::planner
