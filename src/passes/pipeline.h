// Runs the passes over a program, in the one order there is, and verifies, times and dumps each.
//
//   build the forward graph ─► Pipeline::forward ─► differentiate ─► [accumulate, optimizer: the caller
//   appends]
//                           ─► Pipeline::backward ─► arrange ─► bind storages, plan memory
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ir/graph.h"
#include "ir/op_def.h"
#include "passes/fusion/half_precision_norms.h"
#include "passes/memory/in_place.h"
#include "passes/offload/copy_seconds.h"
#include "passes/offload/offload.h"
#include "passes/recompute/recompute_policy.h"
#include "passes/training/autocast.h"
#include "passes/training/autodiff.h"
#include "passes/training/fp8.h"
#include "passes/training/unshard.h"
#include "passes/training/weight_copies.h"

namespace plimsoll::passes {

/// Which passes run, and how. Every combination is legal and gives the same numbers.
struct PipelineOptions {
  bool common_subexpressions = true;
  bool dead_code = true;
  bool fuse_norms = true;
  bool fuse_activations = true;
  bool fuse_attention = true;
  bool fuse_head_loss = true;
  bool fuse_linear_adds = true;
  bool fuse_pointwise = true;
  bool fuse_quantize = true;
  bool fuse_norm_grads = true;
  bool fuse_embedding_grads = true;
  bool share_casts = false;      ///< products do not round operands as they read them (Target::rounds_apart)
  bool fuse_bias_grads = false;  ///< the device's products do it (Target::sums_beside_products)
  bool fuse_optimizer = true;
  bool optimizer_in_backward = false;  ///< each update where its gradient is complete; none is fused then
  /// Backward twice, for a norm and for the updates: before optimizer_in_backward, where something wants all
  /// gradients first.
  bool second_backward = false;
  bool recompute_cheap = true;
  bool half_precision_norms = true;
  bool schedule = true;
  bool chunked_update = true;
  bool in_place = true;

  bool grad = true;  ///< the program will be differentiated, so head and loss compute gradients as well
  std::vector<std::string> frozen = {};  ///< parameters' states that do not learn, see fuse_head_loss.h
  int64_t chunk_tokens = 256;  ///< tokens whose logits exist at once in head and loss; whole granules
  /// Generation: linear maps of at most so many rows become `linear_few`, which has bits of its own; 0: none.
  int64_t small_m = 0;
  ops::Precision precision = ops::Precision::kF32;  ///< what products run in, see autocast.h
  bool short_residual = false;
  RecomputePolicy recompute = {};
  /// Shown each differentiated program before anything is computed again.
  std::function<void(const RecomputeAnalysis&)> look_at_blocks = {};
  std::vector<PrecisionOverride> precision_overrides = {};
  Fp8Settings fp8 = {};
  WeightCopies weight_copies = WeightCopies::kOwn;
  Sharding sharding = {};       ///< states that ranks share, and ops read whole
  bool overlaps_ranks = false;  ///< ranks exchange early: see overlap_ranks.h
  OffloadOptions offload = {};  ///< what lies elsewhere than on the device
  /// Programs can be run op by op, each op twice: updates stay apart, as one op over all tensors would need
  /// all of the optimizer's states a second time.
  bool runs_twice = false;
  bool verify = true;  ///< each pass, and the hazards of what is to be run
  /// Scratch of an op's kernel, for schedule's reckoning; empty: none.
  std::function<int64_t(const ir::OpTypes&)> workspace_bytes = {};
  std::function<int64_t(const ir::OpTypes&)> host_workspace_bytes = {};  ///< where the host runs it
  /// For offload's reckoning; both or none.
  KernelSeconds kernel_seconds = {};
  CopySeconds copy_seconds = {};
  std::string dump_dir = {};  ///< where the text after each pass goes, NN-name.ir; empty: nowhere
};

enum class Phase { kForward, kDerivative, kTidy, kBackward, kSchedule, kExchange, kArrange };

/// What one pass did and cost.
struct PassTiming {
  std::string_view name;
  double ms = 0;         ///< of the pass alone
  double verify_ms = 0;  ///< of the verifier after it
  size_t num_ops = 0;    ///< after it
};

/// What passes of the pipeline hand to each other.
struct PassState {
  ir::Graph& graph;
  const PipelineOptions& options;
  std::vector<ir::ValueId> keep = {};  ///< values that outside holders need
  AutodiffOptions request = {};
  AutodiffReport derivative = {};
  ir::OpId last_forward_op = {};  ///< the op that gives the loss; backward stands after it
  InPlaceReport in_place = {};
  AutocastReport precision = {};
  Fp8Report fp8 = {};
  ShortNormsReport half_precision_norms = {};
  std::vector<RecomputeUnit> recomputed = {};
};

/// One line of the ordered list.
struct PassEntry {
  std::string_view name;
  Phase phase;
  std::string_view why;            ///< a sentence
  bool PipelineOptions::*enabled;  ///< null: always
  Status (*run)(PassState&);
};
/// The ordered list.
std::span<const PassEntry> pass_list();

/// How far a program has come along the list, and what later passes ask of it.
struct PipelineProgress {
  std::vector<PassTiming> timings = {};
  ir::OpId last_forward_op = {};
  AutocastReport precision = {};
  Fp8Report fp8 = {};
  std::vector<RecomputeUnit> recomputed = {};
  bool is_tidy = false, is_ordered = false, is_scheduled = false;
};

/// One program's way through the list.
class Pipeline {
 public:
  /// `progress`: that of a program which goes on from there.
  explicit Pipeline(PipelineOptions options, PipelineProgress progress = {})
      : options_(std::move(options)), progress_(std::move(progress)) {}

