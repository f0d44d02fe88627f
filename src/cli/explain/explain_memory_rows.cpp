#include "cli/explain/explain_memory_rows.h"

#include <cstdio>

#include "analysis/dimensions.h"
#include "analysis/techniques.h"
#include "cli/explain/planning_line.h"
#include "cli/terminal.h"
#include "strategy/run_device.h"

namespace plimsoll::cli {
void print_techniques(const settings::RunConfig& config, const strategy::Prepared& prepared, bool json) {
  const int threads = strategy::num_threads(config);
  const auto target = strategy::make_target(config, threads);
  PlanningLine line("techniques");
  const strategy::Variants variants(config, *target, {threads});
  const auto rows = analysis::plan_techniques(variants, prepared, line.teller());
  const auto dimensions = analysis::plan_dimensions(variants, prepared);
  line.end();
  if (json) {
    std::puts(io::to_json(analysis::techniques_event(rows)).c_str());
    std::puts(io::to_json(analysis::dimensions_event(dimensions)).c_str());
    return;
  }
  print_text("\n" + analysis::techniques_table(rows, prepared.report) + "\n" +
             analysis::dimensions_table(dimensions, prepared.report));
}

}  // namespace plimsoll::cli
