// events.jsonl as a report reads it. Of a step's line that is read the quick way the slow one reads the same;
// what comes out is in order, each step once, and drawn without what is not finite.
#include "reports/run_events.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "reports/downsample.h"

namespace {

using plimsoll::reports::EventsReader;
using plimsoll::reports::kNumFigures;
using plimsoll::reports::RunEvents;
using plimsoll::reports::StepRow;

/// A blank behind it is no JSON of another meaning, and not what the quick way takes.
void compare(std::string_view line) {
  StepRow quick;
  if (!plimsoll::reports::read_step_line(line, quick)) return;
  EventsReader reader;
  reader.line(std::string(line) + " ");
  const RunEvents slow = reader.finish();
  PLIMSOLL_CHECK(slow.steps.size() == 1 && slow.steps[0].step == quick.step, std::string(line));
  for (size_t i = 0; i < kNumFigures; ++i) {
    const double a = quick.values[i], b = slow.steps[0].values[i];
    PLIMSOLL_CHECK(a == b || (std::isnan(a) && std::isnan(b)), std::string(line));
  }
}

void check_steps(const RunEvents& events) {
  std::vector<double> losses;
  for (size_t i = 0; i < events.steps.size(); ++i) {
    PLIMSOLL_CHECK(i == 0 || events.steps[i - 1].step < events.steps[i].step, "steps out of order");
    losses.push_back(events.steps[i].values[0]);
  }
  const auto kept = plimsoll::reports::downsample(losses, 3);
  PLIMSOLL_CHECK(kept.size() <= 8, "more than asked for");
  for (size_t i = 0; i < kept.size(); ++i)
    PLIMSOLL_CHECK(std::isfinite(losses[kept[i]]) && (i == 0 || kept[i - 1] < kept[i]));
  for (const auto& eval : events.evals)
    for (const auto& [name, value] : eval.metrics) PLIMSOLL_CHECK(std::isfinite(value), name);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view content(reinterpret_cast<const char*>(data), size);
  EventsReader reader;
  for (size_t begin = 0; begin <= content.size();) {
    const size_t end = std::min(content.find('\n', begin), content.size());
    const std::string_view line = content.substr(begin, end - begin);
    compare(line);
    reader.line(line);
    begin = end + 1;
  }
  check_steps(reader.finish());
  return 0;
}
