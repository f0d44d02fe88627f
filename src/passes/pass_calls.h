// Calls of passes: what each takes from the options and from passes before it, and what it hands on.
#pragma once

#include "passes/pipeline.h"

namespace plimsoll::passes {

/// Runs a pass whose report lists replaced values, and keeps the outside holders' ids right.
Status follow_report(PassState& s, Result<Replaced> replaced);

/// A pass that replaces patterns and takes nothing but what to keep.
template <auto kPass>
Status run_fusion(PassState& s) {
  PLIMSOLL_ASSIGN(const auto report, kPass(s.graph, {.keep = s.keep}));
  return follow_report(s, report.replaced);
}

Status run_common_subexpressions(PassState& s);
Status run_dead_code(PassState& s);
Status run_fuse_head_loss(PassState& s);
Status run_small_m(PassState& s);
Status run_autocast(PassState& s);
Status run_fp8(PassState& s);
Status run_keep_operands(PassState& s);
Status run_fp8_activations(PassState& s);
Status run_fp8_weights(PassState& s);
Status run_autodiff(PassState& s);
Status run_recompute(PassState& s);
Status run_recompute_cheap(PassState& s);
Status run_half_precision_norms(PassState& s);
Status run_fuse_optimizer(PassState& s);
Status run_second_backward(PassState& s);
Status run_optimizer_in_backward(PassState& s);
Status run_fuse_quantize(PassState& s);
Status run_fuse_casts(PassState& s);
Status run_share_casts(PassState& s);
Status run_weight_casts(PassState& s);
Status run_schedule(PassState& s);
Status run_unshard(PassState& s);
Status run_overlap_ranks(PassState& s);
Status run_chunked_update(PassState& s);
Status run_offload(PassState& s);
Status run_in_place(PassState& s);

}  // namespace plimsoll::passes
