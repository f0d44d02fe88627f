// The ordered list of passes, and its runner.
#include "passes/pipeline.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "passes/common_subexpressions.h"
#include "passes/dead_code.h"

namespace plimsoll::passes {
namespace {

/// Runs a pass whose report lists replaced values, and keeps the outside holders' ids right.
Status follow_report(PassState& s, Result<Replaced> replaced) {
  if (!replaced) return std::move(replaced).error();
  follow(s.keep, *replaced);
  return Ok{};
}

Status run_common_subexpressions(PassState& s) {
  PLIMSOLL_ASSIGN(const auto report, common_subexpressions(s.graph));
  return follow_report(s, report.replaced);
}

Status run_dead_code(PassState& s) {
  PLIMSOLL_TRY(dead_code(s.graph, {.keep = s.keep}));
  return Ok{};
}

Status run_autodiff(PassState& s) {
  PLIMSOLL_ASSIGN(s.derivative, autodiff(s.graph, s.request));
  return Ok{};
}

using Options = PipelineOptions;
constexpr std::array kPasses = std::to_array<PassEntry>({
    {"common-subexpressions", Phase::kForward,
     "A model reads tables and tied weights where it needs them; one read is enough.", &Options::common_subexpressions,
     run_common_subexpressions},
    {"dead-code", Phase::kForward, "What no wanted value needs is not run, and not differentiated.",
     &Options::dead_code, run_dead_code},
    {"autodiff", Phase::kDerivative, "Appends the backward ops.", nullptr, run_autodiff},
    {"common-subexpressions-backward", Phase::kBackward,
     "Derivatives and optimizer read states again and rebuild constants; before recompute, whose clones it leaves.",
     &Options::common_subexpressions, run_common_subexpressions},
    {"dead-code-backward", Phase::kBackward, "Derivatives that no state takes are dropped before anything looks at lifetimes.",
     &Options::dead_code, run_dead_code},
});

double ms_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

std::span<const PassEntry> pass_list() { return kPasses; }

Status Pipeline::run(Phase phase, PassState& state) {
  for (const PassEntry& entry : kPasses)
    if (entry.phase == phase && (entry.enabled == nullptr || options_.*entry.enabled))
      PLIMSOLL_TRY(run_one(entry, state));
  return Ok{};
}

Status Pipeline::run_one(const PassEntry& entry, PassState& state) {
  const auto start = std::chrono::steady_clock::now();
  PLIMSOLL_TRY(entry.run(state));
  PassTiming timing{entry.name, ms_since(start), 0, state.graph.order().size()};
  timings_.push_back(timing);
  return Ok{};
}

Status Pipeline::run_keeping(Phase phase, PassState& state, std::span<ir::ValueId> keep) {
  state.keep.assign(keep.begin(), keep.end());
  state.last_forward_op = last_forward_op_;
  PLIMSOLL_TRY(run(phase, state));
  std::copy(state.keep.begin(), state.keep.end(), keep.begin());
  return Ok{};
}

Status Pipeline::forward(ir::Graph& graph, std::span<ir::ValueId> keep) {
  PassState state{graph, options_};
  return run_keeping(Phase::kForward, state, keep);
}

Result<AutodiffReport> Pipeline::differentiate(ir::Graph& graph, AutodiffOptions request) {
  PassState state{graph, options_};
  last_forward_op_ = graph.value(request.loss).producer;
  state.request = std::move(request);
  PLIMSOLL_TRY(run(Phase::kDerivative, state));
  return std::move(state.derivative);
}

Status Pipeline::backward(ir::Graph& graph, std::span<ir::ValueId> keep) {
  PassState state{graph, options_};
  return run_keeping(Phase::kBackward, state, keep);
}

Result<InPlaceReport> Pipeline::arrange(ir::Graph& graph, std::span<ir::ValueId> keep) {
  PassState state{graph, options_};
  PLIMSOLL_TRY(run_keeping(Phase::kArrange, state, keep));
  return std::move(state.in_place);
}

}  // namespace plimsoll::passes
