// Optimizers as graph: (parameter, gradient, state) -> update. Sharding, offload and planning come for free.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ir/builder.h"
#include "ir/parameter_kind.h"
#include "ops/loss_scale.h"
#include "optimizers/hyper.h"

namespace plimsoll::optimizers {

/// The run-time table of hyper-parameters has two rows a group: of tensors that decay, and of those that do
/// not. Group 0 is the run's own, the others those of training.param_groups.
constexpr int64_t row_of(int64_t group, bool decays) { return 2 * group + (decays ? 0 : 1); }
inline constexpr std::string_view kGroupsState = "optimizer.groups";
/// f32[1], with averages: the share of the new weights in the next average; 1 at a run's first step.
inline constexpr std::string_view kAverageShareState = "step.average_share";
inline constexpr std::string_view kGradNormState = "step.grad_norm";
/// See scaler_state().
inline constexpr std::string_view kScalerState = "loss_scaler";
/// f32[n] with a scaled loss: the squares of each gradient, in the order of the updates; those that are not
/// finite have overflowed
inline constexpr std::string_view kGradSquaresState = "step.grad_squares";

/// A parameter's state by name, its gradient in this program, and its row of the table.
struct Update {
  std::string parameter;
  ir::ValueId gradient;
  int64_t row = row_of(0, true);
  /// Rows of each of the checkpoint's tensors that lie in it; empty: it is one.
  std::vector<int64_t> parts = {};
  bool is_hidden = false;  ///< of a repeated block: no embedding, no head
  ir::ParameterKind kind = ir::ParameterKind::kLinear;
  /// The parameter's type, where its state is not declared so: ranks share it. Nothing: the state's.
  std::optional<ir::TensorType> type = {};
};
/// The type of the whole parameter.
ir::TensorType parameter_type(const ir::Graph& graph, const Update& update);

/// Recipes that keep AdamW's moments as codes of 8 bits (ops/tensor_rules.h); small tensors keep f32.
enum class MomentCodes : uint8_t { kNone, kFp8Lm, kCoat };

/// How the training state is kept, beside the parameters, whose states say it themselves. Arithmetic is f32.
struct StateDtypes {
  /// Parameters have an f32 master each, "master.<parameter>": that is updated, the parameter is its nearest.
  bool masters = false;
  /// Of the gradients where they are not accumulated. The sum of f32 accumulators is rounded as it is read,
  /// so that the bits are those of a step without accumulation.
  ir::DType gradients = ir::DType::kF32;
  /// Of the accumulators: f32, or bf16 that each micro-batch is rounded onto stochastically.
  ir::DType accumulators = ir::DType::kF32;
  ir::DType moments = ir::DType::kF32;     ///< of the optimizer's states
  MomentCodes codes = MomentCodes::kNone;  ///< of adamw and adam, in place of `moments`
  /// What the update stores in bf16, with no f32 copy of it anywhere, is rounded stochastically.
  bool stochastic = false;
  bool operator==(const StateDtypes&) const = default;
};
std::string master_name(std::string_view parameter);
/// The state of a parameter's, or a buffer's, exponential average: f32, of class kOptimizerState.
std::string average_name(std::string_view state);

/// What an update of one parameter has beside it, and computes.
struct UpdateWork {
  int64_t state_bytes = 0;
  double flops = 0;
};

/// What shapes the program. All else is a hyper-parameter of the step.
struct OptimizerOptions {
  std::string name = "adamw";                 ///< one of optimizer_names()
  std::optional<double> max_grad_norm = 1.0;  ///< clipping by the global norm
  bool momentum = false;                      ///< sgd: with a momentum buffer; adafactor: with a first moment
  /// The gradients are those of a scaled loss; nothing: of the loss itself
  std::optional<ops::LossScaling> loss_scaling = {};
  StateDtypes state = {};
  bool averages = false;      ///< each parameter has an exponential average, which the update moves
  int64_t num_groups = 0;     ///< beside the run's own
  int64_t muon_ns_steps = 5;  ///< MuonHyper::ns_steps
  /// Ranks that share the update (ZeRO, shared_states.h): each has its part of the masters and states,
  /// updates what they are of, and all get the parameter. Gradients that have pieces come whole, or as this
  /// rank's.
  int64_t ranks = 1;
  /// The parameters that they share the update of are kept so too (ZeRO-3): each rank has its part, and none
  /// the whole. So are their averages.
  bool shares_parameters = false;
};

/// Of a parameter of that shape; of `update` its parts, its kind and whether it is of a block. Nothing for a
/// parameter that append_update refuses.
UpdateWork update_work(const OptimizerOptions& options, const ir::Shape& parameter, const Update& update);

/// The loss scale and its counts, f32[3] as ops/loss_scale.h has them; saved with a checkpoint. The host
/// writes its first value.
ir::StateDecl scaler_state();

/// Hyper-parameters of a step, from which the host writes the table. Each optimizer reads its own.
struct StepHyper {
  double learning_rate = 0;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 0.01;
  int64_t step = 1;  ///< from 1
  double momentum = 0, dampening = 0;
  bool nesterov = false;
  double schedule_factor = 1;  ///< learning_rate over its peak: what a group's own peak is multiplied with
  std::string_view optimizer = "adamw";  ///< as OptimizerOptions::name
  AdafactorHyper adafactor = {};
  MuonHyper muon = {};
};

/// What a group says itself; the rest is the run's.
struct GroupHyper {
  std::optional<double> learning_rate = {};  ///< its peak
  std::optional<double> weight_decay = {};   ///< of all that it names, whatever the run's scope
  std::optional<std::array<double, 2>> betas = {};
  bool operator==(const GroupHyper&) const = default;
};

/// The optimizers that there are, in the order of the list.
std::vector<std::string_view> optimizer_names();

/// Appends norm, clipping and the update of each parameter; declares the optimizer's states
/// ("<rule>.<state>.<parameter>", say "adamw.m.lm_head.weight", zero before the first step) and its table
/// optimizer.groups, assigns parameters and step.grad_norm f32[1], the norm before clipping. One f32[1] of
/// ones stands for "no clipping". With loss scaling the norm is that of the unscaled gradients, a step whose
/// gradients are not finite changes no parameter and no state, and the scaler moves on. `random` i32[4] is
/// what stochastic rounding draws from (ops.h), by step and parameter. Of a gradient that
/// has pieces this rank's is a sum over ranks, and the rest is not read. Errors: kInvalidArgument for an
/// unknown optimizer, and for a stack of linear maps with one whose rule is a matrix's (both named).
Status append_update(ir::Builder& b, const std::vector<Update>& updates, const OptimizerOptions& options,
                     ir::ValueId random = {});

/// average + share (value - average), the average's next value, of a state f32 that has the value `value`. As
/// torch.optim.swa_utils.AveragedModel: the average is the value itself after the first step.
void append_average(ir::Builder& b, std::string_view state, ir::ValueId value);

/// Fills the table optimizer.groups for a step. `hyper.optimizer` is the one of append_update, `groups` as
/// many as its num_groups.
void write_groups(const StepHyper& hyper, std::span<const GroupHyper> groups, float* table);

}  // namespace plimsoll::optimizers
