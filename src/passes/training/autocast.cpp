// One walk along the order: an op's attributes, then its result types again, so that the next op sees them.
#include "passes/training/autocast.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "ir/op_def.h"
#include "ir/op_query.h"
#include "ops/operands.h"
#include "ops/rounding.h"

namespace plimsoll::passes {
namespace {

using ir::AutocastClass;
using ir::DType;
using ir::Op;
using ir::OpId;
using ir::ValueId;
using ops::Precision;

class Autocast {
 public:
  Autocast(ir::Graph& graph, const AutocastOptions& options)
      : graph_(graph), options_(options), rewriter_(graph, options.keep), names_(graph) {
    report_.used.assign(options.overrides.size(), false);
    int32_t blocks = 0;
    for (const OpId id : graph.order()) blocks = std::max(blocks, graph.op(id).block + 1);
    first_kept_block_ = blocks - static_cast<int32_t>(std::ceil(options.fp8.keep_last_layers * blocks));
  }

  Result<AutocastReport> run() {
    for (const OpId id : rewriter_.order()) PLIMSOLL_TRY(visit(id));
    PLIMSOLL_ASSIGN(report_.replaced, rewriter_.finish());
    return std::move(report_);
  }

 private:
  Status visit(OpId id) {
    const ir::OpDef& def = *graph_.op(id).def;
    if (def.state == ir::StateAccess::kRead) return Ok{};
    if (def.state == ir::StateAccess::kAssign) {
      const ir::StateDecl* state = graph_.find_state(graph_.op(id).attrs.str("name"));
      return state == nullptr ? Status(Ok{}) : assign_as(id, state->type.dtype);
    }
    const Choice choice = choose(graph_.op(id));
    if (def.autocast == AutocastClass::kLowPrecision) set_precision(id, choice.precision);
    if (choice.fp8) graph_.op(id).attrs.set("fp8", true);
    if (def.autocast == AutocastClass::kOneDtype) use_as_widest(id);
    // A table that is short itself gives its rows as they are, without a cast behind it.
    const DType low = ops::stored_dtype(options_.precision);
    const bool begins_short = def.begins_residual && options_.short_residual;
    if (begins_short && graph_.type(graph_.op(id).inputs[0]).dtype == low) store_as(id, 0, low);
    PLIMSOLL_TRY(infer(id));
    if (begins_short) shorten(id);
    tell(id, choice);
    return Ok{};
  }

  /// A result that nothing but the state takes is stored in the state's dtype at once, unrounded.
  Status assign_as(OpId id, DType dtype) {
    const ValueId v = graph_.op(id).inputs[0];
    const OpId maker = graph_.value(v).producer;
    const auto result = static_cast<size_t>(graph_.value(v).result_index);
    if (graph_.type(v).dtype != dtype && rewriter_.only_use(v, id) && store_as(maker, result, dtype))
      PLIMSOLL_TRY(infer(maker));
    use_as(id, 0, dtype);
    return Ok{};
  }

  /// False where the op has no attribute for that.
  bool store_as(OpId id, size_t result, DType dtype) {
    const ir::OutputDtype* stored_as = ir::output_dtype(*graph_.op(id).def, result);
    if (stored_as != nullptr) graph_.op(id).attrs.set(stored_as->attr, std::string(ir::name(dtype)));
    return stored_as != nullptr;
  }

  struct Choice {
    Precision precision;  // f32 where nothing is rounded
    std::string why;
    bool fp8 = false;  // its operands are quantised later
  };

  const PrecisionOverride* overriding(const Op& op) {
    if (options_.overrides.empty() || op.def->autocast != AutocastClass::kLowPrecision) return nullptr;
    const OpNames& names = names_.of(op);
    for (const auto* list : {&names.by_parts, &names.whole})
      report_.names.insert(report_.names.end(), list->begin(), list->end());
    for (size_t i = 0; i < options_.overrides.size(); ++i) {
      if (!matches(options_.overrides[i].pattern, names)) continue;
      report_.used[i] = true;
      return &options_.overrides[i];
    }
    return nullptr;
  }

  Choice choose(const Op& op) {
    if (const PrecisionOverride* o = overriding(op); o != nullptr)
      return {o->precision, fmt::format("precision_overrides: {}", o->pattern),
              o->fp8 && takes_fp8(graph_, op)};
    switch (op.def->autocast) {
      case AutocastClass::kLowPrecision:
        return options_.fp8.enabled ? product_choice(op) : Choice{options_.precision, "matrix products"};
      case AutocastClass::kF32:
        return {Precision::kF32, "a norm, a reduction or a loss"};
      case AutocastClass::kWidest:
      case AutocastClass::kOneDtype:
        return {Precision::kF32, "stored as its widest operand"};
      case AutocastClass::kAsInputs:
        break;
    }
    const bool widens =
        op.def->begins_residual && !options_.short_residual && graph_.type(op.inputs[0]).dtype != DType::kF32;
    return {Precision::kF32, widens ? "begins the residual stream, which is f32" : "stored as its operand"};
  }

  Choice product_choice(const Op& op) const {
    if (op.block < 0) return {options_.precision, "outside the blocks"};
    if (!takes_fp8(graph_, op)) return {options_.precision, "no linear layer of the model's own weights"};
    if (op.block >= first_kept_block_) return {options_.precision, "fp8.keep_last_layers"};
    return {options_.precision, "a linear layer of a block", true};
  }

