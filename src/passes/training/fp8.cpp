// One walk along the order. Values are known by their ids, which the walk does not change: results of
// products are replaced behind it.
#include "passes/training/fp8.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <tuple>

#include "ir/builder.h"
#include "ir/op_def.h"
#include "ops/elementwise.h"
#include "ops/fp8_scaling.h"
#include "ops/granules.h"
#include "ops/op_list.h"
#include "ops/scaled_operand.h"

namespace plimsoll::passes {
namespace {

using ir::Op;
using ir::OpId;
using ir::ValueId;
using numerics::OperandRole;

/// A quantised operand in the program.
struct Quantised {
  numerics::OperandForm form;
  ValueId codes, scales, amax;
  bool across = false;
};

bool is_marked(const Op& op) { return op.attrs.flag("fp8"); }
/// Of the two marked ops: the one that sums over tokens.
bool is_weight_gradient(const Op& op) { return op.def->columns_to_rows != nullptr; }

/// What a program has before the walk: its products, and the states that their operands read.
struct Beginning {
  bool has_any = false;
  int64_t forward_products = 0;
  ValueId scales, random;
};

/// Reads the state before everything else.
ValueId read_first(ir::Graph& graph, std::string_view state) {
  ir::Builder b(graph, ops::find_op);
  const ValueId value = b.read(state);
  std::vector<OpId> order = graph.order();
  std::rotate(order.begin(), std::prev(order.end()), order.end());
  graph.set_order(std::move(order));
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
    found.scales = read_first(graph, ops::kFp8ScaleState);
  }
  const bool draws = numerics::operand_form(fp8.form, OperandRole::kGradient, false).stochastic;
  if (draws && options.last_forward_op.valid()) found.random = read_first(graph, fp8.random_state);
  return found;
}

class Fp8Pass {
 public:
  Fp8Pass(ir::Graph& graph, const Fp8PassOptions& options, const Beginning& beginning)
      : graph_(graph), options_(options), beginning_(beginning), rewriter_(graph, options.keep) {}

  Result<Fp8Report> run() {
    look();
    for (const OpId id : rewriter_.order()) {
      const Op op = rewriter_.op(id);  // a copy: making ops moves the graph's own
      if (is_marked(op)) visit(id, op);
    }
    PLIMSOLL_ASSIGN(report_.replaced, rewriter_.finish());
    PLIMSOLL_TRY(record());
    PLIMSOLL_TRY(dump());
    return std::move(report_);
  }

 private:
  [[nodiscard]] const numerics::Fp8Options& form() const { return options_.fp8.form; }
  [[nodiscard]] bool is_delayed() const { return form().recipe == numerics::Fp8Recipe::kDelayed; }
  [[nodiscard]] bool is_forward(OpId id) const {
    return !options_.last_forward_op.valid() ||
           rewriter_.position(id) <= rewriter_.position(options_.last_forward_op);
  }

  /// Which values weights' gradients read.
  void look() {
    for (const OpId id : rewriter_.order()) {
      const Op& op = rewriter_.op(id);
      if (is_marked(op) && is_weight_gradient(op) && stays(op).empty())
        inputs_of_dw_.insert(op.inputs[0].index);
    }
    if (is_delayed()) report_.slots = ops::fp8_slots(beginning_.forward_products);
    next_gradient_slot_ = 2 * beginning_.forward_products;
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
    if (form().recipe != numerics::Fp8Recipe::kNvfp4 || !is_weight_gradient(op)) return "";
    const ops::Granules tokens(rewriter_.type(op.inputs[0]).shape);
    if (tokens.segment() % numerics::kHadamardRun == 0) return "";
    return fmt::format("stays in bf16: {} tokens of a sequence are no runs of 16", tokens.segment());
  }

  /// y = x w or dx = dy w: sums over the last axis of its first operand.
  void map(OpId id, const Op& op, bool forward, Fp8Product& told) {
    const auto role = forward ? OperandRole::kInput : OperandRole::kGradient;
    const ValueId x = op.inputs[0], weight = op.inputs[1];
    const int64_t slot = forward ? 2 * num_forward_ : -1;
    if (forward) ++num_forward_;
    modules_.emplace(x.index, module_of(weight, op.layer));
    modules_.emplace(weight.index, module_of(weight, op.layer));
    const Quantised a = shared(id, x, role, true, slot);
    if (forward && inputs_of_dw_.contains(x.index)) shared(id, x, role, false, slot);
    const Quantised b = weights(id, weight, !op.attrs.flag("transposed"), forward ? slot + 1 : -1);
    const int64_t inner = rewriter_.type(x).shape.dim(-1);
    const ValueId bias = op.inputs.size() > 2 ? op.inputs[2] : ValueId{};
    multiply(id, a, b, {.inner = inner, .bias = bias}, told);
  }

