// The rates that a plan was made by, with the target that they ask.
#pragma once

#include <memory>
#include <utility>

#include "planner/cost/cost_model.h"
#include "runtime/target.h"

namespace plimsoll::engine {

/// The same rates, which hold `target` as long as somebody holds them.
inline std::shared_ptr<const planner::CostModel> owning(std::shared_ptr<const planner::CostModel> costs,
                                                        std::unique_ptr<runtime::Target> target) {
  struct Both {
    std::shared_ptr<const planner::CostModel> costs;
    std::unique_ptr<runtime::Target> target;
  };
  const auto both = std::make_shared<const Both>(Both{std::move(costs), std::move(target)});
  return {both, both->costs.get()};
}

}  // namespace plimsoll::engine
