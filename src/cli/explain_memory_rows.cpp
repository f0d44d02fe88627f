#include "cli/explain_memory_rows.h"

#include <cstdio>

#include "base/terminal.h"
#include "cli/planning_line.h"
#include "train/dimensions.h"
#include "train/run_device.h"
#include "train/techniques.h"

namespace plimsoll::cli {
void print_techniques(const RunConfig& config, const train::Prepared& prepared, bool json) {
  const int threads = train::num_threads(config);
  const auto target = train::make_target(config, threads);
  PlanningLine line("techniques");
  const train::Variants variants(config, *target, {threads});
  const auto rows = train::plan_techniques(variants, prepared, line.teller());
  const auto dimensions = train::plan_dimensions(variants, prepared);
  line.end();
  if (json) {
    std::puts(to_json(train::techniques_event(rows)).c_str());
    std::puts(to_json(train::dimensions_event(dimensions)).c_str());
    return;
  }
  print_text("\n" + train::techniques_table(rows, prepared.report) + "\n" +
             train::dimensions_table(dimensions, prepared.report));
}

}  // namespace plimsoll::cli
