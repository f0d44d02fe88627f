#include "telemetry/memory_summary.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "planner/report/memory_timeline.h"

namespace plimsoll::telemetry {
namespace {

using planner::ClassBytes;

/// The phase that a program belongs to.
std::string phase_of(passes::ProgramRole role) {
  if (passes::draws_parameters(role)) return "start";
  return role == passes::ProgramRole::kEval ? "eval" : "step";
}

/// What is alive at the op of the programs of those phases at which most is.
ClassBytes highest(const passes::SessionPlan& session, const std::vector<std::string>& phases) {
  ClassBytes most{};
  for (size_t p = 0; p < session.programs.size(); ++p) {
    if (std::ranges::find(phases, phase_of(session.programs[p].id.role)) == phases.end()) continue;
    const planner::MemoryTimeline timeline = planner::memory_timeline(session, p);
    if (!timeline.points.empty() && timeline.at_peak().total_bytes > planner::total(most))
      most = timeline.at_peak().bytes;
  }
  return most;
}

/// Between programs: the states.
ClassBytes resting(const passes::SessionPlan& session) {
  ClassBytes bytes{};
  for (const passes::SessionState& s : session.states)
    if (s.decl.space == ir::MemorySpace::kDevice)
      bytes[static_cast<size_t>(planner::class_of(s.decl))] += s.decl.type.bytes().count;
  bytes[static_cast<size_t>(planner::MemoryClass::kPadding)] +=
      session.device().persistent - planner::total(bytes);
  return bytes;
}

int64_t planned_of(const planner::PlanReport& plan, std::string_view name) {
  const auto it = std::ranges::find(plan.classes, name, [](const auto& c) { return c.first; });
  return it == plan.classes.end() ? 0 : it->second;
}

std::string line(const MemoryFigures& f) {
  const auto text = [](int64_t bytes) { return to_string(Bytes(bytes)); };
  return fmt::format("  {:<22}{:>13}{:>13}{:>13}{:>13}\n", f.name, text(f.planned_bytes), text(f.now_bytes),
                     text(f.recent_bytes), text(f.peak_bytes));
}

io::Tree figures(const MemoryFigures& f) {
  return io::Tree::map({{"planned_bytes", io::Tree::of(f.planned_bytes)},
                        {"now_bytes", io::Tree::of(f.now_bytes)},
                        {"recent_peak_bytes", io::Tree::of(f.recent_bytes)},
                        {"peak_bytes", io::Tree::of(f.peak_bytes)}});
}

io::Tree by_name(const std::vector<MemoryFigures>& all) {
  io::Tree map = io::Tree::map();
  for (const MemoryFigures& f : all) map.set(f.name, figures(f));
  return map;
}

}  // namespace

MemorySummary memory_summary(const passes::SessionPlan& session, const planner::PlanReport& plan,
                             const PhasesRun& ran, const MeasuredMemory& measured) {
  MemorySummary s;
  const ClassBytes now = resting(session), recent = highest(session, ran.recent),
                   peak = highest(session, ran.all);
  for (size_t c = 0; c < planner::kNumMemoryClasses; ++c) {
    const std::string_view class_name = planner::name(static_cast<planner::MemoryClass>(c));
    MemoryFigures f{std::string(class_name), planned_of(plan, class_name), now[c],
                    std::max(recent[c], now[c]), std::max(peak[c], now[c])};
    if (f.planned_bytes > 0 || f.peak_bytes > 0) s.classes.push_back(std::move(f));
  }
  for (const planner::PoolReport& pool : plan.pools) {
    if (pool.peak_bytes() == 0) continue;
    const bool is_device = pool.name == ir::name(ir::MemorySpace::kDevice);
    const int64_t taken =
        is_device && measured.device_peak_bytes > 0 ? measured.device_peak_bytes : pool.peak_bytes();
    s.pools.push_back({pool.name, pool.peak_bytes(), taken, taken, taken});
  }
  s.process = {"process", plan.process_peak_bytes(), measured.resident_bytes, measured.recent_bytes,
               measured.peak_bytes};
  return s;
}

std::string memory_table(const MemorySummary& s) {
  const auto head = [&](std::string_view title) {
    return fmt::format("  {:<22}{:>13}{:>13}{:>13}{:>13}\n", title, "planned", "now",
                       fmt::format("from step {}", s.since_step + 1), "peak");
  };
  std::string out = fmt::format("\nMemory after step {}\n{}", s.step, head("class"));
  for (const MemoryFigures& f : s.classes) out += line(f);
  out += head("pool");
  for (const MemoryFigures& f : s.pools) out += line(f);
  out += line(s.process);
  if (s.phases.empty()) return out;
  out += "  process by phase";
  for (const auto& [name, bytes] : s.phases) out += fmt::format("  {} {}", name, to_string(Bytes(bytes)));
  return out + "\n";
}

io::Tree memory_event(const MemorySummary& s) {
  io::Tree phases = io::Tree::map();
  for (const auto& [name, bytes] : s.phases) phases.set(name, io::Tree::of(bytes));
  return io::Tree::map({{"event", io::Tree::of(std::string("memory"))},
                        {"step", io::Tree::of(s.step)},
                        {"since_step", io::Tree::of(s.since_step)},
                        {"classes", by_name(s.classes)},
                        {"pools", by_name(s.pools)},
                        {"process", figures(s.process)},
                        {"phase_peak_bytes", std::move(phases)}});
}

}  // namespace plimsoll::telemetry
