#include "planner/report/report_parts.h"

#include <fmt/format.h>

#include "base/units.h"

namespace plimsoll::planner {
namespace {

/// As a table says it, which says of each part by itself what bounds it.
std::string_view title(Part part) { return part == Part::kMemory ? "norms and other ops" : name(part); }

/// What bounds most of a part's time.
std::string_view bound_by(const StepSeconds& seconds, size_t part) {
  if (static_cast<Part>(part) == Part::kCopies) return "link";
  if (static_cast<Part>(part) == Part::kNetwork) return "network";
  return seconds.by_memory[part] > 0.5 * seconds.parts[part] ? "memory" : "arithmetic";
}

}  // namespace

io::Tree parts_event(const StepSeconds& seconds) {
  io::Tree parts = io::Tree::map();
  for (size_t i = 0; i < kNumParts; ++i)
    if (seconds.parts[i] > 0)
      parts.set(name(static_cast<Part>(i)),
                io::Tree::map({{"seconds", io::Tree::of(seconds.parts[i])},
                               {"bound_by", io::Tree::of(std::string(bound_by(seconds, i)))}}));
  return parts;
}

std::string parts_lines(const StepSeconds& seconds) {
  std::string out;
  for (size_t i = 0; i < kNumParts; ++i)
    if (seconds.parts[i] > 0)
      out += fmt::format("  {:<20}{:>10.3g} s{:>6.0f} %  bound by {}\n", title(static_cast<Part>(i)),
                         seconds.parts[i], 100 * seconds.parts[i] / seconds.total(), bound_by(seconds, i));
  return out;
}

double exposed_seconds(const PlanReport& r) { return r.parts.parts[static_cast<size_t>(Part::kNetwork)]; }
double hidden_seconds(const PlanReport& r) { return r.parts.hidden; }

io::Tree network_event(const PlanReport& r) {
  return io::Tree::map({{"bytes", io::Tree::of(static_cast<int64_t>(r.network_bytes))},
                        {"exposed_seconds", r.has_time() ? io::Tree::of(exposed_seconds(r)) : io::Tree{}},
                        {"hidden_seconds", r.has_time() ? io::Tree::of(hidden_seconds(r)) : io::Tree{}},
                        {"described", io::Tree::of(r.network_described)}});
}

std::string network_line(const PlanReport& r) {
  if (r.ranks == 1) return {};
  std::string out = fmt::format("Communication: each rank sends and receives {} per step",
                                to_string(Bytes(static_cast<int64_t>(r.network_bytes))));
  if (r.has_time())
    out += fmt::format(", {:.3g} s not overlapped with computation{}\n  by {}, which is not a prediction",
                       exposed_seconds(r),
                       hidden_seconds(r) > 0.01 * exposed_seconds(r)
                           ? fmt::format(", {:.3g} s overlapped", hidden_seconds(r))
                           : "",
                       r.network_described ? "the network of distributed.topology"
                                           : "the memory of one machine (describe the network in "
                                             "distributed.topology)");
  return out + "\n";
}

std::string rates_text(const PlanReport& report) {
  if (report.rates == "measured") return "rates from a 3 s test of this machine";
  if (report.rates == "uncalibrated") return "built-in rates, within a factor of 2";
  if (report.rates != "data sheet") return report.rates + " rates";
  return "data sheet rates times an efficiency per kind of op, measured on an H100, but expected for "
         "attention in 16 bits";
}

}  // namespace plimsoll::planner