  /// Forward passes. `keep`: values needed later (the loss, what will be differentiated, outputs); each is
  /// replaced by what stands for it now. Errors: kIo where a dump cannot be written.
  Status forward(ir::Graph& graph, std::span<ir::ValueId> keep);
  /// Appends the backward ops; results as of `autodiff`.
  Result<AutodiffReport> differentiate(ir::Graph& graph, AutodiffOptions request);
  /// The first of the backward passes, on which nothing bears that a search tries: neither what is computed
  /// again nor where anything lies. backward does it where nobody did. After the caller has assigned to
  /// states what is to outlive the program. `keep` as in forward.
  Status tidy(ir::Graph& graph, std::span<ir::ValueId> keep = {});
  /// Backward passes.
  Status backward(ir::Graph& graph, std::span<ir::ValueId> keep = {});
  /// Backward passes, and the order of what one rank computes by itself: nothing so far depends on what other
  /// ranks hold, nor on when they exchange. backward and schedule do of that what nobody did.
  Status order(ir::Graph& graph);
  /// The order, which nothing behind changes. Arranging does it where nobody did.
  Status schedule(ir::Graph& graph);
  /// Order, copies and places. The aliases hold for the order that the graph then has.
  Result<InPlaceReport> arrange(ir::Graph& graph, std::span<ir::ValueId> keep = {});

  [[nodiscard]] const std::vector<PassTiming>& timings() const { return progress_.timings; }
  [[nodiscard]] const PipelineProgress& progress() const { return progress_; }
  [[nodiscard]] const PipelineOptions& options() const { return options_; }
  /// The op that gives the loss; invalid where there is none.
  [[nodiscard]] ir::OpId last_forward_op() const { return progress_.last_forward_op; }
  /// What each op of the forward graph runs in; empty where no pass has changed it. Complete behind backward.
  [[nodiscard]] const AutocastReport& precision() const { return progress_.precision; }
  /// Products in FP8 and those marked that are not. Complete behind tidy.
  [[nodiscard]] const Fp8Report& fp8() const { return progress_.fp8; }
  /// What `recompute` has come to. Complete behind backward.
  [[nodiscard]] const std::vector<RecomputeUnit>& recomputed() const { return progress_.recomputed; }

 private:
  Status run(Phase phase, PassState& state);
  Status run_one(const PassEntry& entry, PassState& state);
  Status dump(const PassEntry& entry, const ir::Graph& graph) const;
  void note_half_precision_norms(const ir::Graph& graph, const ShortNormsReport& report);
  Status run_keeping(Phase phase, PassState& state, std::span<ir::ValueId> keep);
  Status schedule_keeping(PassState& state, std::span<ir::ValueId> keep);

  PipelineOptions options_;
  PipelineProgress progress_;
};

}  // namespace plimsoll::passes
