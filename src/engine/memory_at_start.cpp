#include "engine/memory_at_start.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/remedies.h"
#include "base/process_memory.h"
#include "base/units.h"

namespace plimsoll::engine {
namespace {

constexpr int64_t kStackBytes = int64_t{8} << 20;  // of a thread's address space, Linux's usual
constexpr int64_t kHelpers = 4;                    // that read ahead and save, and room for the allocator

/// What a session asks the system for; the rest of the plan is the process's own.
int64_t block_bytes(const planner::PlanReport& report) {
  return report.persistent_bytes + report.arena_bytes + report.host_pinned_bytes;
}

}  // namespace

MemoryNow memory_now(const planner::PlanReport& report) {
  const MachineMemory memory = read_machine_memory();
  // Threads reserve stacks of which they touch little.
  const int64_t stacks = (report.threads + kHelpers) * kStackBytes, blocks = block_bytes(report);
  const int64_t reservable = reservable_bytes(blocks + stacks) - stacks;
  MemoryNow now{resident_bytes(), memory.available_bytes, memory.limited_by};
  if (reservable < blocks && reservable < now.left_bytes)
    now = {now.held_bytes, std::max<int64_t>(0, reservable), "this process may not reserve more (ulimit -v)"};
  return now;
}

Status check_memory_at_start(const settings::RunConfig& config, const runtime::Target& target,
                             const strategy::PrepareOptions& planning, const MemoryNow& now,
                             strategy::Prepared& prepared, telemetry::Events& events) {
  if (block_bytes(prepared.report) <= now.left_bytes) return Ok{};
  const int64_t needed = prepared.report.process_peak_bytes();
  prepared.programs = {};  // two plans at once would take what is short
  analysis::add_remedies_within(now.held_bytes + now.left_bytes, config, target, planning, prepared);
  events.plan(prepared.report, telemetry::PlanDetail::kShort);
  const auto& remedies = prepared.report.remedies;
  return Error{
      ErrorCode::kDoesNotFit,
      fmt::format("the plan needs {}, this process has {} and only {} are left now", to_string(Bytes(needed)),
                  to_string(Bytes(now.held_bytes)), to_string(Bytes(now.left_bytes))),
      now.limited_by.empty() ? "this machine" : now.limited_by,
      remedies.empty() ? "free memory on this machine" : "free memory, or set " + remedies.front().text()};
}

}  // namespace plimsoll::engine
