#include "planner/report/report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/end_of.h"
#include "base/numbers.h"
#include "base/units.h"
#include "passes/training/fp8_weights.h"
#include "passes/training/weight_casts.h"
#include "planner/report/budget.h"
#include "planner/report/headline.h"
#include "planner/report/report_disk.h"
#include "planner/report/report_parts.h"
#include "planner/report/why.h"

namespace plimsoll::planner {
namespace {

std::string row(std::string_view label, int64_t bytes) {
  return fmt::format("  {:<34}{:>22} B {:>12}\n", label, grouped(bytes), to_string(Bytes(bytes)));
}

/// "1.23 GFLOP" and the like.
std::string scaled(double value, std::string_view unit) {
  static constexpr std::string_view kPrefixes[] = {"", "k", "M", "G", "T", "P", "E"};
  size_t p = 0;
  while (value >= 1000 && p + 1 < std::size(kPrefixes)) value /= 1000, ++p;
  return fmt::format("{:.3g} {}{}", value, kPrefixes[p], unit);
}

std::string class_table(const PlanReport& r) {
  std::string out = "\nMemory by class\n";
  for (const auto& [label, bytes] : r.classes)
    if (bytes != 0) out += row(label, bytes);
  if (r.host_pinned_bytes > 0) out += row("host staging", r.host_pinned_bytes);
  out += row("host buffers", r.host_pageable_bytes);
  out += row("process (binary, libraries, stacks)", r.overhead_bytes);
  if (r.device_in_process) {
    out += row("peak", r.process_peak_bytes());
    if (r.budget_bytes > 0) out += row("budget", r.budget_bytes);
    return out;
  }
  out += row("peak on the card", r.device_peak_bytes());
  if (const Budget* card = r.device_budget()) out += row("budget of the card", card->bytes);
  if (r.context_bytes > 0) out += row("context of the card, in addition", r.context_bytes);
  out += row("peak of the host", r.host_peak_bytes());
  if (const Budget* host = r.host_budget()) out += row("budget of the host", host->bytes);
  return out;
}

/// One line where all is the process's own.
std::string pool_table(const PlanReport& r) {
  std::string out = fmt::format("\nMemory by pool\n  {:<20}{:>14}{:>14}{:>14}{:>14}\n", "pool", "persistent",
                                "arena", "other", "peak");
  for (const PoolReport& p : r.pools)
    if (p.peak_bytes() > 0)
      out += fmt::format("  {:<20}{:>14}{:>14}{:>14}{:>14}\n", p.name, to_string(Bytes(p.persistent_bytes)),
                         to_string(Bytes(p.arena_bytes)), to_string(Bytes(p.other_bytes)),
                         to_string(Bytes(p.peak_bytes())));
  return out;
}

std::string phase_table(const PlanReport& r) {
  std::string out = fmt::format("\nMemory by phase\n  {:<20}{:>14}{:>14}{:>14}{:>14}\n", "phase",
                                "persistent", "arena", "host", "process");
  for (const PhaseBytes& p : r.phases)
    out +=
        fmt::format("  {:<20}{:>14}{:>14}{:>14}{:>14}\n", p.name, to_string(Bytes(p.persistent_bytes)),
                    to_string(Bytes(p.arena_bytes)), to_string(Bytes(p.host_bytes)),
                    to_string(Bytes(p.persistent_bytes + p.arena_bytes + p.host_bytes + r.overhead_bytes)));
  return out;
}

std::string peak_table(const PlanReport& r) {
  constexpr size_t kRows = 8;
  std::string out = fmt::format("\nPeak of the arena: program {}, op {}{}\n  {:<18}{:<24}{:<20}{:>14}\n",
                                r.peak_program, r.peak_op, r.peak_layer.empty() ? "" : " in " + r.peak_layer,
                                "alive at the peak", "layer", "type", "bytes");
  for (size_t i = 0; i < std::min(kRows, r.alive.size()); ++i) {
    const auto& t = r.alive[i];
    out += fmt::format("  {:<18}{:<24}{:<20}{:>14}\n", end_of(t.op, 17), end_of(t.layer, 23),
                       end_of(t.type, 19), grouped(t.bytes));
  }
  if (r.alive.size() > kRows) {
    int64_t rest = 0;
    for (size_t i = kRows; i < r.alive.size(); ++i) rest += r.alive[i].bytes;
    out += fmt::format("  {:<62}{:>14}\n", fmt::format("and {} more", r.alive.size() - kRows), grouped(rest));
  }
  return out;
}

double share_of_padding(int64_t tokens, int64_t positions) {
  return positions > 0 ? 1 - static_cast<double>(tokens) / static_cast<double>(positions) : 0;
}

/// Nothing without buckets.
std::string bucket_lines(const PlanReport& r) {
  if (r.buckets.size() < 2) return {};
  std::string out = fmt::format("\nBuckets of {} tokens, one program each", fmt::join(r.buckets, ", "));
  if (r.bucket_sequences > 0)
    out += fmt::format("; padding {:.1f} %, with a single length {:.1f} %", 100 * r.padding(),
                       100 * r.padding_of_one_length());
  else
    out += "; the share of padding is known once the data is tokenized";
  return out + "\n";
}

/// "State: weights bf16, master_weights fp32, …"; nothing where all of it is fp32.
std::string state_line(const PlanReport& r) {
  const bool is_plain = std::all_of(r.state.begin(), r.state.end(), [](const auto& kept) {
    return kept.second.starts_with("fp32") || kept.second == "none";
  });
  std::string out;
  for (const auto& [what, how] : r.state)
    if (!is_plain) out += fmt::format("{}{} {}", out.empty() ? "\nState: " : ", ", what, how);
  return is_plain ? out : out + "\n";
}

}  // namespace

std::string Remedy::text() const {
  std::string text;
  for (const auto& [path, value] : settings) text += (text.empty() ? "" : " ") + path + "=" + value;
  return text;
}

namespace {

template <typename Bounds>
const Budget* least_of(const std::vector<Budget>& budgets, Bounds&& bounds) {
  const Budget* least = nullptr;
  for (const Budget& budget : budgets)
    if (bounds(budget.bounded) && (least == nullptr || budget.bytes < least->bytes)) least = &budget;
  return least;
}

}  // namespace

double PlanReport::units_per_second() const {
  if (!has_time()) return 0;
  const double filled = bucket_sequences > 0 ? 1 - padding_of_one_length() : 1;
  return filled * static_cast<double>(units) / seconds_estimated;
}

const Budget* PlanReport::device_budget() const {
  return least_of(budgets, [&](Bounded b) {
    return b == Bounded::kDevice || (device_is_process && b == Bounded::kProcess);
  });
}

const Budget* PlanReport::host_budget() const {
  return least_of(budgets, [&](Bounded b) {
    return b == Bounded::kHost || (!device_in_process && b == Bounded::kProcess);
  });
}

double PlanReport::padding() const { return share_of_padding(bucket_tokens, bucket_positions); }
double PlanReport::padding_of_one_length() const {
  return buckets.empty() ? 0 : share_of_padding(bucket_tokens, bucket_sequences * buckets.back());
}

namespace {

/// Logical bytes of the states of a class that lie on the device.
int64_t on_device(const passes::SessionPlan& session, ir::StateClass state_class) {
  int64_t total = 0;
  for (const passes::SessionState& s : session.states)
    if (s.decl.state_class == state_class && s.decl.space == ir::MemorySpace::kDevice)
      total += s.decl.type.bytes().count;
  return total;
}

/// Of the states that passes declare for copies of weights.
int64_t bytes_of(const passes::SessionPlan& session, bool (*is_copy)(const ir::StateDecl&)) {
  int64_t total = 0;
  for (const passes::SessionState& s : session.states)
    if (is_copy(s.decl)) total += s.decl.type.bytes().count;
  return total;
}

}  // namespace

void describe_session(const passes::SessionPlan& session, PlanReport& report) {
  using ir::MemorySpace;
  using ir::StateClass;
  report.persistent_bytes = session.device().persistent;
  report.arena_bytes = session.device().arena;
  report.host_pinned_bytes += session.pool(MemorySpace::kHostPinned).total() + session.staging_bytes;
  report.host_pageable_bytes += session.pool(MemorySpace::kHostPageable).total();
  report.disk_bytes += session.pool(MemorySpace::kDisk).total();
  const passes::Program* peak = nullptr;
  for (const passes::Program& p : session.programs) {
    report.phases.push_back({p.graph.name, session.device().persistent, p.plan.device().arena_bytes,
                             report.host_pinned_bytes + report.host_pageable_bytes});
    if (peak == nullptr || p.plan.device().arena_bytes > peak->plan.device().arena_bytes) peak = &p;
  }
  int64_t states = 0;
  for (const auto c :
       {StateClass::kParameter, StateClass::kMasterWeight, StateClass::kGradient, StateClass::kOptimizerState,
        StateClass::kScaler, StateClass::kScalars, StateClass::kInput, StateClass::kOutput,
        StateClass::kConstant, StateClass::kCache, StateClass::kBuffer})
    states += on_device(session, c);
  int64_t activations = 0, gradients = 0, workspace = 0, gathered = 0,
          padding = session.device().persistent - states, fragmentation = 0;
  if (peak != nullptr) {
    const passes::PoolPlan& plan = peak->plan.device();
    activations = plan.category_bytes[static_cast<size_t>(passes::Category::kActivations)];
    gradients = plan.category_bytes[static_cast<size_t>(passes::Category::kGradients)];
    workspace = plan.category_bytes[static_cast<size_t>(passes::Category::kWorkspace)];
    gathered = plan.category_bytes[static_cast<size_t>(passes::Category::kGathered)];
    padding += plan.padding_bytes;
    fragmentation = plan.fragmentation_bytes();
    report.peak_program = peak->graph.name;
    report.peak_op = plan.peak_op;
    report.peak_layer = plan.peak_layer;
    report.alive = plan.alive;
    if (plan.lower_bound_bytes > 0)
      report.offset_lower_bound_ratio =
          static_cast<double>(plan.arena_bytes) / static_cast<double>(plan.lower_bound_bytes);
  }
  const int64_t fp8_weights = bytes_of(session, passes::is_fp8_weight);
  const int64_t weight_casts = bytes_of(session, passes::is_weight_cast);
  report.classes = {{"parameters", on_device(session, StateClass::kParameter)},
                    {"master_weights", on_device(session, StateClass::kMasterWeight)},
                    {"gradients", on_device(session, StateClass::kGradient) + gradients},
                    {"optimizer_state", on_device(session, StateClass::kOptimizerState)},
                    {"scaler", on_device(session, StateClass::kScaler)},
                    {"activations", activations},
                    {"workspace", workspace},
                    {"inputs", on_device(session, StateClass::kInput)},
                    {"outputs", on_device(session, StateClass::kOutput)},
                    {"scalars", on_device(session, StateClass::kScalars)},
                    {"constants", on_device(session, StateClass::kConstant)},
                    {"kv_cache", on_device(session, StateClass::kCache) - fp8_weights - weight_casts},
                    {"padding", padding},
                    {"fragmentation", fragmentation}};
  if (const int64_t buffers = on_device(session, StateClass::kBuffer); buffers > 0)
    report.classes.insert(report.classes.begin() + 1, {"buffers", buffers});
  if (gathered > 0) report.classes.insert(report.classes.begin() + 1, {"gathered_parameters", gathered});
  if (weight_casts > 0) report.classes.insert(report.classes.begin() + 1, {"weight_casts", weight_casts});
  if (fp8_weights > 0) report.classes.insert(report.classes.begin() + 1, {"fp8_weights", fp8_weights});
}

void describe_pools(const passes::SessionPlan& session, PlanReport& report) {
  report.pools.clear();
  for (size_t s = 0; s < ir::kNumSpaces; ++s) {
    const auto space = static_cast<ir::MemorySpace>(s);
    const passes::PoolBytes& pool = session.pools[s];
    PoolReport line{std::string(ir::name(space)), pool.persistent, pool.arena, 0};
    if (space == ir::MemorySpace::kHostPinned) line.other_bytes = session.staging_bytes;
    if (space == ir::MemorySpace::kHostPageable)
      line.other_bytes = report.host_pageable_bytes - pool.total() + report.overhead_bytes;
    report.pools.push_back(std::move(line));
  }
}

/// Where BatchNorm layers take their statistics from, and what relieves a micro-batch that cannot be split;
/// nothing without such layers.
std::string norm_lines(const PlanReport& r) {
  std::string out;
  // A caller of the library writes calls and no settings.
  const bool is_callers = r.model == "own model";
  if (r.batch_norms > 0)
    out += fmt::format(
        "BatchNorm: {} layer{} statistics of {} micro-batch. Its size, {}, changes\n"
        "  the results, so the planner does not split it. Recomputation, offload,\n"
        "  {} and models with GroupNorm\n"
        "  or LayerNorm need less memory.\n",
        r.batch_norms, r.batch_norms == 1 ? " takes" : "s take",
        r.norms_synchronised ? "all ranks'"
        : r.ranks > 1        ? "each rank's own"
                             : "the",
        r.micro_batch_size,
        is_callers ? "autocast to bf16, eval() of the norms before plan()"
                   : "training.precision=bf16, model.norm_statistics=frozen");
  if (r.batch_norms > 0 && r.ranks > 1 && !r.norms_synchronised)
    out += "  After each step the running values are averaged over the ranks.\n";
  if (r.frozen_norms > 0)
    out += fmt::format("BatchNorm: {} layer{} running statistics, which stay as they are\n", r.frozen_norms,
                       r.frozen_norms == 1 ? " uses its" : "s use their");
  return out;
}

std::string split_text(int64_t micro_batch_size, int64_t grad_accum_steps) {
  if (grad_accum_steps == 1) return fmt::format("micro-batch {}, no accumulation", micro_batch_size);
  return fmt::format("micro-batch {} x {} accumulation steps", micro_batch_size, grad_accum_steps);
}

std::string plan_head(const PlanReport& r) {
  const std::string trained = r.num_trained.value_or(r.num_parameters) < r.num_parameters
                                  ? fmt::format(", {} trainable", grouped(*r.num_trained))
                                  : "";
  const std::string ranks = r.ranks == 1 ? "" : fmt::format("{} ranks, on each ", r.ranks);
  return fmt::format("Plan for {}: {} parameters{}\nA step: {}{}, {} {}, {} threads\n", r.model,
                     grouped(r.num_parameters), trained, ranks,
                     split_text(r.micro_batch_size, r.grad_accum_steps), grouped(r.units), r.unit, r.threads);
}

std::string plan_table(const PlanReport& r) {
  std::string out = headline(r) + remedy_lines(r) + "\n" + plan_head(r);
  out += state_line(r) + class_table(r) + pool_table(r) + phase_table(r) + bucket_lines(r) + peak_table(r);
  out += fmt::format(
      "\nA step{}: {} of the model{}, {}\n", r.buckets.size() > 1 ? " of the longest" : "",
      scaled(r.flops, "FLOP"),
      r.recompute_flops > 0 ? fmt::format(" + {} recomputed", scaled(r.recompute_flops, "FLOP")) : "",
      r.has_time() ? fmt::format("about {:.3g} s ({})", r.seconds_estimated, rates_text(r))
                   : "no time estimate, because no rates of this card are known");
  if (r.has_time()) out += parts_lines(r.parts);
  out += network_line(r);
  out += fmt::format("Fragmentation {:.2f} %; recompute {}, offload {}; planned in {:.0f} ms\n",
                     100 * std::max(0.0, r.offset_lower_bound_ratio - 1), r.recompute, r.offload,
                     1e3 * r.planning_seconds);
  if (r.offload_out_bytes + r.offload_in_bytes > 0)
    out += fmt::format("Offload copies {} out and {} in per step\n", to_string(Bytes(r.offload_out_bytes)),
                       to_string(Bytes(r.offload_in_bytes)));
  if (r.update_on_host) out += "Updates run on the host: gradients are copied out, weights are copied in\n";
  out += norm_lines(r) + recompute_line(r) + gathered_line(r) + optimizer_in_backward_line(r) + disk_line(r) +
         why_lines(r);
  return out;
}

}  // namespace plimsoll::planner
