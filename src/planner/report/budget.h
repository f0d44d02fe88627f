// The budgets of a plan, and the errors for plans that exceed them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "planner/report/report.h"

namespace plimsoll::planner {

/// Settings of budgets that are no settings: the card that runtime.profile names, and the one that is here.
inline constexpr const char* kCardOfProfile = "runtime.profile";
inline constexpr const char* kCardHere = "memory of the card";

int64_t bounded_bytes(const PlanReport& report, Bounded bounded);
/// "the card", "the host", "the disk": whose memory a budget bounds; beside a card the process's is the
/// host's.
std::string_view pool_name(const PlanReport& report, Bounded bounded);

/// The first budget that the plan exceeds; null where it fits.
const Budget* exceeded(const PlanReport& report, std::span<const Budget> budgets);

/// By how much the plan exceeds the budget that it exceeds most; negative: what is left of the tightest.
int64_t excess_bytes(const PlanReport& report);

/// What fits before what does not, then what is faster, or exceeds less.
bool is_better(const PlanReport& a, const PlanReport& b);

/// Of each pool the first budget that the plan exceeds, what lacks most first.
std::vector<const Budget*> all_exceeded(const PlanReport& report);

/// Exit 69: what is needed against what there is, and the least budget, to the byte, that would do, for each
/// pool that lacks memory. `what` needs it ("the plan"); `advice`, where there is any, says what would need
/// less.
Error does_not_fit(const PlanReport& report, std::string_view what, std::string_view advice = {});

}  // namespace plimsoll::planner
