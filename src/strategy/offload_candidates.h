// Strategies that the search for what to offload compares: which classes of tensors, of how many layers, in
// which memory, with how much room for early copies.
#pragma once

#include <array>
#include <limits>
#include <span>
#include <vector>

#include "strategy/plan_strategy.h"

namespace plimsoll::strategy {

/// Memories that tensors may be offloaded to, the fastest to reach first, and how a step is split.
struct OffloadChoices {
  std::vector<ir::MemorySpace> places = {};
  std::vector<settings::BatchSplit> splits =
      {};                      ///< the largest micro-batch first; the search takes four of them at most
  bool may_recompute = false;  ///< every layer, and the smallest chunks of the loss
  bool in_backward = false;    ///< the updates
  int32_t num_blocks = 0;      ///< of the model
  /// A step that takes as long or longer by the estimate is not wanted; infinite: whatever fits is.
  double most_seconds = std::numeric_limits<double>::infinity();
};

/// What the settings leave to the planner; without places: nothing.
OffloadChoices offload_choices(const RunScope& scope, std::vector<settings::BatchSplit> splits);

/// By class, the memory of what is offloaded of it.
using OffloadAssignment = std::array<ir::MemorySpace, passes::kNumOffloadClasses>;
/// All classes in one memory, the fastest first; where there are two, next all in the first but what moves
/// least, which is in the second.
std::vector<OffloadAssignment> offload_assignments(const std::vector<ir::MemorySpace>& places);

/// Classes that are offloaded together: master weights go with the optimizer's states.
using OffloadGroup = std::vector<passes::OffloadClass>;
/// Orders in which groups are offloaded. What moves once a step comes first, then what moves with each
/// micro-batch: gradients move out and in, parameters only in, but twice; which waits least depends on the
/// run.
const std::array<std::vector<OffloadGroup>, 2>& offload_orders();

/// Part of the peak that copies ahead and behind may add (OffloadOptions::slack_part), and none.
inline constexpr int64_t kSomeSlack = 8, kNoSlack = 0, kOnDemand = -1;

class OffloadCandidates {
 public:
  /// `choices` outlives it.
  explicit OffloadCandidates(const OffloadChoices& choices) : choices_(choices) {}

  /// With nothing offloaded yet; `recompute_all`: every layer, and the smallest chunks.
  [[nodiscard]] Strategy resident(const settings::BatchSplit& split, bool recompute_all, int64_t slack) const;
  /// With all offloaded that there is.
  [[nodiscard]] Strategy with_all(Strategy strategy, const OffloadAssignment& assignment) const;
  /// With `count` of the steps of num_steps(order): of each group a block a step, then the rest of it.
  [[nodiscard]] Strategy with_steps(Strategy strategy, std::span<const OffloadGroup> order,
                                    const OffloadAssignment& assignment, int32_t count) const;
  [[nodiscard]] int32_t num_steps(std::span<const OffloadGroup> order) const {
    return static_cast<int32_t>(order.size()) * (choices_.num_blocks + 1);
  }
  /// More blocks of classes that are offloaded in part, twice as many with each `attempt`; where there is no
  /// such class, less room for copies. False: there is nothing more.
  [[nodiscard]] bool offload_more(Strategy& strategy, int attempt) const;
  /// Without recomputation, then with it where it is left to the planner.
  [[nodiscard]] std::vector<bool> recomputations() const;

 private:
  const OffloadChoices& choices_;
};

}  // namespace plimsoll::strategy
