// Ways to run a step, sketched: what they would take, about, without planning them whole.
#pragma once

#include <memory>
#include <vector>

#include "train/known_ways.h"
#include "train/plan_way.h"

namespace plimsoll::train {

/// Sketches of one run. Ways that differ in what lies elsewhere alone share their graphs, of which few are
/// kept. What has been sketched is remembered in options.known.
class Sketches {
 public:
  /// All outlive it; options.known is not null.
  Sketches(const RunConfig& config, const Prepared& prepared, const runtime::Target& target,
           const PrepareOptions& options)
      : config_(config), prepared_(prepared), target_(target), options_(options) {}

  /// As sketch_way.
  Result<planner::PlanReport> operator()(const Way& way);

 private:
  struct Scheduled {
    Way way;  ///< with nothing elsewhere
    bool streams_updates = false;
    std::unique_ptr<planner::ScheduledPrograms> programs;
  };
  planner::ScheduledPrograms& scheduled(const Way& way);

  const RunConfig& config_;
  const Prepared& prepared_;
  const runtime::Target& target_;
  const PrepareOptions& options_;
  std::vector<Scheduled> scheduled_;  ///< the one that was used last comes last
};

}  // namespace plimsoll::train