  /// dw = dy^T x, or x^T dy: sums over tokens.
  void weight_gradient(OpId id, const Op& op, Fp8Product& told) {
    const ValueId x = op.inputs[0], dy = op.inputs[1];
    const ops::Granules tokens(rewriter_.type(x).shape);
    if (const auto known = modules_.find(x.index); known != modules_.end())
      modules_.emplace(dy.index, std::string(known->second));
    const Quantised in = shared(id, x, OperandRole::kInput, false, -1);
    const Quantised out = shared(id, dy, OperandRole::kGradient, false, -1);
    const bool transposed = op.attrs.flag("transposed");
    const ValueId acc = op.inputs.size() > 2 ? op.inputs[2] : ValueId{};
    multiply(id, transposed ? in : out, transposed ? out : in,
             {.inner = tokens.rows(), .segment = tokens.segment(), .acc = acc}, told);
  }

  /// One for all products that take the value so.
  Quantised shared(OpId anchor, ValueId value, OperandRole role, bool along, int64_t slot) {
    const auto form_now = numerics::operand_form(form(), role, !along);
    const bool turned = !along && numerics::info(form_now.scheme).block_rows == 1;
    const auto key = std::tuple(value.index, form_now.scheme, turned);
    const auto known = quantised_.find(key);
    if (known != quantised_.end()) return placed(known->second, along, turned);
    if (slot < 0) slot = slot_of(value);
    const Quantised made = quantise(anchor, value, form_now, turned, slot, true, true);
    quantised_.emplace(key, made);
    note_dump(value, role == OperandRole::kInput ? "x" : "dy", turned, made);
    return placed(made, along, turned);
  }

  static Quantised placed(Quantised q, bool along, bool turned) {
    q.across = !along && !turned;
    return q;
  }

  /// A weight's copy lives for one product. `along`: the product sums over the last axis.
  Quantised weights(OpId anchor, ValueId value, bool along, int64_t slot) {
    const auto form_now = numerics::operand_form(form(), OperandRole::kWeight, !along);
    const bool turned = !along && numerics::info(form_now.scheme).block_rows == 1;
    const bool records = slot >= 0;
    if (records)
      slots_.emplace(value.index, slot);
    else
      slot = slot_of(value);
    const Quantised made = quantise(anchor, value, form_now, turned, slot, false, records);
    note_dump(value, "w", turned, made);
    return placed(made, along, turned);
  }

  /// The slot that the value has, or the next of gradients.
  int64_t slot_of(ValueId value) {
    const auto [at, is_new] = slots_.emplace(value.index, next_gradient_slot_);
    if (is_new) ++next_gradient_slot_;
    return at->second;
  }

  Quantised quantise(OpId anchor, ValueId value, const numerics::OperandForm& how, bool turned, int64_t slot,
                     bool from_bf16, bool records) {
    ir::Attrs attrs{{"scheme", std::string(numerics::info(how.scheme).name)}};
    if (turned) attrs.set("transposed", true);
    if (how.hadamard) attrs.set("hadamard", true);
    if (from_bf16) attrs.set("precision", std::string("bf16"));
    std::vector<ValueId> inputs = {value};
    if (is_delayed()) {
      slots_.emplace(value.index, slot);
      attrs.set("slot", slot);
      inputs.push_back(beginning_.scales);
    }
    if (how.stochastic) {
      inputs.resize(3);
      inputs[2] = beginning_.random;
      attrs.set("stochastic", true);
      attrs.set("key", key_of(anchor, turned));
    }
    const auto results = rewriter_.before(anchor, "quantize_operand", std::move(inputs), std::move(attrs));
    Quantised made{how, results[0], results[1], results.size() > 2 ? results[2] : ValueId{}};
    if (is_delayed() && records && made.amax.valid()) recorded_.emplace(slot, made.amax);
    return made;
  }

  /// Its own for each gradient: the products' number in the program, and whether it is turned.
  int64_t key_of(OpId anchor, bool turned) {
    return ops::random_key(rewriter_.op(anchor).layer,
                           fmt::format("fp8.{}{}", num_drawn_++, turned ? ".t" : ""));
  }

  struct Extents {
    int64_t inner = 0, segment = 0;
    ValueId bias = {}, acc = {};
  };
  void multiply(OpId id, const Quantised& a, const Quantised& b, const Extents& e, Fp8Product& told) {
    const ir::TensorType type = rewriter_.type(rewriter_.op(id).outputs[0]);
    ir::Attrs attrs{{"a_scheme", std::string(numerics::info(a.form.scheme).name)},
                    {"b_scheme", std::string(numerics::info(b.form.scheme).name)},
                    {"inner", e.inner},
                    {"columns", type.shape.dim(-1)},
                    {"precision", std::string("bf16")}};
    if (a.across) attrs.set("a_across", true);
    if (b.across) attrs.set("b_across", true);
    if (e.segment > 0) attrs.set("segment", e.segment);
    if (type.dtype != ir::DType::kF32) attrs.set("out", std::string(ir::name(type.dtype)));
    std::vector<ValueId> inputs = {a.codes, a.scales, b.codes, b.scales, e.bias, e.acc};
    if (numerics::is_nvfp4(a.form.scheme)) inputs.insert(inputs.end(), {a.amax, b.amax});
    while (!inputs.back().valid()) inputs.pop_back();
    const auto result = rewriter_.before(id, "scaled_matmul", std::move(inputs), std::move(attrs));
    rewriter_.replace(rewriter_.op(id).outputs[0], result[0]);
    rewriter_.remove(id);
    told.left = numerics::info(a.form.scheme).name;
    told.right = numerics::info(b.form.scheme).name;
    told.note = note_of(a, b, e);
  }

