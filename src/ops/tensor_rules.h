// Update rules that look beyond one element: at blocks, rows, columns or the whole of a tensor. A rule is a
// row in tensor_rules.cpp, and one op follows from it:
//
//   <rule>(param, grad, state…, clip f32[1], groups) {group, parts: ints, steps} -> param, state…
//
// Everything is as update_rules.h has it, `rounded`, `copy`, `key` and `random` too, but the states: each has
// a shape and a dtype of its own. `parts` are the rows of the checkpoint's tensors that lie one after the
// other in the parameter's storage (q, k and v): where a rule looks at a matrix, each of them is one. `steps`
// is how often a rule that iterates does so; absent: kMuonSteps.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "ops/update_rules.h"

namespace plimsoll::ops {

/// Steps of Newton and Schulz that `muon` takes where nothing is said.
inline constexpr int64_t kMuonSteps = 5;

/// A parameter as a rule sees it.
struct RuledTensor {
  ir::Shape shape;
  std::vector<int64_t> parts;  ///< rows each; their sum is shape[0]
  int64_t steps = kMuonSteps;  ///< of a rule that iterates
};

struct RuleState {
  std::string_view name;
  ir::Shape (*shape)(const RuledTensor& tensor) = nullptr;  ///< null: the parameter's
  /// Nothing: f32, bf16 or f16, as the run keeps moments.
  std::optional<ir::DType> dtype = {};

  [[nodiscard]] ir::Shape shape_of(const RuledTensor& tensor) const {
    return shape == nullptr ? tensor.shape : shape(tensor);
  }
};

/// What a rule's definition is given, in double; parameter and states are replaced by their successors.
struct TensorUpdate {
  const RuledTensor& tensor;
  const double* group;
  const std::vector<double>& gradient;  ///< clipped
  std::vector<double>& param;
  std::vector<std::vector<double>>& states;
};

struct TensorRule {
  std::string_view name;  ///< of the op
  std::string_view summary;
  std::vector<RuleState> states;  ///< zero before the first step
  int64_t num_fields = 0;         ///< that it reads; the table may be wider
  double (*flops)(const RuledTensor& tensor) = nullptr;
  void (*apply)(TensorUpdate& update) = nullptr;
  /// It looks no further than at blocks of so many elements, of the tensor as a row of them: a window of
  /// whole blocks is a tensor of its own. 0: at all of it.
  int64_t block_elements = 0;
  bool iterates = false;  ///< RuledTensor::steps times

