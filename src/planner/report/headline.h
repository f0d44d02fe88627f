// The first line of a plan's report: whether it fits, its peak, how fast, how long; and where it does not
// fit, what would.
#pragma once

#include <cstdint>
#include <string>

#include "io/tree.h"
#include "planner/report/report.h"

namespace plimsoll::planner {

/// "Fits: peak 104.1 MiB of 128.0 MiB, about 12,234 tokens/s, 60s for 720 steps, 9.77 MiB of disk"; beside a
/// card "Fits: 20.6 GiB of the card's 22.5 GiB, 3.10 GiB of the host's 23.5 GiB, with …": the first line of a
/// plan, each pool with its budget and what is offloaded.
std::string headline(const PlanReport& report);
/// "needs 38.4 GiB of the card's 21.9 GiB (16.5 GiB too much)": each pool that is too small; nothing where
/// all fits.
std::string excess_text(const PlanReport& report);
/// Why a plan does not fit, in a sentence that names the pool and what takes most of it, with a line's end.
std::string why_not(const PlanReport& report);
/// The layers that are computed again, the first of them by name; nothing where there are none.
std::string recompute_line(const PlanReport& report);
/// Whether the optimizer's updates stand in backward, and if not, why; nothing where nothing is trained.
std::string optimizer_in_backward_line(const PlanReport& report);
/// Of how many layers the parameters stay gathered (ZeRO-3); nothing where of none.
std::string gathered_line(const PlanReport& report);
/// A line a remedy, with what each comes to; nothing where there are none.
std::string remedy_lines(const PlanReport& report);
io::Tree remedies_event(const PlanReport& report);
/// Verdict, model and batch, remedies: what a run says before it begins. Three lines where it fits.
std::string short_plan(const PlanReport& report);

}  // namespace plimsoll::planner
