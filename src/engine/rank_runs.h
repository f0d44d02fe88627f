// Starts and ends the ranks of a run together. Rank 0 prepares everything - data, weights, the checkpoint
// to resume from - and then calls the other ranks, which read the results and plan with the same figures.
#pragma once

#include <functional>
#include <string>

#include "engine/engine.h"

namespace plimsoll::engine {

/// Options of a plan: the memory of the machine in equal parts where several ranks share it.
strategy::PrepareOptions planning_of(const settings::RunConfig& config, const std::string& dump_ir,
                                     const ranks::Group* group);
/// As strategy::with_rank_mode, for the run's target. The same on all ranks, which plan by one memory.
Result<settings::RunConfig> with_rank_mode(const settings::RunConfig& config,
                                           const strategy::PrepareOptions& options,
                                           const std::function<void(const std::string&)>& note);
/// Null for one rank.
runtime::Communicator* communicator_of(ranks::Group* group);

/// On rank 0, behind make_ready. Errors: kIo.
Status begin_ranks(ranks::Group* group, const planner::PlanReport& report);
/// On rank 0: tells the others what to resume from, and by which memory to plan; nothing is left to do where
/// the run was finished. Errors: as ranks::Group::share.
Status call_others(ranks::Group& group, const training::Trainer& trainer, const MachineMemory& memory);
/// All of a run on a rank other than the first. Errors: as Engine::train.
Status follow_first(const settings::RunConfig& config, const TrainOptions& options, const Stop& stop);

/// Tells the other ranks how this one has ended. What it is to return for its process.
Status tell_ranks(ranks::Group& group, Status ended);

}  // namespace plimsoll::engine
