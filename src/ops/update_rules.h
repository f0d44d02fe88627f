// Update rules: what becomes of an element of a parameter, and of its states, for a gradient. A rule is a row
// in update_rules.cpp, and two ops follow from it, with their types, cost and reference:
//
//   <rule>(param, grad, state…, clip f32[1], groups) {group} -> param, state…
//   <rule>_sweep(clip, groups, param, grad, state…, param, …) {group: ints} -> param, state…, param, …
//
// One tensor, and many at once. Everything but gradient, clip and groups is consumed. `groups` f32[n,
// num_fields or more] holds the hyper-parameters of a step, a row a group, written by the host; g below is
// grad * clip. A clip that is not a number skips the step: parameter and states stay as they are. Arithmetic
// is f32; parameter, gradient and states are f32, bf16 or f16, each as it comes. Optional attributes say how
// they are kept:
//
//   rounded  the gradient is rounded to this dtype before anything else: an f32 sum for what would be bf16
//   copy     of an f32 parameter, a master: a last result of each tensor, the parameter in this dtype
//   key      one a tensor: an operand random i32[4] stands behind groups, and what is stored in bf16 is
//            rounded stochastically, by update_bits of the word of its element in the stream of the key (seed
//            random[0..1], step random[2], sequence 0)
//   first    of the op for one tensor: its operands are a window of a larger tensor, whose element of that
//            number is their first; 0 where absent. Draws are those of the larger tensor's elements
#pragma once

#include <cstdint>
#include <optional>
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

/// Columns of `groups` for `adam_l2` and `adam_l2_sweep`: AdamW's without its decay, and behind them what is
/// added to the gradient, g = g + l2 * p, as torch.optim.Adam decays weights. Kingma & Ba 2015,
/// arXiv:1412.6980.
enum AdamL2Field : int64_t {
  kAdamL2Decay = kAdamwFields,
  kAdamL2Fields = 9,
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

/// Columns of `groups` for `lion` and `lion_sweep`; state m. Chen et al. 2023, arXiv:2302.06675:
///   p = p * decay; p = p - rate * sign(m * beta1 + (1 - beta1) * g); m = m * beta2 + (1 - beta2) * g.
enum LionField : int64_t {
  kLionDecay = 0,  ///< 1 - rate * weight_decay
  kLionRate = 1,
  kLionBeta1 = 2,
  kLionOneMinusBeta1 = 3,
  kLionBeta2 = 4,
  kLionOneMinusBeta2 = 5,
  kLionFields = 6,
};

struct UpdateRule {
  std::string_view name;          ///< of the op for one tensor
  std::string_view multi_tensor;  ///< of the op for many
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

/// The bits by which result `result` (0 the parameter, then the states, at most two) of an element is
/// rounded: any two of the three are independent of each other.
constexpr uint16_t update_bits(uint32_t word, size_t result) {
  const uint32_t upper = word >> 16;
  return static_cast<uint16_t>(result == 0 ? upper : result == 1 ? word : upper ^ word);
}

/// What the attributes of an op say.
struct UpdateForm {
  const UpdateRule* rule = nullptr;
  std::optional<ir::DType> rounded = {}, copy = {};
  bool draws = false;
  int64_t first = 0;

  [[nodiscard]] size_t num_results() const { return rule->num_results() + (copy ? 1 : 0); }  ///< a tensor
  [[nodiscard]] size_t num_shared() const { return draws ? 3 : 2; }  ///< clip, groups, random
};
/// Of an op for one tensor or for many. A dtype that is none is absent; inference has refused it.
UpdateForm update_form(std::string_view op, const ir::Attrs& attrs);

/// Attribute `first` of an op's attributes, 0 where it is absent.
int64_t first_element(const ir::Attrs& attrs);

/// How one tensor is kept beside its operands' own dtypes.
struct UpdateStorage {
  ir::DType gradient = ir::DType::kF32;  ///< attribute `rounded`, where the gradient comes in another
  std::optional<ir::DType> copy = {};
  ir::ValueId random = {};  ///< absent: to nearest
  int64_t key = 0;
};
/// Appends the op `name` of a rule, of whichever kind, for one tensor: `attrs` and what `storage` adds to
/// them.
std::vector<ir::ValueId> update_op(ir::Builder& b, std::string_view name, ir::Attrs attrs, ir::ValueId param,
                                   ir::ValueId grad, std::span<const ir::ValueId> states, ir::ValueId clip,
                                   ir::ValueId groups, const UpdateStorage& storage);
/// Appends the op for one tensor; returns the parameter and its states afterwards, and the copy behind them.
std::vector<ir::ValueId> update(ir::Builder& b, const UpdateRule& rule, ir::ValueId param, ir::ValueId grad,
                                std::span<const ir::ValueId> states, ir::ValueId clip, ir::ValueId groups,
                                int64_t group, const UpdateStorage& storage = {});

}  // namespace plimsoll::ops
