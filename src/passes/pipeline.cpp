// Runs the ordered list of passes over a program.
#include "passes/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <unordered_map>

#include "ir/printer.h"
#include "ir/verifier.h"
#include "passes/fusion/dead_code.h"

namespace plimsoll::passes {
namespace {

double ms_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

Status Pipeline::run(Phase phase, PassState& state) {
  for (const PassEntry& entry : pass_list())
    if (entry.phase == phase && (entry.enabled == nullptr || options_.*entry.enabled))
      PLIMSOLL_TRY(run_one(entry, state));
  return Ok{};
}

Status Pipeline::run_one(const PassEntry& entry, PassState& state) {
  const auto start = std::chrono::steady_clock::now();
  PLIMSOLL_TRY(entry.run(state));
  PassTiming timing{entry.name, ms_since(start), 0, state.graph.order().size()};
  if (!options_.dump_dir.empty()) PLIMSOLL_TRY(dump(entry, state.graph));
  const auto verify_start = std::chrono::steady_clock::now();
  if (options_.verify)
    if (Status valid = ir::verify(state.graph); !valid)
      return std::move(valid).error().at(fmt::format("after pass {}", entry.name));
  timing.verify_ms = ms_since(verify_start);
  progress_.timings.push_back(timing);
  return Ok{};
}

/// The number is the pass's place in the list, whether or not others are switched off.
Status Pipeline::dump(const PassEntry& entry, const ir::Graph& graph) const {
  std::error_code failure;
  std::filesystem::create_directories(options_.dump_dir, failure);
  const auto number = static_cast<size_t>(&entry - pass_list().data()) + 1;
  const std::string path = fmt::format("{}/{:02}-{}.ir", options_.dump_dir, number, entry.name);
  std::ofstream file(path, std::ios::binary);
  file << ir::print(graph);
  file.close();
  if (failure || !file)
    return Error{ErrorCode::kIo, "cannot write the dump of a pass", path,
                 "is the directory writable, the disk full?"};
  return Ok{};
}

Status Pipeline::run_keeping(Phase phase, PassState& state, std::span<ir::ValueId> keep) {
  state.keep.assign(keep.begin(), keep.end());
  state.last_forward_op = progress_.last_forward_op;
  PLIMSOLL_TRY(run(phase, state));
  progress_.last_forward_op = state.last_forward_op;
  std::copy(state.keep.begin(), state.keep.end(), keep.begin());
  return Ok{};
}

Status Pipeline::forward(ir::Graph& graph, std::span<ir::ValueId> keep) {
  PassState state{graph, options_};
  PLIMSOLL_TRY(run_keeping(Phase::kForward, state, keep));
  progress_.precision = std::move(state.precision);
  return Ok{};
}

Result<AutodiffReport> Pipeline::differentiate(ir::Graph& graph, AutodiffOptions request) {
  PassState state{graph, options_};
  progress_.last_forward_op = graph.value(request.loss).producer;
  state.request = std::move(request);
  PLIMSOLL_TRY(run(Phase::kDerivative, state));
  return std::move(state.derivative);
}

Status Pipeline::tidy(ir::Graph& graph, std::span<ir::ValueId> keep) {
  PassState state{graph, options_};
  progress_.is_tidy = true;
  PLIMSOLL_TRY(run_keeping(Phase::kTidy, state, keep));
  progress_.fp8 = std::move(state.fp8);
  empty_removed_ops(graph);
  return Ok{};
}

Status Pipeline::backward(ir::Graph& graph, std::span<ir::ValueId> keep) {
  if (progress_.is_ordered) return Ok{};
  if (!progress_.is_tidy) PLIMSOLL_TRY(tidy(graph, keep));
  PassState state{graph, options_};
  PLIMSOLL_TRY(run_keeping(Phase::kBackward, state, keep));
  note_half_precision_norms(graph, state.half_precision_norms);
  progress_.recomputed = std::move(state.recomputed);
  return Ok{};
}

void Pipeline::note_half_precision_norms(const ir::Graph& graph, const ShortNormsReport& report) {
  std::unordered_multimap<std::string_view, PrecisionChoice*> by_layer;
  for (PrecisionChoice& choice : progress_.precision.choices) by_layer.emplace(choice.layer, &choice);
  for (const ir::OpId id : report.shortened) {
    const ir::Op& op = graph.op(id);
    const auto [first, end] = by_layer.equal_range(op.layer);
    for (auto it = first; it != end; ++it) {
      PrecisionChoice& choice = *it->second;
      if (choice.op != op.def->name) continue;
      choice.stores = op.attrs.str("out");
      constexpr std::string_view kWhy = "; products alone read it";
      if (!choice.why.ends_with(kWhy)) choice.why += kWhy;  // a clone of recompute's is shortened as well
    }
  }
}

Status Pipeline::order(ir::Graph& graph) {
  PLIMSOLL_TRY(backward(graph));
  PassState state{graph, options_};
  PLIMSOLL_TRY(run_keeping(Phase::kSchedule, state, {}));
  progress_.is_ordered = true;
  return Ok{};
}

Status Pipeline::schedule_keeping(PassState& state, std::span<ir::ValueId> keep) {
  if (!progress_.is_ordered) PLIMSOLL_TRY(run_keeping(Phase::kSchedule, state, keep));
  return run_keeping(Phase::kExchange, state, keep);
}

Status Pipeline::schedule(ir::Graph& graph) {
  PassState state{graph, options_};
  progress_.is_scheduled = true;
  return schedule_keeping(state, {});
}

Result<InPlaceReport> Pipeline::arrange(ir::Graph& graph, std::span<ir::ValueId> keep) {
  PassState state{graph, options_};
  if (!progress_.is_scheduled) PLIMSOLL_TRY(schedule_keeping(state, keep));
  PLIMSOLL_TRY(run_keeping(Phase::kArrange, state, keep));
  return std::move(state.in_place);
}

}  // namespace plimsoll::passes
