// memory.offload: auto. What lies elsewhere than on the device where a run fits in no other way.
#pragma once

#include <functional>
#include <vector>

#include "train/plan_way.h"

namespace plimsoll::train {

/// A way to run a step with something elsewhere.
struct OffloadCandidate {
  Tree offload = {};  ///< as memory.offload takes it
  BatchSplit split = {};
  bool thrifty = false;    ///< every layer computed again, least chunks of the loss, copies take no room
  bool on_demand = false;  ///< and none is early or late
};

/// In the order to try: what moves less before what moves more, the host's memory before the disk; then the
/// larger micro-batch, at most four sizes of `splits`; then what computes less again. Does not depend on a
/// budget, so that the least one that is named fits, and a byte less does not. Empty: what is offloaded is
/// not the planner's to say, or any plan that does not fit will do (options.finds_least).
std::vector<OffloadCandidate> offload_candidates(const RunConfig& config, const PrepareOptions& options,
                                                 const std::vector<BatchSplit>& splits);

using PlanOffload = std::function<Result<Planned>(const OffloadCandidate& candidate)>;

/// `without` where it fits; else the plan of the first candidate that does; else, of all, the one that needs
/// least. What cannot be planned does not fit.
Result<Planned> choose_offload(Planned without, const std::vector<OffloadCandidate>& candidates,
                               const PlanOffload& plan);

}  // namespace plimsoll::train