  static std::string note_of(const Quantised& a, const Quantised& b, const Extents& e) {
    std::string note;
    const int64_t width =
        std::max(numerics::info(a.form.scheme).block_cols, numerics::info(b.form.scheme).block_cols);
    if (width > 0 && e.inner % width != 0)
      note = fmt::format("the last block of {} has {} terms, the rest counts as 0", width, e.inner % width);
    const auto add = [&](bool holds, std::string_view what) {
      if (holds) note += fmt::format("{}{}", note.empty() ? "" : "; ", what);
    };
    add(a.form.hadamard, "Hadamard transform");
    add(a.form.stochastic || b.form.stochastic, "gradients rounded stochastically");
    return note;
  }

  /// "model.layers.0.mlp.down_proj", by the weight's state; else the op's layer.
  [[nodiscard]] std::string module_of(ValueId weight, const std::string& layer) const {
    const Op& made_by = rewriter_.producer(weight);
    if (made_by.def->state != ir::StateAccess::kRead) return layer;
    std::string name = made_by.attrs.str("name");
    if (name.ends_with(".weight")) name.resize(name.size() - std::string_view(".weight").size());
    return name;
  }

  void note_dump(ValueId value, std::string_view operand, bool turned, const Quantised& made) {
    if (!options_.fp8.dumps || !options_.last_forward_op.valid()) return;
    const auto module = modules_.find(value.index);
    if (module == modules_.end()) return;
    dumped_.emplace(fmt::format("q.{}.{}{}", module->second, operand, turned ? "_t" : ""), made);
  }

  Status dump() {
    ir::Builder b(graph_, ops::find_op);
    for (const auto& [name, made] : dumped_) {
      const auto keep = [&](const char* part, ValueId v) {
        graph_.declare_state({name + part, graph_.type(v), ir::StateClass::kOutput});
        b.assign(name + part, v);
      };
      keep(".values", made.codes);
      keep(".scales", made.scales);
      if (numerics::is_nvfp4(made.form.scheme)) keep(".amax", made.amax);
    }
    return b.status();
  }

  /// The step's magnitudes into the history; of programs with gradients, not of evaluation.
  Status record() {
    if (!is_delayed() || !options_.last_forward_op.valid() || recorded_.empty()) return Ok{};
    ir::Builder b(graph_, ops::find_op);
    std::vector<int64_t> slots;
    std::vector<ValueId> amax;
    for (const auto& [slot, value] : recorded_) {
      slots.push_back(slot);
      amax.push_back(value);
    }
    const ValueId history = ops::record_amax(b, b.read(ops::kFp8HistoryState), amax, std::move(slots));
    if (options_.fp8.ends_step)
      append_next_scales(b, options_.fp8, history);
    else
      b.assign(ops::kFp8HistoryState, history);
    return b.status();
  }

  ir::Graph& graph_;
  const Fp8PassOptions& options_;
  const Beginning beginning_;
  Rewriter rewriter_;
  Fp8Report report_;
  std::set<int32_t> inputs_of_dw_;
  std::map<std::tuple<int32_t, numerics::Scheme, bool>, Quantised> quantised_;  // by value
  std::map<int32_t, int64_t> slots_;                                            // by value
  std::map<int64_t, ValueId> recorded_;                                         // amax by slot
  std::map<int32_t, std::string> modules_;                                      // by value
  std::map<std::string, Quantised> dumped_;                                     // by the states' name
  int64_t num_forward_ = 0, next_gradient_slot_ = 0, num_drawn_ = 0;
};

}  // namespace

void append_next_scales(ir::Builder& b, const Fp8Settings& fp8, ValueId history) {
  // The read that operands have, so that what consumes it stands behind them.
  ValueId scales;
  for (const OpId id : b.graph().order()) {
    const Op& op = b.graph().op(id);
    const bool reads = op.def->state == ir::StateAccess::kRead && op.attrs.str("name") == ops::kFp8ScaleState;
    if (reads && !scales.valid()) scales = op.outputs[0];
  }
  if (!scales.valid()) scales = b.read(ops::kFp8ScaleState);
  const ops::Fp8Scales next = ops::next_fp8_scales(b, history, scales, fp8.delayed, fp8.form.hybrid);
  b.assign(ops::kFp8HistoryState, next.history);
  b.assign(ops::kFp8ScaleState, next.scales);
}

Result<Fp8Report> fp8(ir::Graph& graph, const Fp8PassOptions& options) {
  const Beginning beginning = begin(graph, options);
  if (!beginning.has_any) return Fp8Report{};
  return Fp8Pass(graph, options, beginning).run();
}

}  // namespace plimsoll::passes
