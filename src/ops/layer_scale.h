// Layer scale and stochastic depth: the addition of a block's result to the residual stream. The conventions
// are those of ops.h.
#pragma once

#include <cstdint>

#include "ir/builder.h"

namespace plimsoll::ops {

using ir::Builder;
using ir::ValueId;

/// residual + branch * scale[channel] * kept[sample]: layer scale (Touvron et al. 2021, arXiv:2103.17239) and
/// stochastic depth (Huang et al. 2016, arXiv:1603.09382) in one pass. residual and branch [N, ..., C], scale
/// [C], kept f32[N]; either of the last two may be invalid, not both. Stored as the wider of residual and
/// branch. Op `scaled_add`(residual, branch, scale?, kept?) {out?}; `scaled_add_grad`(dy, branch, scale?,
/// kept?, acc?) {out?, frozen?, dw?} -> d_branch, d_scale, a reduction over rows; {out} is d_branch's dtype
/// where it is not branch's. Without a scale that learns d_branch alone. No derivative of kept.
ValueId scaled_add(Builder& b, ValueId residual, ValueId branch, ValueId scale, ValueId kept);
/// Whether a sample's block runs: f32[count] of 0 with probability p, else 1/(1-p). Keyed as dropout is, by
/// the first word of a sequence. Op `kept_samples`(random) {count, p, key}.
ValueId kept_samples(Builder& b, ValueId random, int64_t count, double p, int64_t key);

}  // namespace plimsoll::ops
