// training.global_batch_size: auto.
#pragma once

#include "analysis/sweep.h"

namespace plimsoll::analysis {

/// The throughput of batches of 1, 2, 4, … sequences at once, as far as they fit, and which of them is taken:
/// the least that is within a fiftieth of the fastest, because a larger batch trains otherwise and would buy
/// no more than that.
struct BatchChoice {
  Sweep curve;
  size_t chosen = 0;  ///< row
};

/// Errors: kDoesNotFit where a single sequence does not fit; as plan_sweep.
Result<BatchChoice> choose_batch(const strategy::Variants& variants);

/// {"event": "batches", "rows": as of a sweep, "chosen"}
io::Tree batches_event(const BatchChoice& choice);
/// For people: the curve, what is taken, and that it says nothing of how a model trains.
std::string batches_table(const BatchChoice& choice);

}  // namespace plimsoll::analysis
