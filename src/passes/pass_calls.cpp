// Calls each pass that wants more than what to keep.
#include "passes/pass_calls.h"

#include <utility>

#include "passes/fusion/common_subexpressions.h"
#include "passes/fusion/dead_code.h"
#include "passes/fusion/fuse_casts.h"
#include "passes/fusion/fuse_head_loss.h"
#include "passes/fusion/fuse_optimizer.h"
#include "passes/fusion/fuse_quantize.h"
#include "passes/fusion/share_casts.h"
#include "passes/fusion/small_m.h"
#include "passes/offload/chunked_update.h"
#include "passes/offload/offload_knowledge.h"
#include "passes/order/overlap_ranks.h"
#include "passes/order/schedule.h"
#include "passes/recompute/recompute.h"
#include "passes/recompute/recompute_cheap.h"
#include "passes/recompute/second_backward.h"
#include "passes/training/fp8_activations.h"
#include "passes/training/fp8_weights.h"
#include "passes/training/keep_operands.h"
#include "passes/training/optimizer_in_backward.h"
#include "passes/training/weight_casts.h"

namespace plimsoll::passes {

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

Status run_fuse_head_loss(PassState& s) {
  PLIMSOLL_ASSIGN(const auto report, fuse_head_loss(s.graph, {.keep = s.keep,
                                                              .grad = s.options.grad,
                                                              .frozen = s.options.frozen,
                                                              .chunk_tokens = s.options.chunk_tokens}));
  return follow_report(s, report.replaced);
}

Status run_small_m(PassState& s) {
  PLIMSOLL_ASSIGN(const auto report,
                  small_m(s.graph, {.keep = s.keep,
                                    .most_rows = s.options.small_m,
                                    .multiplied = ops::stored_dtype(s.options.precision)}));
  return follow_report(s, report.replaced);
}

Status run_autocast(PassState& s) {
  PLIMSOLL_ASSIGN(s.precision, autocast(s.graph, {.keep = s.keep,
                                                  .precision = s.options.precision,
                                                  .short_residual = s.options.short_residual,
                                                  .overrides = s.options.precision_overrides,
                                                  .fp8 = s.options.fp8}));
  return Ok{};
}

Status run_fp8(PassState& s) {
  PLIMSOLL_ASSIGN(s.fp8,
                  fp8(s.graph, {.keep = s.keep, .fp8 = s.options.fp8, .last_forward_op = s.last_forward_op}));
  follow(s.keep, s.fp8.replaced);
  return Ok{};
}

Status run_keep_operands(PassState& s) {
  if (!s.options.fp8.dumps_operands) return Ok{};
  return keep_operands(s.graph, s.last_forward_op);
}

Status run_fp8_activations(PassState& s) {
  if (!s.options.fp8.quantised_activations) return Ok{};
  PLIMSOLL_ASSIGN(Fp8ActivationsReport report,
                  fp8_activations(s.graph, {.keep = s.keep, .last_forward_op = s.last_forward_op}));
  follow(s.keep, report.replaced);
  for (Fp8Product& copy : report.copies) s.fp8.products.push_back(std::move(copy));
  return Ok{};
}

Status run_fp8_weights(PassState& s) {
  PLIMSOLL_ASSIGN(Fp8WeightsReport report,
                  fp8_weights(s.graph, {.keep = s.keep, .copies = s.options.weight_copies}));
  follow(s.keep, report.replaced);
  for (Fp8Product& copy : report.copies) s.fp8.products.push_back(std::move(copy));
  return Ok{};
}

Status run_autodiff(PassState& s) {
  PLIMSOLL_ASSIGN(s.derivative, autodiff(s.graph, s.request));
  return Ok{};
}

Status run_recompute(PassState& s) {
  const bool does_nothing =
      s.options.recompute.kind == RecomputePolicy::Kind::kNone && s.options.recompute.always.empty();
  if (!s.last_forward_op.valid() || (does_nothing && !s.options.look_at_blocks)) return Ok{};
  const RecomputeAnalysis program(s.graph, s.last_forward_op);
  if (s.options.look_at_blocks) s.options.look_at_blocks(program);
  if (does_nothing) return Ok{};
  PLIMSOLL_ASSIGN(s.recomputed, recompute_units(program, s.options.recompute));
  RecomputeOptions values = program.values(s.recomputed);
  values.keep = s.keep;
  PLIMSOLL_TRY(recompute(s.graph, values));
  return Ok{};
}

Status run_recompute_cheap(PassState& s) {
  if (!s.last_forward_op.valid()) return Ok{};  // a program without backward
  PLIMSOLL_TRY(recompute_cheap(s.graph, {.last_forward_op = s.last_forward_op, .keep = s.keep}));
  return Ok{};
}

Status run_half_precision_norms(PassState& s) {
  PLIMSOLL_ASSIGN(s.half_precision_norms, half_precision_norms(s.graph, {.keep = s.keep}));
  return Ok{};
}

/// One update of all tensors needs all gradients, and all states on the device.
Status run_fuse_optimizer(PassState& s) {
  const bool one_by_one = s.options.optimizer_in_backward || s.options.offload.streams_updates();
  if (one_by_one) return Ok{};
  PLIMSOLL_ASSIGN(const auto report,
                  fuse_optimizer(s.graph, {.keep = s.keep, .updates = !s.options.runs_twice}));
  return follow_report(s, report.replaced);
}

Status run_second_backward(PassState& s) {
  if (!s.last_forward_op.valid()) return Ok{};  // a program without backward
  PLIMSOLL_TRY(second_backward(s.graph, {.last_forward_op = s.last_forward_op}));
  return Ok{};
}

Status run_optimizer_in_backward(PassState& s) {
  PLIMSOLL_TRY(optimizer_in_backward(s.graph));
  return Ok{};
}

Status run_fuse_casts(PassState& s) {
  PLIMSOLL_ASSIGN(const auto report,
                  fuse_casts(s.graph, {.keep = s.keep, .last_forward_op = s.last_forward_op}));
  return follow_report(s, report.replaced);
}

Status run_share_casts(PassState& s) {
  PLIMSOLL_ASSIGN(const auto report,
                  share_casts(s.graph, {.keep = s.keep, .last_forward_op = s.last_forward_op}));
  return follow_report(s, report.replaced);
}

Status run_weight_casts(PassState& s) {
  PLIMSOLL_ASSIGN(const Replaced replaced,
                  weight_casts(s.graph, {.keep = s.keep, .copies = s.options.weight_copies}));
  return follow_report(s, replaced);
}

Status run_fuse_quantize(PassState& s) {
  PLIMSOLL_ASSIGN(const auto report,
                  fuse_quantize(s.graph, {.keep = s.keep, .last_forward_op = s.last_forward_op}));
  return follow_report(s, report.replaced);
}

Status run_schedule(PassState& s) {
  PLIMSOLL_TRY(schedule(s.graph, {.keep = s.keep,
                                  .in_place = s.options.in_place,
                                  .updates_stay = s.options.optimizer_in_backward,
                                  .workspace_bytes = s.options.workspace_bytes}));
  return Ok{};
}

Status run_unshard(PassState& s) {
  return unshard(s.graph, s.options.sharding, {&s.last_forward_op, s.keep});
}

Status run_overlap_ranks(PassState& s) {
  overlap_ranks(s.graph, s.options.overlaps_ranks);
  return Ok{};
}

Status run_chunked_update(PassState& s) {
  if (!s.options.offload.streams_updates()) return Ok{};
  PLIMSOLL_TRY(chunked_update(
      s.graph, {.offload = s.options.offload, .keep = s.keep, .workspace_bytes = s.options.workspace_bytes}));
  return Ok{};
}

Status run_offload(PassState& s) {
  return offload(s.graph, s.options.offload, {.last_forward_op = s.last_forward_op, .keep = s.keep},
                 {.scratch = {s.options.workspace_bytes, s.options.host_workspace_bytes},
                  .kernel_seconds = s.options.kernel_seconds,
                  .copy_seconds = s.options.copy_seconds});
}

Status run_in_place(PassState& s) {
  PLIMSOLL_ASSIGN(s.in_place, in_place(s.graph, {.keep = s.keep}));
  return Ok{};
}

}  // namespace plimsoll::passes
