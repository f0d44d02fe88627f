// The search for what a rank does with memory that a plan leaves it: it exchanges bytes with other ranks
// while it computes, and keeps what it has gathered for longer.
#pragma once

#include "strategy/cached_planner.h"

namespace plimsoll::strategy {

/// Whether a search looks for plans whose ranks exchange beside their kernels: not where the processor that
/// computes moves the bytes itself, which gains nothing, nor where only whether a plan fits is asked.
bool may_overlap(const RunScope& scope);
/// Of the best plan whose ranks exchange beside their kernels: whether one without may take less time, as it
/// has memory for layers that this one recomputes.
bool may_lose_by_overlap(const PlannedStep& overlapped);

/// `best`, or a plan within the budgets that takes less time by the estimate: ranks exchange beside their
/// kernels where that is worth its memory, and parameters that they share (ZeRO-3) stay gathered from forward
/// to backward, of the last layers first, for which layers that are recomputed may give way or come. Changes
/// no bit. A run of one rank is what it was.
PlannedStep with_rank_exchanges(const RunScope& scope, CachedPlanner& planner, PlannedStep best);

}  // namespace plimsoll::strategy
