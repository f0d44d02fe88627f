// distributed.mode: auto. What ranks share of the training state, where the budget of a rank leaves no room
// for all of it.
#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "settings/run_config.h"
#include "strategy/prepare.h"

namespace plimsoll::strategy {

/// The run with the first of ddp, zero1, zero2 and zero3 that fits, or with that which needs least memory
/// where none does. All of them give the same bits, so zero2 and zero3 are tried where a step is one
/// micro-batch alone. `note` is told what was chosen in place of ddp. A run that says its mode, has one rank
/// or does not train is what it was. Errors: as prepare.
Result<settings::RunConfig> with_rank_mode(const settings::RunConfig& config, const runtime::Target& target,
                                           PrepareOptions options,
                                           const std::function<void(const std::string&)>& note);

}  // namespace plimsoll::strategy
