// One walk along the order. Values are known by their ids, which the walk does not change: results of
// products are replaced behind it.
#include "passes/training/fp8.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "ir/builder.h"
#include "ir/op_def.h"
#include "ir/op_query.h"
#include "ops/fp8_scaling.h"
#include "ops/op_list.h"
#include "ops/scaled_operand.h"
#include "passes/training/fp8_dump.h"
#include "passes/training/fp8_operands.h"
#include "passes/training/fp8_scales.h"
#include "passes/training/weight_copies.h"

namespace plimsoll::passes {
namespace {

using ir::Op;
using ir::OpId;
using ir::ValueId;
using numerics::OperandRole;

bool is_marked(const Op& op) { return op.attrs.flag("fp8"); }
/// Of the two marked ops: the one that sums over tokens.
bool is_weight_gradient(const Op& op) { return op.def->columns_to_rows != nullptr; }

/// What a program has before the walk: its products, and the states that their operands read.
struct Beginning {
  bool has_any = false;
  int64_t forward_products = 0;
  OperandStates states;
};

/// Reads the state before everything else.
ValueId read_first(ir::Graph& graph, std::string_view state) {
  ir::Builder b(graph, ops::find_op);
  const size_t known = graph.order().size();
  const ValueId value = b.read(state);
  put_last_first(graph, known);
  return value;
}

Beginning begin(ir::Graph& graph, const Fp8PassOptions& options) {
  Beginning found;
  bool forward = true;
  for (const OpId id : graph.order()) {
    const Op& op = graph.op(id);
    found.has_any = found.has_any || is_marked(op);
    if (is_marked(op) && forward) ++found.forward_products;
    forward = forward && id != options.last_forward_op;
  }
  const Fp8Settings& fp8 = options.fp8;
  if (!found.has_any) return found;
  if (fp8.form.recipe == numerics::Fp8Recipe::kDelayed) {
    const int64_t slots = ops::fp8_slots(found.forward_products);
    graph.declare_state(ops::fp8_scale_state(slots));
    graph.declare_state(ops::fp8_history_state(slots, fp8.history_len));
    found.states.scales = read_first(graph, ops::kFp8ScaleState);
  }
  const bool draws = numerics::operand_form(fp8.form, OperandRole::kGradient, false).stochastic;
  if (draws && options.last_forward_op.valid()) found.states.random = read_first(graph, fp8.random_state);
  return found;
}

class Fp8Pass {
 public:
  Fp8Pass(ir::Graph& graph, const Fp8PassOptions& options, const Beginning& beginning)
      : graph_(graph),
        options_(options),
        beginning_(beginning),
        rewriter_(graph, options.keep),
        operands_(rewriter_, options.fp8.form, beginning.states, 2 * beginning.forward_products),
        dump_(rewriter_, options.fp8.dumps && has_backward()) {}

  Result<Fp8Report> run() {
    look();
    for (const OpId id : rewriter_.order()) {
      const Op op = rewriter_.op(id);  // a copy: making ops moves the graph's own
      if (is_marked(op)) visit(id, op);
    }
    PLIMSOLL_ASSIGN(report_.replaced, rewriter_.finish());
    if (is_delayed() && has_backward())  // evaluation records nothing
      PLIMSOLL_TRY(append_magnitudes(graph_, options_.fp8, operands_.magnitudes(), beginning_.states.scales));
    PLIMSOLL_TRY(dump_.append(graph_));
    return std::move(report_);
  }

 private:
  [[nodiscard]] bool is_delayed() const { return beginning_.states.scales.valid(); }
  [[nodiscard]] bool has_backward() const { return options_.last_forward_op.valid(); }
  [[nodiscard]] bool is_forward(OpId id) const {
    return !has_backward() || rewriter_.position(id) <= rewriter_.position(options_.last_forward_op);
  }

