#include "telemetry/estimate_check.h"

#include <cstddef>

#include "base/median.h"

namespace plimsoll::telemetry {
namespace {

/// The first step finds cold memory; of the rest the median counts.
constexpr size_t kSteps = 6, kCold = 1;

}  // namespace

void OpMedians::add(const runtime::Session& session) {
  if (taken_ == steps_) return;
  seconds_.resize(session.plan().programs.size());
  for (size_t p = 0; p < seconds_.size(); ++p) {
    const auto& timed = session.timed_ops(static_cast<int>(p));
    seconds_[p].resize(timed.size() * steps_);
    for (size_t i = 0; i < timed.size(); ++i) seconds_[p][i * steps_ + taken_] = timed[i].seconds;
  }
  ++taken_;
}

double OpMedians::of(size_t program, size_t op) const {
  const auto first = seconds_[program].begin() + static_cast<std::ptrdiff_t>(op * steps_);
  return median({first, first + static_cast<std::ptrdiff_t>(taken_)});
}

planner::StepTimes step_times(const training::Trainer& trainer, const OpMedians& medians) {
  const strategy::Prepared& prepared = trainer.prepared();
  planner::StepTimes times{.machine = prepared.costs->profile().name,
                           .profile = prepared.profile_identity,
                           .threads = prepared.costs->profile().memory_bytes > 0
                                          ? prepared.costs->profile().threads  // a card's have none
                                          : strategy::num_threads(trainer.config()),
                           .estimated = prepared.report.seconds_estimated};
  const auto& programs = trainer.session().plan().programs;
  const planner::Accumulation accumulation =
      planner::planned(strategy::accumulation_of(trainer.config(), prepared.split), trainer.session().plan());
  for (size_t p = 0; p < programs.size(); ++p) {
    const ir::Graph& graph = programs[p].graph;
    const int64_t runs = planner::times_per_step(programs[p].id.role, accumulation);
    const auto& timed = trainer.session().timed_ops(static_cast<int>(p));
    for (size_t i = 0; i < timed.size(); ++i) {
      const ir::Op* op = timed[i].op;
      planner::StepSeconds estimated;
      prepared.costs->add(graph, *op, estimated);
      if (estimated.total() == 0) continue;
      const double seconds = medians.of(p, i);
      const planner::OpWork of =
          planner::op_work(*op->def, ir::op_types(graph, *op), ir::op_cost(graph, *op));
      for (int64_t run = 0; run < runs; ++run) times.add(of.kind, of.type, seconds, estimated.total());
      times.seconds += static_cast<double>(runs) * seconds;
    }
  }
  return times;
}

EstimateCheck::EstimateCheck(training::Trainer& trainer) : trainer_(trainer), medians_(kSteps - kCold) {
  const strategy::Prepared& prepared = trainer.prepared();
  watches_ = prepared.costs->profile().rates == "calibrated" && prepared.costs->profile().memory_bytes == 0 &&
             prepared.is_cpu && prepared.buckets.lengths.size() == 1 &&
             trainer.total_steps() - trainer.steps_done() >= static_cast<int64_t>(kSteps);
}

void EstimateCheck::begin_step() {
  // Of the CPU, where nothing of it can fail.
  if (watches_) (void)trainer_.session().enable_timing(seconds_.size() >= kCold);
}

std::optional<planner::StepTimes> EstimateCheck::end_step(const training::StepEvent& event) {
  if (!watches_) return std::nullopt;
  if (seconds_.size() >= kCold) medians_.add(trainer_.session());
  seconds_.push_back(event.seconds - event.data_wait_seconds);
  if (seconds_.size() < kSteps) return std::nullopt;
  watches_ = false;
  (void)trainer_.session().enable_timing(false);
  planner::StepTimes times = step_times(trainer_, medians_);
  times.seconds = median({seconds_.begin() + kCold, seconds_.end()});
  return times;
}

}  // namespace plimsoll::telemetry
