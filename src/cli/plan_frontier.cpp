#include "cli/plan_frontier.h"

#include <fmt/format.h>

#include <cstdio>

#include "base/terminal.h"
#include "io/file.h"
#include "train/frontier.h"
#include "train/known_ways.h"
#include "train/run_device.h"

namespace plimsoll::cli {

Status plan_frontier(const RunConfig& config, const std::string& svg, bool json) {
  const int threads = train::num_threads(config);
  const auto target = train::make_target(config, threads);
  const train::PrepareOptions options{
      .num_threads = threads, .verify = false, .runs = false, .known = std::make_shared<train::KnownWays>()};
  PLIMSOLL_ASSIGN(const train::Prepared base, train::prepare(config, *target, options));
  const train::Variants variants(config, *target, options);
  StatusLine line;
  PLIMSOLL_ASSIGN(const train::Frontier frontier,
                  train::plan_frontier(variants, base, [&](size_t done, size_t total) {
                    if (line.rewrites()) line.show({{fmt::format("{} of {} budgets", done, total), 0}});
                  }));
  line.clear();
  if (!svg.empty()) PLIMSOLL_TRY(write_file_atomically(svg, train::frontier_svg(frontier)));
  if (json)
    std::puts(to_json(train::frontier_event(frontier)).c_str());
  else
    print_text(train::frontier_table(frontier));
  return Ok{};
}

}  // namespace plimsoll::cli