  /// Products: by attribute where the op has one; else its floating operands are cast to what they are
  /// multiplied in, and of tf32, which no dtype stores, an attribute tells.
  void set_precision(OpId id, Precision precision) {
    const bool plain = precision == Precision::kF32;
    if (graph_.op(id).def->rounded_operands > 0) {
      if (!plain) graph_.op(id).attrs.set("precision", std::string(ops::name(precision)));
      store_as(id, 0, ops::stored_dtype(precision));
      return;
    }
    const size_t inputs = graph_.op(id).inputs.size();
    for (size_t i = 0; i < inputs; ++i) {
      const ValueId v = graph_.op(id).inputs[i];
      if (v.valid() && ir::is_floating(graph_.type(v).dtype)) use_as(id, i, ops::stored_dtype(precision));
    }
    if (precision == Precision::kTf32)
      graph_.op(id).attrs.set("precision", std::string(ops::name(precision)));
  }

  /// Parts of a concatenation have one dtype.
  void use_as_widest(OpId id) {
    const std::vector<ValueId> parts = graph_.op(id).inputs;
    const DType first = graph_.type(parts[0]).dtype;
    const bool same =
        std::all_of(parts.begin(), parts.end(), [&](ValueId v) { return graph_.type(v).dtype == first; });
    for (size_t i = 0; !same && i < parts.size(); ++i) use_as(id, i, DType::kF32);
  }

  /// Operand `i` of the op becomes its value in that dtype; one cast serves all uses.
  void use_as(OpId id, size_t i, DType dtype) {
    const ValueId v = graph_.op(id).inputs[i];
    const DType has = graph_.type(v).dtype;
    if (has == dtype || !ir::is_floating(has) || !ir::is_floating(dtype)) return;
    ValueId& cast = casts_[{v.index, dtype}];
    if (!cast.valid()) cast = rewriter_.before(id, "cast", {v}, ops::with_out({}, dtype))[0];
    graph_.op(id).inputs[i] = cast;
  }

  Status infer(OpId id) {
    const Op& op = graph_.op(id);
    ir::OpTypes types = ir::op_types(graph_, op);
    types.outputs.clear();
    auto inferred = op.def->infer(types);
    if (!inferred) return std::move(inferred).error().at(op.layer);
    for (size_t i = 0; i < op.outputs.size(); ++i) graph_.value(op.outputs[i]).type = (*inferred)[i];
    return Ok{};
  }

  /// What follows the embedding uses its rows in the low precision.
  void shorten(OpId id) {
    const ValueId rows = graph_.op(id).outputs[0];
    const DType dtype = ops::stored_dtype(options_.precision);
    const std::vector<OpId> users = rewriter_.uses_now(rows);  // the cast becomes one
    for (const OpId user : users)
      for (size_t i = 0; i < graph_.op(user).inputs.size(); ++i)
        if (graph_.op(user).inputs[i] == rows) use_as(user, i, dtype);
  }

  [[nodiscard]] static std::string computes(const Op& op, const Choice& choice) {
    if (choice.fp8) return "fp8 operands, f32 sums";
    const Precision precision = choice.precision;
    if (op.def->autocast != AutocastClass::kLowPrecision || precision == Precision::kF32) return "f32";
    if (op.def->rounded_operands > 0) return fmt::format("{} products, f32 sums", ops::name(precision));
    // Nothing but what is stored is rounded, and tf32 stores f32: it is for a card's units alone.
    if (ops::stored_dtype(precision) == DType::kF32)
      return op.attrs.find("precision") == nullptr ? "f32"
                                                   : "f32; tf32 products, f32 sums and softmax on a card";
    // Kernels multiply bf16 where the processor does (attention).
    if (precision == Precision::kBf16) return "bf16 products, f32 sums and softmax";
    return fmt::format("f32, of {} operands", ops::name(precision));
  }

  void tell(OpId id, const Choice& choice) {
    const Op& op = graph_.op(id);
    if (op.outputs.empty() || op.def->is_view || !ir::is_floating(graph_.type(op.outputs[0]).dtype)) return;
    const auto dtype = [&](size_t i) { return std::string(ir::name(graph_.type(op.outputs[i]).dtype)); };
    const ir::NormForm& norm = op.def->norm;
    const bool sums = norm.sum >= 0;
    report_.choices.push_back({std::string(op.def->name), op.layer, computes(op, choice),
                               dtype(norm.y < 0 ? 0 : static_cast<size_t>(norm.y)),
                               sums ? dtype(static_cast<size_t>(norm.sum)) : "", choice.why, op.block});
  }

  ir::Graph& graph_;
  const AutocastOptions& options_;
  Rewriter rewriter_;
  OverrideNames names_;
  AutocastReport report_;
  int32_t first_kept_block_ = 0;
  std::map<std::pair<int32_t, DType>, ValueId> casts_;  // by value and dtype
};

}  // namespace

Result<AutocastReport> autocast(ir::Graph& graph, const AutocastOptions& options) {
  if (options.precision == ops::Precision::kF32 && options.overrides.empty()) return AutocastReport{};
  return Autocast(graph, options).run();
}

}  // namespace plimsoll::passes
