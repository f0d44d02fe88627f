#include "planner/report/assess.h"

#include "planner/cost/overhead.h"
#include "planner/report/budget.h"

namespace plimsoll::planner {

PlanReport assess(const passes::SessionPlan& session, const runtime::Target& target,
                  const Surroundings& surroundings) {
  PlanReport report;
  report.device_is_process = target.shares_host_memory();
  report.device_in_process = target.is_in_process();
  report.host_pageable_bytes = surroundings.host_bytes;
  describe_session(session, report);
  for (const std::string& phase : surroundings.file_phases)
    report.phases.push_back(
        {phase, report.persistent_bytes, 0, report.host_pinned_bytes + report.host_pageable_bytes});
  report.num_ops = surroundings.unwritten_ops;
  for (const passes::Program& p : session.programs)
    report.num_ops += static_cast<int64_t>(p.graph.order().size());
  report.threads = surroundings.num_threads;
  if (surroundings.counts_process)
    report.overhead_bytes =
        load_overhead().bytes(report.num_ops, surroundings.num_threads) + target.library_bytes();
  describe_pools(session, report);
  report.budgets = surroundings.budgets;
  if (!report.budgets.empty()) report.budget_bytes = report.budgets.front().bytes;
  report.fits = exceeded(report, report.budgets) == nullptr;
  return report;
}

void describe_work(const Work& work, PlanReport& report) {
  report.flops = work.flops;
  report.recompute_flops = work.recompute_flops;
  report.bytes_moved = work.bytes;
  report.network_bytes = work.network_bytes;
  report.units = work.units;
  report.unit = work.unit;
  report.micro_batch_size = work.micro_batch_size;
  report.grad_accum_steps = work.grad_accum_steps;
  report.parts = work.seconds;
  report.seconds_estimated = work.seconds.total();
  report.rates = work.rates;
  report.profile = work.profile;
}

}  // namespace plimsoll::planner
