// Update rules: what becomes of an element of a parameter, and of its states, for a gradient. A rule is a row
// in update_rules.cpp, and two ops follow from it, with their types, cost and reference:
//
//   <rule>(param, grad, state…, clip f32[1], groups) {group} -> param, state…
//   <rule>_sweep(clip, groups, param, grad, state…, param, …) {group: ints} -> param, state…, param, …
//
// One tensor, and many at once. Everything but gradient, clip and groups is consumed. `groups` f32[n,
// num_fields] holds the hyper-parameters of a step, a row a group, written by the host; g below is grad *
// clip. A clip that is not a number skips the step: everything stays as it is. All fp32.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "ir/builder.h"

namespace plimsoll::ops {

/// Columns of `groups` for `adamw` and `adamw_sweep`; states m and v. Loshchilov & Hutter 2019,
/// arXiv:1711.05101, in PyTorch's order of operations:
///   p = p * decay; m = m + (g - m) * (1 - beta1); v = v * beta2 + (1 - beta2) * g * g;
///   p = p - step_size * (m / (sqrt(v) / sqrt_correction2 + eps)).
enum AdamwField : int64_t {
  kAdamwDecay = 0,  ///< 1 - rate * weight_decay
  kAdamwBeta1 = 1,
  kAdamwOneMinusBeta1 = 2,
  kAdamwBeta2 = 3,
  kAdamwOneMinusBeta2 = 4,
  kAdamwEpsilon = 5,
  kAdamwStepSize = 6,         ///< rate / (1 - beta1^t)
  kAdamwSqrtCorrection2 = 7,  ///< sqrt(1 - beta2^t)
  kAdamwFields = 8,
};

/// Columns of `groups` for `sgd` and `sgd_sweep`, without state, and for `sgd_momentum` and
/// `sgd_momentum_sweep`, with state buffer. As torch.optim.SGD computes it; the Nesterov form is that of
/// Sutskever et al. 2013 (ICML):
///   g = g + weight_decay * p; buffer = buffer * momentum + fresh * g;
///   p = p - rate * (nesterov ? g + momentum * buffer : buffer);   without momentum p = p - rate * g.
enum SgdField : int64_t {
  kSgdRate = 0,
  kSgdWeightDecay = 1,
  kSgdMomentum = 2,
  kSgdFresh = 3,     ///< 1 - dampening; 1 at the first step, which makes the buffer the gradient
  kSgdNesterov = 4,  ///< 1 or 0
  kSgdFields = 5,
};

struct UpdateRule {
  std::string_view name;   ///< of the op for one tensor
  std::string_view sweep;  ///< of the op for many
  std::string_view summary;
  std::vector<std::string_view> states;  ///< each as large as the parameter, zero before the first step
  int64_t num_fields = 0;
  int flops = 0;  ///< an element
  /// The rule itself, in double: `element` is the parameter's and then the states', replaced by their
  /// successors.
  void (*apply)(double gradient, const double* group, double* element) = nullptr;

  [[nodiscard]] size_t num_results() const { return 1 + states.size(); }   ///< param, states
  [[nodiscard]] size_t num_operands() const { return 2 + states.size(); }  ///< param, grad, states
};

std::span<const UpdateRule> update_rules();
/// The rule whose op, for one tensor or for many, is called `op`; null where there is none.
const UpdateRule* find_update_rule(std::string_view op);
/// Appends the op for one tensor; returns the parameter and its states afterwards.
std::vector<ir::ValueId> update(ir::Builder& b, const UpdateRule& rule, ir::ValueId param, ir::ValueId grad,
                                std::span<const ir::ValueId> states, ir::ValueId clip, ir::ValueId groups,
                                int64_t group);

}  // namespace plimsoll::ops
