// Compares measured memory per op with the plan.
#include <algorithm>

#include "profiling/profile.h"

namespace plimsoll::profiling {

planner::MemoryTimeline measured_timeline(const Profile& profile, const passes::SessionPlan& session,
                                          int64_t beside_bytes) {
  std::vector<bool> ran(session.programs.size());
  for (const ProfiledStep& step : profile.steps)
    for (const OpRun& run : step.ops) ran[profile.facts[run.op].program] = true;
  size_t program = planner::peak_program(session);
  int64_t most = -1;
  for (size_t p = 0; p < ran.size(); ++p)
    if (const int64_t arena = session.programs[p].plan.device().arena_bytes; ran[p] && arena > most) {
      most = arena;
      program = p;
    }
  std::vector<int64_t> measured(session.programs[program].graph.order().size());
  for (const ProfiledStep& step : profile.steps)
    for (const OpRun& run : step.ops) {
      const OpFacts& f = profile.facts[run.op];
      if (f.program != program) continue;
      int64_t& bytes = measured[static_cast<size_t>(f.position)];
      bytes = std::max(bytes, run.measured_bytes);
    }
  planner::MemoryTimeline timeline = planner::memory_timeline(session, program);
  timeline.measured.beside_bytes = beside_bytes;
  for (const planner::TimelinePoint& point : timeline.points)
    timeline.measured.bytes.push_back(measured[static_cast<size_t>(point.position)]);
  return timeline;
}

}  // namespace plimsoll::profiling
