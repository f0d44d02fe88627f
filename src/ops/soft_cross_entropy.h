// Cross-entropy against targets that are spread over classes. The conventions are those of ops.h.
#pragma once

#include "ir/builder.h"
#include "ops/loss.h"

namespace plimsoll::ops {

/// What a row's target is: (1 - smoothing) * (share * onehot(targets) + (1 - share) * onehot(second)) +
/// smoothing / classes. Without second and share: onehot(targets) alone.
struct SoftTargets {
  ValueId targets;                  ///< i32 rows; kIgnoreTarget: the row counts nowhere
  ValueId second = {}, share = {};  ///< i32 and f32 rows, of mixed examples, or invalid both
  double smoothing = 0;             ///< in [0, 1)
};
/// The sum over rows of - sum of target * log softmax(logits). Label smoothing: Szegedy et al. 2016,
/// arXiv:1512.00567, as PyTorch has it; mixed targets: Zhang et al. 2018, arXiv:1710.09412. Operands and
/// results as those of cross_entropy. Op `soft_cross_entropy`(logits, targets, grad_scale, acc?, second?,
/// share?) {smoothing} -> loss f32[1], lse; `soft_cross_entropy_grad`(logits, targets, lse, grad_scale,
/// second?, share?) {smoothing} -> (softmax - target) * grad_scale, zero rows where ignored. The cotangent of
/// `loss` is taken to be grad_scale.
CrossEntropy soft_cross_entropy(Builder& b, ValueId logits, const SoftTargets& targets, ValueId grad_scale,
                                ValueId acc);

}  // namespace plimsoll::ops
