// Group normalisation. The conventions are those of ops.h.
#pragma once

#include <cstdint>

#include "ir/builder.h"

namespace plimsoll::ops {

using ir::Builder;
using ir::ValueId;

struct GroupNorm {
  ValueId y, mean, rstd;
};
/// y = (x - mean) * (rstd * weight) + bias with statistics of each sample and group of channels: x [N, ...,
/// C], weight and bias [C], mean and rstd f32[N, groups], rstd = 1/sqrt(biased variance + eps). Wu & He 2018,
/// arXiv:1803.08494; with a group a channel it is instance normalisation (Ulyanov et al. 2016,
/// arXiv:1607.08022). Op `group_norm`(x, weight, bias) {groups, eps, out?}; `group_norm_grad`(dy, x, weight,
/// mean, rstd, acc_dw?, acc_db?) {frozen?, dw?} -> dx, dw, db. A sample's result depends on that sample
/// alone.
GroupNorm group_norm(Builder& b, ValueId x, ValueId weight, ValueId bias, int64_t groups, double eps);

}  // namespace plimsoll::ops
