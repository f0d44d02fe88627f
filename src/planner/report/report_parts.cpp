#include "planner/report/report_parts.h"

#include <fmt/format.h>

namespace plimsoll::planner {
namespace {

/// What bounds most of a part's time.
std::string_view bound_by(const StepSeconds& seconds, size_t part) {
  if (static_cast<Part>(part) == Part::kCopies) return "link";
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
      out += fmt::format("  {:<18}{:>10.3g} s{:>6.0f} %  bound by {}\n", name(static_cast<Part>(i)),
                         seconds.parts[i], 100 * seconds.parts[i] / seconds.total(), bound_by(seconds, i));
  return out;
}

std::string rates_text(const PlanReport& report) {
  if (report.rates == "measured") return "rates from a 3 s test of this machine";
  if (report.rates == "uncalibrated") return "built-in rates, within a factor of 2";
  if (report.rates != "data sheet") return report.rates + " rates";
  return "data sheet rates times an efficiency per kind of op, measured on an H100, but expected for "
         "attention in 16 bits";
}

}  // namespace plimsoll::planner
