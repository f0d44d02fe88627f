#include <algorithm>

#include "planner/report/headline.h"
#include "planner/report/report.h"
#include "planner/report/report_disk.h"
#include "planner/report/report_parts.h"
#include "planner/report/why.h"

namespace plimsoll::planner {
namespace {

io::Tree pools_event(const PlanReport& r) {
  std::vector<io::Tree> pools;
  for (const PoolReport& p : r.pools)
    pools.push_back(io::Tree::map({{"pool", io::Tree::of(p.name)},
                                   {"persistent_bytes", io::Tree::of(p.persistent_bytes)},
                                   {"arena_bytes", io::Tree::of(p.arena_bytes)},
                                   {"other_bytes", io::Tree::of(p.other_bytes)},
                                   {"peak_bytes", io::Tree::of(p.peak_bytes())}}));
  return io::Tree::list(std::move(pools));
}

io::Tree bucket_event(const PlanReport& r) {
  std::vector<io::Tree> lengths;
  for (const int64_t length : r.buckets) lengths.push_back(io::Tree::of(length));
  const bool known = r.bucket_sequences > 0;
  return io::Tree::map(
      {{"lengths", io::Tree::list(std::move(lengths))},
       {"sequences", known ? io::Tree::of(r.bucket_sequences) : io::Tree{}},
       {"padding", known ? io::Tree::of(r.padding()) : io::Tree{}},
       {"padding_of_one_length", known ? io::Tree::of(r.padding_of_one_length()) : io::Tree{}}});
}

io::Tree state_event(const PlanReport& r) {
  std::vector<std::pair<std::string, io::Tree>> kept;
  for (const auto& [what, how] : r.state) kept.emplace_back(what, io::Tree::of(how));
  return io::Tree::map(std::move(kept));
}

/// All ranks have one plan.
io::Tree ranks_event(const PlanReport& r) {
  std::vector<io::Tree> ranks;
  for (int64_t rank = 0; rank < r.ranks; ++rank)
    ranks.push_back(
        io::Tree::map({{"rank", io::Tree::of(rank)},
                       {"device", io::Tree::map({{"peak_bytes", io::Tree::of(r.device_peak_bytes())}})},
                       {"process_peak_bytes", io::Tree::of(r.process_peak_bytes())}}));
  return io::Tree::list(std::move(ranks));
}

}  // namespace

io::Tree choices_event(const PlanReport& r) {
  std::vector<io::Tree> recomputed;
  for (const std::string& layer : r.recompute_set) recomputed.push_back(io::Tree::of(layer));
  return io::Tree::map({{"micro_batch_size", io::Tree::of(r.micro_batch_size)},
                        {"grad_accum_steps", io::Tree::of(r.grad_accum_steps)},
                        {"recompute", io::Tree::of(r.recompute)},
                        {"recompute_set", io::Tree::list(std::move(recomputed))},
                        {"loss_chunk_tokens", io::Tree::of(r.loss_chunk_tokens)},
                        {"gathered_layers", io::Tree::of(int64_t{r.gathered_layers})},
                        {"optimizer_in_backward", io::Tree::of(r.optimizer_in_backward)},
                        {"second_backward", io::Tree::of(r.second_backward)},
                        {"offload", io::Tree::of(r.offload)},
                        {"update_on_host", io::Tree::of(r.update_on_host)},
                        {"offload_out_bytes", io::Tree::of(r.offload_out_bytes)},
                        {"offload_in_bytes", io::Tree::of(r.offload_in_bytes)},
                        {"threads", io::Tree::of(r.threads)},
                        {"rates", io::Tree::of(r.rates)},
                        {"profile", io::Tree::of(r.profile)}});
}

io::Tree plan_event(const PlanReport& r) {
  const auto i = [](int64_t v) { return io::Tree::of(v); };
  std::vector<std::pair<std::string, io::Tree>> classes;
  for (const auto& [label, bytes] : r.classes) classes.emplace_back(label, i(bytes));
  std::vector<io::Tree> phases, alive;
  for (const PhaseBytes& p : r.phases)
    phases.push_back(io::Tree::map({{"name", io::Tree::of(p.name)},
                                    {"persistent_bytes", i(p.persistent_bytes)},
                                    {"arena_bytes", i(p.arena_bytes)},
                                    {"host_bytes", i(p.host_bytes)}}));
  for (size_t k = 0; k < std::min<size_t>(16, r.alive.size()); ++k)
    alive.push_back(io::Tree::map({{"op", io::Tree::of(r.alive[k].op)},
                                   {"layer", io::Tree::of(r.alive[k].layer)},
                                   {"type", io::Tree::of(r.alive[k].type)},
                                   {"bytes", i(r.alive[k].bytes)}}));
  io::Tree model = io::Tree::map({{"name", io::Tree::of(r.model)}, {"parameters", i(r.num_parameters)}});
  if (r.num_trained) model.set("trained", i(*r.num_trained));
  io::Tree host = io::Tree::map({{"pinned_bytes", i(r.host_pinned_bytes)},
                                 {"pageable_bytes", i(r.host_pageable_bytes)},
                                 {"process_overhead_bytes", i(r.device_is_process ? 0 : r.overhead_bytes)},
                                 {"peak_bytes", i(r.host_peak_bytes())}});
  if (r.host_budget()) host.set("budget_bytes", i(r.host_budget()->bytes));
  io::Tree event = io::Tree::map({
      {"event", io::Tree::of(std::string("plan"))},
      {"fits", io::Tree::of(r.fits)},
      {"model", std::move(model)},
      {"device",
       io::Tree::map({{"persistent_bytes", i(r.persistent_bytes)},
                      {"arena_bytes", i(r.arena_bytes)},
                      {"overhead_bytes", i(r.device_is_process ? r.overhead_bytes : 0)},
                      {"peak_bytes", i(r.device_peak_bytes())},
                      {"budget_bytes", i(r.device_budget() ? r.device_budget()->bytes : r.budget_bytes)},
                      {"context_bytes", i(r.context_bytes)}})},
      {"host", std::move(host)},
      {"pools", pools_event(r)},
      {"process_peak_bytes", i(r.process_peak_bytes())},
      {"classes", io::Tree::map(std::move(classes))},
      {"phases", io::Tree::list(std::move(phases))},
      {"peak", io::Tree::map({{"program", io::Tree::of(r.peak_program)},
                              {"op", io::Tree::of(r.peak_op)},
                              {"layer", io::Tree::of(r.peak_layer)},
                              {"tensors", io::Tree::list(std::move(alive))}})},
      {"step",
       io::Tree::map({{"flops", io::Tree::of(r.flops)},
                      {"recompute_flops", io::Tree::of(r.recompute_flops)},
                      {"seconds_estimated", r.has_time() ? io::Tree::of(r.seconds_estimated) : io::Tree{}},
                      {"parts", r.has_time() ? parts_event(r.parts) : io::Tree::map()},
                      {r.unit, i(r.units)}})},
      {"choices", choices_event(r)},
      {"num_ops", i(r.num_ops)},
      {"planning_seconds", io::Tree::of(r.planning_seconds)},
  });
  if (r.ranks > 1) event.set("ranks", ranks_event(r)), event.set("communication", network_event(r));
  if (r.buckets.size() > 1) event.set("buckets", bucket_event(r));
  if (!r.state.empty()) event.set("state", state_event(r));
  if (r.batch_norms + r.frozen_norms > 0)
    event.set("norm_statistics", io::Tree::map({{"batch", i(r.batch_norms)}, {"frozen", i(r.frozen_norms)}}));
  if (!r.no_optimizer_in_backward.empty())
    event.set("no_optimizer_in_backward", io::Tree::of(r.no_optimizer_in_backward));
  if (r.disk) event.set("disk", disk_event(*r.disk));
  if (!r.why.budget.empty()) event.set("why", why_event(r));
  if (!r.fits) event.set("remedies", remedies_event(r));
  return event;
}

}  // namespace plimsoll::planner
