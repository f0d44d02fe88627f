#include "planner/programs/accumulation.h"

#include <algorithm>

#include "base/check.h"

namespace plimsoll::planner {

using passes::ProgramRole;

Accumulation planned(Accumulation accumulation, const passes::SessionPlan& session) {
  accumulation.sums_in_last = std::ranges::any_of(session.programs, [](const passes::Program& program) {
    return program.id.role == ProgramRole::kMicroLast;
  });
  return accumulation;
}

std::vector<ProgramRuns> runs_per_step(const Accumulation& accumulation, int64_t bucket) {
  const int64_t count = accumulation.num_micro_batches;
  PLIMSOLL_CHECK(count == 1 || accumulation.has_accumulators, "several micro-batches without accumulators");
  if (!accumulation.has_accumulators) return {{{ProgramRole::kStep, bucket}, 1}};
  std::vector<ProgramRuns> runs = {{{ProgramRole::kMicroFirst, bucket}, 1}};
  const int64_t last = accumulation.sums_in_last && count > 1 ? 1 : 0;
  if (count - last > 1) runs.push_back({{ProgramRole::kMicroNext, bucket}, count - 1 - last});
  if (last > 0) runs.push_back({{ProgramRole::kMicroLast, bucket}, last});
  runs.push_back({{ProgramRole::kUpdate}, 1});
  return runs;
}

int64_t times_per_step(ProgramRole role, const Accumulation& accumulation) {
  for (const ProgramRuns& run : runs_per_step(accumulation))
    if (run.id.role == role) return run.times;
  return 0;
}

ProgramRole costed_program(bool has_accumulators) {
  return has_accumulators ? ProgramRole::kMicroNext : ProgramRole::kStep;
}

int64_t bucket_of(int64_t length, std::span<const int64_t> buckets) {
  return buckets.size() < 2 ? 0 : length;
}

}  // namespace plimsoll::planner
