// The memory table of a running run: planned, now, at most since the last table, at most of the run.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "io/tree.h"
#include "passes/session_plan.h"
#include "planner/report/report.h"

namespace plimsoll::telemetry {

struct MemoryFigures {
  std::string name;
  int64_t planned_bytes = 0, now_bytes = 0;
  int64_t recent_bytes = 0;  ///< at most since the last reset
  int64_t peak_bytes = 0;    ///< at most since the run began
};

/// Phases of a run whose programs have run: "start", "step", "eval".
struct PhasesRun {
  std::vector<std::string> recent, all;
};

/// Process and device as measured; the rest follows from the plan and from what has run, as nothing is taken
/// outside it.
struct MeasuredMemory {
  int64_t resident_bytes = 0, recent_bytes = 0, peak_bytes = 0;  ///< of the process
  int64_t device_peak_bytes = 0;                                 ///< of its own memory; 0: it has none
};

struct MemorySummary {
  int64_t step = 0, since_step = 0;    ///< of the last reset
  std::vector<MemoryFigures> classes;  ///< of the device; peaks are those of the op at which most was alive
  std::vector<MemoryFigures> pools;    ///< memory spaces; what is taken at the start stays
  MemoryFigures process;               ///< as the kernel shows it
  std::vector<std::pair<std::string, int64_t>> phases;  ///< of the process, measured at most
};

/// At the end of a step: nothing of the arena is alive.
MemorySummary memory_summary(const passes::SessionPlan& session, const planner::PlanReport& plan,
                             const PhasesRun& ran, const MeasuredMemory& measured);

/// Lines of at most 80 columns.
std::string memory_table(const MemorySummary& summary);
/// {"event": "memory", …}.
io::Tree memory_event(const MemorySummary& summary);

}  // namespace plimsoll::telemetry
