// Parts of programs that many strategies of one run share, so that a search writes them once.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "passes/offload/offload.h"
#include "passes/pipeline.h"
#include "passes/program_id.h"
#include "planner/programs/finish_program.h"
#include "planner/recompute/recompute_chain.h"

namespace plimsoll::planner {

/// Which accumulators hold the gradient of a parameter: their sum, in order.
struct GradientStates {
  std::string parameter;
  std::vector<std::string> accumulators;
  bool operator==(const GradientStates&) const = default;
};

/// What the program of the update depends on.
struct UpdateKey {
  std::vector<GradientStates> gradients = {};
  passes::OffloadOptions offload = {};
  bool overlaps_ranks = false, gathers_late = false, sums_in_last = false;
  bool operator==(const UpdateKey&) const = default;
};

/// What the order of a rank's own ops depends on beside its beginning.
struct OrderKey {
  passes::RecomputePolicy recompute = {};
  passes::OffloadOptions offload = {};
  bool optimizer_in_backward = false, second_backward = false, finds_gains = false;
  bool operator==(const OrderKey&) const = default;
};

/// What the beginning of a training program depends on.
struct BeginningKey {
  passes::ProgramId id;
  int64_t micro_batch_size = 0, length = 0, chunk_tokens = 0;
  bool keeps_weight_copies = false;
  std::optional<OrderKey> order = {};  ///< with one the beginning goes on to Pipeline::order
  bool operator==(const BeginningKey&) const = default;
};

/// A training program up to the first pass that depends on what is recomputed and what is offloaded; or
/// further, up to the first that depends on what ranks share and when they exchange.
struct ProgramBeginning {
  BeginningKey key;
  ir::Graph graph;
  passes::PipelineProgress progress = {};
  std::vector<GradientStates> gradients = {};
  std::vector<LayerGain> gains = {};  ///< where the key's order finds them
};

/// Owned by whoever searches. Its programs belong to one run: they may differ in micro-batch and length, in
/// what is recomputed, in chunks, in what is offloaded, in where updates stand, in whether quantised
/// weights are kept and in when ranks exchange, and in nothing else.
class ProgramCache {
 public:
  /// A search goes from one micro-batch to the next, and each has two or three programs and a few sizes of
  /// chunks.
  static constexpr size_t kMostBeginnings = 4;

  /// Null where it has none. The pointer holds until the next add.
  [[nodiscard]] const ProgramBeginning* find_beginning(const BeginningKey& key) const;
  /// Drops the oldest where there are too many: of those with an order, and of those without.
  void add_beginning(ProgramBeginning beginning);
  [[nodiscard]] size_t num_beginnings() const { return beginnings_.size(); }
  [[nodiscard]] size_t num_ordered() const { return ordered_.size(); }

  /// The program of that update; null where it has none.
  [[nodiscard]] const BoundProgram* find_update(const UpdateKey& key) const;
  /// Replaces the one it had.
  void set_update(UpdateKey key, BoundProgram update);

 private:
  struct Update {
    UpdateKey key;
    BoundProgram program;
  };
  std::vector<ProgramBeginning> beginnings_, ordered_;  ///< the oldest first
  std::optional<Update> update_;
};

}  // namespace plimsoll::planner