  [[nodiscard]] size_t num_results() const { return 1 + states.size(); }   ///< param, states
  [[nodiscard]] size_t num_operands() const { return 2 + states.size(); }  ///< param, grad, states
};

std::span<const TensorRule> tensor_rules();
/// Null where there is none of that name.
const TensorRule* find_tensor_rule(std::string_view op);

/// `adamw_8bit`, Dettmers et al. 2022, arXiv:2110.02861, as bitsandbytes computes it: AdamW whose states are
/// codes of 8 bits of the dynamic maps (numerics/dynamic_map.h), signed for m and unsigned for v, relative to
/// the largest magnitude of each kCodeBlock elements. Its columns are AdamW's. States: m and v u8[as the
/// parameter], m_absmax and v_absmax f32[blocks].
inline constexpr int64_t kCodeBlock = 256;
TensorRule adamw_8bit_rule();

/// `adamw_fp8_lm` and `adamw_coat`: AdamW whose moments are FP8 numbers relative to the largest magnitude of
/// each block; columns are AdamW's. The formulas are those of ops/moment_codes.h. States of `adamw_fp8_lm`,
/// Peng et al. 2023, arXiv:2310.18313: m u8 (E4M3) and v f16, m_absmax and v_absmax f32[blocks of
/// kCodeBlock]. Of `adamw_coat`, Xi et al. 2024, arXiv:2410.19313: m and v u8 (E4M3), and for blocks of
/// kCoatBlock m_absmax, v_absmax, m_power, v_power f32.
inline constexpr int64_t kCoatBlock = 128;
std::vector<TensorRule> adamw_fp8_rules();
constexpr std::string_view fp8_rule_name(bool is_coat) { return is_coat ? "adamw_coat" : "adamw_fp8_lm"; }

/// Columns of `groups` for `adafactor`, of matrices, with states row f32[rows] and col f32[parts, cols],
/// `adafactor_vector`, with state v f32[as the parameter], and, with a state m beside them,
/// `adafactor_moment` and `adafactor_vector_moment`. Shazeer & Stern 2018, arXiv:1804.04235, each part for
/// itself:
///   s = g * g + epsilon1; row = row * beta2 + (1 - beta2) * mean of s over columns, col the same over rows;
///   u = g / sqrt(row / mean(row)) / sqrt(col); u = u / max(1, rms(u) / threshold);
///   a = rate * (scale ? max(epsilon2, rms(p)) : 1); p = p * (1 - a * decay) - a * u,
/// with m = m * beta1 + (1 - beta1) * a * u in place of a * u where there is one. Of a vector v is the mean.
/// `adafactor_filters` and `adafactor_filters_moment` have, for each output and input of a convolution, a
/// matrix [height, width] with a row and a column of its own: states row f32[out, height, in] and col
/// f32[out, width, in], the mean of row over its height. Sizes and means of squares of p and u are the part's
/// there too.
enum AdafactorField : int64_t {
  kAdafactorRate = 0,
  kAdafactorDecay = 1,  ///< weight decay
  kAdafactorBeta2 = 2,
  kAdafactorOneMinusBeta2 = 3,
  kAdafactorEpsilon1 = 4,
  kAdafactorEpsilon2 = 5,
  kAdafactorThreshold = 6,
  kAdafactorScale = 7,  ///< 1 or 0
  kAdafactorBeta1 = 8,
  kAdafactorOneMinusBeta1 = 9,
  kAdafactorFields = 10,
};
std::vector<TensorRule> adafactor_rules();
/// A filter [height, width, in] of each output; of a tensor that is none [1, 1, columns].
struct FilterExtents {
  int64_t height = 1, width = 1, in = 1;
  explicit FilterExtents(const ir::Shape& shape);
};

/// Columns of `groups` for `muon`, behind AdamW's; state momentum. Jordan 2024,
/// kellerjordan.github.io/posts/muon, as torch.optim.Muon computes it, in f32, each part for itself:
///   m = m + (g - m) * (1 - momentum); u = nesterov ? g + (m - g) * momentum : m; x = u / max(|u|, epsilon);
///   `steps` times x = a x + (b A + c A A) x with A = x x^T, the shorter axis first;
///   p = p * decay - rate * adjustment * x.
enum MuonField : int64_t {
  kMuonRate = kAdamwFields,
  kMuonDecay,  ///< 1 - rate * weight_decay
  kMuonMomentum,
  kMuonOneMinusMomentum,
  kMuonNesterov,    ///< 1 or 0
  kMuonMatchesRms,  ///< 1 or 0, see muon_adjustment()
  kMuonFields,
};
inline constexpr double kMuonCoefficients[] = {3.4445, -4.7750, 2.0315};
inline constexpr double kMuonEpsilon = 1e-7;
/// What a matrix's rate is multiplied with: sqrt(max(1, rows / cols)), or, so that an update is about as
/// large as AdamW's, 0.2 sqrt(max(rows, cols)) (Liu et al. 2025, arXiv:2502.16982).
double muon_adjustment(int64_t rows, int64_t cols, bool matches_rms);
TensorRule muon_rule();

/// What the attributes of an op say.
struct TensorForm {
  const TensorRule* rule = nullptr;
  std::optional<ir::DType> rounded = {}, copy = {};
  bool draws = false;
  int64_t first = 0;
  int64_t steps = kMuonSteps;
};
TensorForm tensor_form(std::string_view op, const ir::Attrs& attrs);

/// Appends the op; returns as update() does.
std::vector<ir::ValueId> update_tensor(ir::Builder& b, const TensorRule& rule, ir::ValueId param,
                                       ir::ValueId grad, std::span<const ir::ValueId> states,
                                       ir::ValueId clip, ir::ValueId groups, int64_t group,
                                       const RuledTensor& tensor, const UpdateStorage& storage = {});

}  // namespace plimsoll::ops