  /// Which values weights' gradients read.
  void look() {
    for (const OpId id : rewriter_.order()) {
      const Op& op = rewriter_.op(id);
      if (is_marked(op) && is_weight_gradient(op) && stays(op).empty())
        inputs_of_dw_.insert(op.inputs[0].index);
    }
    if (is_delayed()) report_.slots = ops::fp8_slots(beginning_.forward_products);
  }

  void visit(OpId id, const Op& op) {
    const bool is_dw = is_weight_gradient(op), forward = is_forward(id);
    Fp8Product told{.layer = op.layer, .product = is_dw ? "dw" : forward ? "y" : "dx", .block = op.block};
    told.note = stays(op);
    if (told.note.empty()) {
      if (is_dw)
        weight_gradient(id, op, told);
      else
        map(id, op, forward, told);
    }
    report_.products.push_back(std::move(told));
  }

  /// Why a product stays in bf16; empty: it does not.
  [[nodiscard]] std::string stays(const Op& op) const {
    if (!is_weight_gradient(op)) return "";
    const SummedTokens tokens = operands_.summed_tokens(OperandRole::kInput, op.inputs[0]);
    if (options_.fp8.form.recipe == numerics::Fp8Recipe::kNvfp4 &&
        tokens.sequence % numerics::kHadamardRun != 0)
      return fmt::format("stays in bf16: {} tokens of a sequence are no runs of 16", tokens.sequence);
    if (tokens.segment >= 2 * tokens.sequence)  // a byte for a place
      return fmt::format("stays in bf16: {} tokens of a sequence would take {} bytes in blocks",
                         tokens.sequence, tokens.segment);
    return "";
  }

  /// y = x w or dx = dy w: sums over the last axis of its first operand.
  void map(OpId id, const Op& op, bool forward, Fp8Product& told) {
    const auto role = forward ? OperandRole::kInput : OperandRole::kGradient;
    const ValueId x = op.inputs[0], weight = op.inputs[1];
    std::optional<int64_t> slot, weight_slot;
    if (forward) {
      slot = 2 * num_forward_++;
      weight_slot = *slot + 1;
    }
    dump_.name(x, weight, op.layer);
    dump_.name(weight, weight, op.layer);
    const QuantisedOperand a = activation(id, x, role, SumAxis::kLast, slot);
    if (forward && inputs_of_dw_.contains(x.index)) activation(id, x, role, SumAxis::kRows, slot);
    const SumAxis sums = op.attrs.flag("transposed") ? SumAxis::kRows : SumAxis::kLast;
    const QuantisedOperand b = operands_.weight(id, weight, sums, weight_slot);
    dump_.keep(weight, OperandRole::kWeight, b);
    const int64_t inner = rewriter_.type(x).shape.dim(-1);
    const ValueId bias = op.inputs.size() > 2 ? op.inputs[2] : ValueId{};
    multiply(id, a, b, {.inner = inner, .bias = bias}, told);
  }

  /// dw = dy^T x, or x^T dy: sums over tokens.
  void weight_gradient(OpId id, const Op& op, Fp8Product& told) {
    const ValueId x = op.inputs[0], dy = op.inputs[1];
    const SummedTokens tokens = operands_.summed_tokens(OperandRole::kInput, x);
    dump_.name_as(dy, x);
    const QuantisedOperand in = activation(id, x, OperandRole::kInput, SumAxis::kRows);
    const QuantisedOperand out = activation(id, dy, OperandRole::kGradient, SumAxis::kRows);
    const bool transposed = op.attrs.flag("transposed");
    const ValueId acc = op.inputs.size() > 2 ? op.inputs[2] : ValueId{};
    multiply(id, transposed ? in : out, transposed ? out : in,
             {.inner = tokens.inner(),
              .segment = tokens.segment,
              .terms = tokens.has_zeros() ? tokens.sequence : 0,
              .acc = acc},
             told);
  }

  QuantisedOperand activation(OpId anchor, ValueId value, OperandRole role, SumAxis sums,
                              std::optional<int64_t> slot = {}) {
    const QuantisedOperand operand = operands_.activation(anchor, value, role, sums, slot);
    dump_.keep(value, role, operand);
    return operand;
  }

