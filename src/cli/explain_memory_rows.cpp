#include "cli/explain_memory_rows.h"

#include <fmt/format.h>

#include <cstdio>

#include "base/terminal.h"
#include "train/dimensions.h"
#include "train/run_device.h"
#include "train/techniques.h"

namespace plimsoll::cli {
void print_techniques(const RunConfig& config, const train::Prepared& prepared, bool json) {
  const int threads = train::num_threads(config);
  const auto target = train::make_target(config, threads);
  StatusLine line;
  const train::Variants variants(config, *target, {threads});
  const auto rows = train::plan_techniques(variants, prepared, [&](size_t done, size_t total) {
    if (line.rewrites()) line.show({{fmt::format("planned {} of {} techniques", done, total), 0}});
  });
  line.clear();
  const auto dimensions = train::plan_dimensions(variants, prepared);
  if (json) {
    std::puts(to_json(train::techniques_event(rows)).c_str());
    std::puts(to_json(train::dimensions_event(dimensions)).c_str());
    return;
  }
  print_text("\n" + train::techniques_table(rows, prepared.report) + "\n" +
             train::dimensions_table(dimensions, prepared.report));
}

}  // namespace plimsoll::cli
