// The loop of a rank other than the first: it computes its share of each step and does what rank 0 decides.
#pragma once

#include "base/stop.h"
#include "training/roll_call.h"
#include "training/trainer.h"

namespace plimsoll::training {

/// Steps until rank 0 has finished, or stops: kInterrupted then, which rank 0 reports (ranks::is_told).
/// `stop` is asked after each step and told to rank 0. Errors: as Trainer::step; of the other ranks.
Status follow(Trainer& trainer, RollCall& roll_call, const Stop& stop);

}  // namespace plimsoll::training
