#include "cli/explain/explain_memory.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/end_of.h"
#include "base/numbers.h"
#include "base/units.h"
#include "cli/profile/timeline_chart.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "io/file.h"
#include "io/tree.h"
#include "planner/report/timeline_columns.h"
#include "planner/report/timeline_svg.h"

namespace plimsoll::cli {
namespace {

using enum Table::Align;
using planner::MemoryFormula;
using planner::MemoryTimeline;

constexpr size_t kTensors = 10;

std::string bytes_text(int64_t bytes) {
  return bytes < 0 ? "-" + to_string(Bytes(-bytes)) : to_string(Bytes(bytes));
}

std::string tensors(const MemoryTimeline& timeline) {
  Table table({{"  largest tensors there"}, {"type"}, {""}, {"bytes", kRight}, {"ops", kRight}});
  for (size_t i = 0; i < std::min(kTensors, timeline.alive.size()); ++i) {
    const planner::TimelineTensor& t = timeline.alive[i];
    table.add({"  " + end_of(t.name, 33), end_of(t.type, 17), std::string(1, letter_of(t.memory_class)),
               bytes_text(t.bytes), t.first < 0 ? "always" : fmt::format("{}-{}", t.first, t.last)});
  }
  std::string out = table.text();
  if (timeline.alive.size() <= kTensors) return out;
  int64_t rest = 0;
  for (size_t i = kTensors; i < timeline.alive.size(); ++i) rest += timeline.alive[i].bytes;
  return out + fmt::format("  and {} more of {} together\n",
                           grouped(static_cast<int64_t>(timeline.alive.size() - kTensors)), bytes_text(rest));
}

std::string phases(const MemoryTimeline& timeline) {
  Table table({{"  phase"}, {"program"}, {"ops", kRight}, {"peak", kRight}, {"at op"}});
  for (const planner::TimelinePhase& p : timeline.phases)
    table.add({fmt::format("  {}", name(p.phase)), p.program, grouped(p.num_ops),
               bytes_text(p.peak.total_bytes),
               fmt::format("{} {}", p.peak.position, end_of(place_of(p.peak), 36))});
  return table.text();
}

/// "134,515,008 x 4 bytes"
std::string product(const MemoryFormula::Term& term, const std::string& factor = "") {
  const double each =
      term.values == 0 ? 0 : static_cast<double>(term.bytes) / static_cast<double>(term.values);
  return fmt::format("{}{} x {:.3g} bytes", factor, grouped(term.values), each);
}

std::string formula_table(const MemoryFormula& f) {
  Table table({{""}, {""}, {"", kRight}});
  const int64_t b = std::max<int64_t>(1, f.sequences);
  table.add({"  P x D_param", product(f.parameters), bytes_text(f.parameters.bytes)});
  table.add({"  B x A x D_act",
             product({f.activations.values / b, f.activations.bytes / b}, fmt::format("{} x ", b)),
             bytes_text(f.activations.bytes)});
  table.add({"  O x D_opt", product(f.optimizer_state), bytes_text(f.optimizer_state.bytes)});
  table.add({"  the formula", "", bytes_text(f.bytes())});
  for (const auto& [label, bytes] : f.left_out)
    table.add({"  + " + label, label == "activations" ? "those at the peak less those kept by forward" : "",
               bytes_text(bytes)});
  table.add({"  the plan", grouped(f.plan_bytes) + " bytes", bytes_text(f.plan_bytes)});
  return table.text();
}

}  // namespace

std::vector<std::pair<std::string, int64_t>> bytes_beside(const planner::PlanReport& r) {
  if (!r.device_is_process) return {};
  return {{"host staging", r.host_pinned_bytes},
          {"host buffers", r.host_pageable_bytes},
          {"process", r.overhead_bytes}};
}

MemoryExplanation::MemoryExplanation(const strategy::Prepared& prepared)
    : model_(prepared.report.model),
      timeline_(planner::memory_timeline(prepared.programs.session,
                                         planner::peak_program(prepared.programs.session))),
      formula_(planner::memory_formula(prepared.programs.session, timeline_, prepared.split.micro_batch_size,
                                       bytes_beside(prepared.report))) {}

Status MemoryExplanation::write_svg(const std::string& path) const {
  return io::write_file_atomically(
      path, timeline_svg(timeline_, fmt::format("{}: bytes alive while {} runs", model_, timeline_.program)));
}

std::string MemoryExplanation::text(int columns) const {
  if (timeline_.points.empty()) return "Nothing runs on the device.\n";
  const planner::TimelinePoint& peak = timeline_.at_peak();
  std::string out = fmt::format("Memory while {} runs, by class\n\n", timeline_.program);
  out += timeline_chart(timeline_, columns) + "\n" + timeline_legend(timeline_);
  out += fmt::format("\nPeak: {} bytes of states and arena, in {},\n      at op {}, {}\n",
                     grouped(peak.total_bytes), name(peak.phase), peak.position, place_of(peak));
  out += tensors(timeline_) + "\n" + phases(timeline_);
  return out + "\nThe formula M = P x D_param + B x A x D_act + O x D_opt compared with the plan\n" +
         formula_table(formula_);
}

void MemoryExplanation::print(bool json) const {
  if (json) {
    std::puts(io::to_json(timeline_event(timeline_, formula_)).c_str());
    return;
  }
  const int columns = terminal_columns(STDOUT_FILENO);
  print_text("\n" + text(columns == 0 ? 80 : std::min(columns, 120)));
}

}  // namespace plimsoll::cli
