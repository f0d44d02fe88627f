// The programs that one training step runs, and how often each: the one place that says what a number of
// micro-batches makes of a step.
//
//   one micro-batch, no accumulators   step
//   otherwise                          micro_first, micro_next × (micro-batches − 1), update
//   where ranks sum in the last one    micro_first, micro_next × (micro-batches − 2), micro_last, update
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "passes/program_id.h"
#include "passes/session_plan.h"

namespace plimsoll::planner {

/// How a step computes its gradients.
struct Accumulation {
  int64_t num_micro_batches = 1;
  bool has_accumulators = false;  ///< always with several micro-batches; with one for a dump of gradients
  /// Ranks sum gradients in backward of the last of several micro-batches, instead of in the update.
  bool sums_in_last = false;
};

/// A program and how often a step runs it.
struct ProgramRuns {
  passes::ProgramId id;
  int64_t times = 1;
  bool operator==(const ProgramRuns&) const = default;
};

/// The same, with what the session's programs say of it.
Accumulation planned(Accumulation accumulation, const passes::SessionPlan& session);

/// The programs of one step on sequences of `bucket`, in the order in which they run. A program that no
/// micro-batch is left for is not among them.
std::vector<ProgramRuns> runs_per_step(const Accumulation& accumulation, int64_t bucket = 0);

/// How often a step runs that program, whatever its bucket; 0 where it does not.
int64_t times_per_step(passes::ProgramRole role, const Accumulation& accumulation);

/// The program whose cost stands for that of each micro-batch: with accumulators the one that adds to them,
/// which reads more memory than the first and runs oftener.
passes::ProgramRole costed_program(bool has_accumulators);

/// The bucket in a program's id, for sequences of `length`: 0 where `buckets` has one length or none.
int64_t bucket_of(int64_t length, std::span<const int64_t> buckets);

}  // namespace plimsoll::planner