  struct Extents {
    int64_t inner = 0, segment = 0;
    int64_t terms = 0;  ///< of a segment; 0: all
    ValueId bias = {}, acc = {};
  };
  void multiply(OpId id, const QuantisedOperand& a, const QuantisedOperand& b, const Extents& e,
                Fp8Product& told) {
    const ir::TensorType type = rewriter_.type(rewriter_.op(id).outputs[0]);
    told.left = numerics::info(a.form.scheme).name;
    told.right = numerics::info(b.form.scheme).name;
    told.note = note_of(a, b, e);
    ir::Attrs attrs{{"a_scheme", told.left},
                    {"b_scheme", told.right},
                    {"inner", e.inner},
                    {"columns", type.shape.dim(-1)},
                    {"precision", std::string("bf16")}};
    if (a.across) attrs.set("a_across", true);
    if (b.across) attrs.set("b_across", true);
    if (e.segment > 0) attrs.set("segment", e.segment);
    if (e.terms > 0) attrs.set("terms", e.terms);
    if (type.dtype != ir::DType::kF32) attrs.set("out", std::string(ir::name(type.dtype)));
    std::vector<ValueId> inputs = {a.codes, a.scales, b.codes, b.scales, e.bias, e.acc};
    if (numerics::is_nvfp4(a.form.scheme)) inputs.insert(inputs.end(), {a.amax, b.amax});
    while (!inputs.back().valid()) inputs.pop_back();
    told.computed_in = computed_in(inputs, type, attrs);
    const auto result = rewriter_.before(id, "scaled_matmul", std::move(inputs), std::move(attrs));
    rewriter_.replace(rewriter_.op(id).outputs[0], result[0]);
    rewriter_.remove(id);
  }

  [[nodiscard]] std::string computed_in(const std::vector<ValueId>& inputs, const ir::TensorType& result,
                                        const ir::Attrs& attrs) const {
    if (!options_.fp8.computed_in) return "";
    ir::OpTypes types{"scaled_matmul", {}, {result}, attrs};
    for (const ValueId input : inputs)
      types.inputs.push_back(input.valid() ? rewriter_.type(input) : ir::TensorType{});
    return std::string(options_.fp8.computed_in(types));
  }

  static std::string note_of(const QuantisedOperand& a, const QuantisedOperand& b, const Extents& e) {
    std::string note;
    const int64_t width =
        std::max(numerics::info(a.form.scheme).block_cols, numerics::info(b.form.scheme).block_cols);
    const int64_t terms = e.terms > 0 ? e.terms : e.inner;
    if (width > 0 && terms % width != 0)
      note = fmt::format("the last block of {}{} has {} terms, the rest counts as 0", width,
                         e.terms > 0 ? " in each sequence" : "", terms % width);
    const auto add = [&](bool holds, std::string_view what) {
      if (holds) note += fmt::format("{}{}", note.empty() ? "" : "; ", what);
    };
    add(a.form.hadamard, "Hadamard transform");
    add(a.form.stochastic || b.form.stochastic, "gradients rounded stochastically");
    return note;
  }

  ir::Graph& graph_;
  const Fp8PassOptions& options_;
  const Beginning beginning_;
  Rewriter rewriter_;
  OperandQuantiser operands_;
  OperandDump dump_;
  Fp8Report report_;
  std::set<int32_t> inputs_of_dw_;
  int64_t num_forward_ = 0;
};

}  // namespace

bool takes_fp8(const ir::Graph& graph, const Op& op) {
  return ir::takes_attr(op, "fp8") && !ir::is_block(graph.type(op.inputs[1]).dtype) &&
         op.layer.find("lora") == std::string::npos;
}

Result<Fp8Report> fp8(ir::Graph& graph, const Fp8PassOptions& options) {
  const Beginning beginning = begin(graph, options);
  if (!beginning.has_any) return Fp8Report{};
  return Fp8Pass(graph, options, beginning).run();
}

}  // namespace plimsoll::passes
