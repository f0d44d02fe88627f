// Computes the share of the steps' wall time that trace events cover and use.
#include <algorithm>

#include "profiling/profile.h"

namespace plimsoll::profiling {
namespace {

struct Interval {
  double begin = 0, end = 0;
};

/// Length of the union, within a step.
double covered(std::vector<Interval> intervals, const ProfiledStep& step) {
  std::sort(intervals.begin(), intervals.end(),
            [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
  double sum = 0, reached = step.start;
  for (const Interval& i : intervals) {
    const double begin = std::max(i.begin, reached), end = std::min(i.end, step.start + step.seconds);
    if (end <= begin) continue;
    sum += end - begin;
    reached = end;
  }
  return sum;
}

/// Adds parts in the order in which they are first met; what an earlier one covers is not counted again.
class Parts {
 public:
  void begin(const ProfiledStep& step) { step_ = &step, covered_.clear(), sum_ = 0; }
  void add(const std::string& name, const std::vector<Interval>& intervals) {
    covered_.insert(covered_.end(), intervals.begin(), intervals.end());
    const double now = covered(covered_, *step_);
    seconds_of(name) += now - sum_;
    sum_ = now;
  }
  void end() { unnamed_ += step_->seconds - sum_; }
  std::vector<std::pair<std::string, double>> of(size_t steps) {
    parts_.emplace_back("in no event", unnamed_);
    for (auto& part : parts_) part.second /= static_cast<double>(std::max<size_t>(1, steps));
    return std::move(parts_);
  }

 private:
  double& seconds_of(const std::string& name) {
    for (auto& [known, seconds] : parts_)
      if (known == name) return seconds;
    return parts_.emplace_back(name, 0).second;
  }
  const ProfiledStep* step_ = nullptr;
  std::vector<Interval> covered_;
  double sum_ = 0, unnamed_ = 0;
  std::vector<std::pair<std::string, double>> parts_;
};

}  // namespace

std::vector<std::pair<std::string, double>> parts_of_steps(const Profile& profile) {
  Parts parts;
  for (const ProfiledStep& step : profile.steps) {
    parts.begin(step);
    std::vector<Interval> ops, copies;
    for (const OpRun& run : step.ops)
      (profile.facts[run.op].copies ? copies : ops).push_back({run.start, run.start + run.seconds});
    parts.add("ops", ops);
    if (!copies.empty()) parts.add("copies", copies);
    // Spans that lie in others end first.
    std::vector<std::string> names;
    for (const Span& span : step.spans)
      if (span.lane == SpanLane::kStep && std::ranges::find(names, span.name) == names.end())
        names.emplace_back(span.name);
    for (const std::string& name : names) {
      std::vector<Interval> spans;
      for (const Span& span : step.spans)
        if (span.lane == SpanLane::kStep && span.name == name) spans.push_back({span.start, span.end});
      parts.add(name, spans);
    }
    parts.end();
  }
  return parts.of(profile.steps.size());
}

Efficiency efficiency_of(const Profile& profile) {
  Efficiency sums;
  double total = 0, tokens = 0;
  for (const ProfiledStep& step : profile.steps) {
    total += step.seconds;
    tokens += static_cast<double>(step.units);
    for (const OpRun& run : step.ops) {
      const OpFacts& f = profile.facts[run.op];
      if (!f.copies) sums.utilisation += run.mean_seconds > 0 ? run.mean_seconds : run.seconds;
      if (f.copies || f.recomputed) continue;
      sums.necessary += run.seconds;
      sums.mfu += f.peak_seconds;
    }
  }
  if (total <= 0) return {};
  const double computed =
      static_cast<double>(profile.padded_units) * static_cast<double>(profile.steps.size());
  const double used = computed > tokens ? tokens / computed : 1;
  return {sums.utilisation / total, used * sums.necessary / total, used * sums.mfu / total};
}

}  // namespace plimsoll::profiling
