// One walk finds the sources, a second gives backward's ops their versions of forward's values.
#include "passes/training/fp8_activations.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "ir/builder.h"
#include "ir/op_def.h"
#include "ir/op_query.h"
#include "numerics/blocks.h"
#include "ops/op_list.h"

namespace plimsoll::passes {
namespace {

using ir::Op;
using ir::OpId;
using ir::ValueId;

constexpr numerics::Scheme kKept = numerics::Scheme::kFp8Block1x128;

class Fp8Activations {
 public:
  Fp8Activations(ir::Graph& graph, const Fp8ActivationsOptions& options)
      : graph_(graph), rewriter_(graph, options.keep), end_(rewriter_.position(options.last_forward_op)) {}

  Result<Fp8ActivationsReport> run() {
    for (size_t i = 0; i <= end_; ++i) find_sources(rewriter_.order()[i]);
    for (size_t i = end_ + 1; i < rewriter_.order().size(); ++i) {
      const OpId id = rewriter_.order()[i];
      if (reads_forward(rewriter_.op(id))) continue;
      for (size_t input = 0; input < rewriter_.op(id).inputs.size(); ++input) {
        const ValueId v = rewriter_.op(id).inputs[input], read = version(v, id);
        if (read != v) graph_.op(id).inputs[input] = read;
      }
    }
    PLIMSOLL_ASSIGN(report_.replaced, rewriter_.finish());
    return std::move(report_);
  }

 private:
  [[nodiscard]] bool is_forward(ValueId v) const {
    const OpId producer = rewriter_.producer_id(v);
    return at_(producer) < num_ops_ && rewriter_.position(producer) <= end_;
  }
  static size_t at_(OpId id) { return static_cast<size_t>(id.index); }
  /// Not of backward, though behind forward: what records or keeps forward's values, but for a copy that
  /// backward alone multiplies.
  [[nodiscard]] bool reads_forward(const Op& op) const {
    if (ir::takes_attr(op, "slots")) return true;
    if (op.def->state != ir::StateAccess::kAssign) return false;
    return !versions_.contains(op.inputs[0]) || !rewriter_.producer(op.inputs[0]).attrs.flag("transposed");
  }

  /// Of an operand of a product: what is between it and its sources may be computed again.
  void find_sources(OpId id) {
    const Op& quantise = rewriter_.op(id);
    if (!ir::takes_attr(quantise, "hadamard") || quantise.block < 0) return;
    const Op& maker = rewriter_.producer(quantise.inputs[0]);
    const bool again = maker.def->recompute == ir::RecomputeClass::kNearlyFree && !maker.def->is_view &&
                       !maker.def->has_effect && maker.def->state == ir::StateAccess::kNone &&
                       ir::op_consumes(maker).empty();
    if (!again) return;
    std::vector<ValueId> found;
    if (maker.def->norm.sum >= 0) {
      found = {maker.outputs[static_cast<size_t>(maker.def->norm.sum)]};
      if (!is_source(found[0])) return;
    } else {
      for (const ValueId v : maker.inputs)
        if (v.valid() && is_source(v)) found.push_back(v);
    }
    if (found.empty()) return;
    sources_.insert(found.begin(), found.end());
    again_.insert({rewriter_.producer_id(quantise.inputs[0]), id});
  }

  /// A value of the model's in a storage of its own, which backward reads.
  [[nodiscard]] bool is_source(ValueId v) const {
    const Op& maker = rewriter_.producer(v);
    const ir::DType dtype = rewriter_.type(v).dtype;
    const auto uses = rewriter_.uses(v);
    return maker.def->state == ir::StateAccess::kNone && !maker.def->is_view &&
           (dtype == ir::DType::kF32 || dtype == ir::DType::kBf16) &&
           std::ranges::any_of(uses, [&](OpId user) { return rewriter_.position(user) > end_; });
  }

  /// What stands for a value of forward in backward, from op `anchor` on.
  ValueId version(ValueId v, OpId anchor) {
    if (!v.valid() || !is_forward(v)) return v;
    if (const auto known = versions_.find(v); known != versions_.end()) return known->second;
    const ValueId made = sources_.contains(v) ? from_copy(v, anchor) : again(v, anchor);
    return versions_[v] = made;
  }

  ValueId from_copy(ValueId v, OpId anchor) {
    const OpId maker = rewriter_.producer_id(v);
    const OpId next = rewriter_.order()[rewriter_.position(maker) + 1];
    const std::string scheme(numerics::info(kKept).name);
    const ir::TensorType type = rewriter_.type(v);
    const auto copy = rewriter_.before(next, "quantize_operand", {v}, {{"scheme", scheme}});
    if (!copy[0].valid()) return v;
    stand_with(copy[0], maker);
    ir::Attrs attrs{{"scheme", scheme}};
    if (type.dtype != ir::DType::kBf16) attrs.set("out", std::string(ir::name(type.dtype)));
    const ValueId read =
        rewriter_.before(anchor, "dequantize_operand", {copy[0], copy[1]}, std::move(attrs))[0];
    stand_with(read, maker);
    tell(rewriter_.op(maker), type.bytes(),
         rewriter_.type(copy[0]).bytes() + rewriter_.type(copy[1]).bytes());
    return read;
  }

  /// The same value where nothing that it comes from has a copy.
  ValueId again(ValueId v, OpId anchor) {
    const OpId maker_id = rewriter_.producer_id(v);
    const Op maker = rewriter_.op(maker_id);
    const bool follows = again_.contains(maker_id) || maker.def->is_view;
    if (!follows) return v;
    const auto result = static_cast<size_t>(rewriter_.graph().value(v).result_index);
    if (maker.def->norm.sum >= 0) return norm_again(v, maker_id, anchor);
    std::vector<ValueId> inputs = maker.inputs;
    for (ValueId& input : inputs) input = version(input, anchor);
    if (inputs == maker.inputs) return v;
    const auto made = rewriter_.before(anchor, maker.def->name, std::move(inputs), maker.attrs);
    for (size_t i = 0; i < made.size(); ++i) {
      stand_with(made[i], maker_id);
      versions_.emplace(maker.outputs[i], made[i]);
    }
    return made[result];
  }

  /// Norm and statistics of a sum, from its copy.
  ValueId norm_again(ValueId v, OpId maker_id, OpId anchor) {
    const Op maker = rewriter_.op(maker_id);
    const auto sum = static_cast<size_t>(maker.def->norm.sum);
    if (maker.outputs[sum] == v) return v;  // no source: it cannot be
    const ir::OpDef* norm = alone(*maker.def);
    if (norm == nullptr) return v;
    std::vector<ValueId> inputs = {version(maker.outputs[sum], anchor)};
    inputs.insert(inputs.end(), maker.inputs.begin() + 2, maker.inputs.end());
    const auto made = rewriter_.before(anchor, norm->name, std::move(inputs), maker.attrs);
    for (size_t i = 0; i < made.size(); ++i) {
      stand_with(made[i], maker_id);
      versions_.emplace(maker.outputs[sum + 1 + i], made[i]);
    }
    return versions_.at(v);
  }

  /// The norm without the addition before it.
  static const ir::OpDef* alone(const ir::OpDef& fused) {
    for (const ir::OpDef* def : ops::all_ops())
      if (def->norm.with_add == fused.name) return def;
    return nullptr;
  }

  /// Under the layer and block of what it comes from.
  void stand_with(ValueId made, OpId of) {
    if (!made.valid()) return;  // finish() tells the error
    Op& op = graph_.op(graph_.value(made).producer);
    op.layer = graph_.op(of).layer;
    op.block = graph_.op(of).block;
  }

  void tell(const Op& maker, Bytes full, Bytes kept) {
    report_.copies.push_back({.layer = maker.layer,
                              .product = "kept",
                              .left = std::string(numerics::info(kKept).name),
                              .right = "-",
                              .computed_in = "-",
                              .note = fmt::format("{} for backward: {} instead of {}", maker.def->name,
                                                  to_string(kept), to_string(full)),
                              .block = maker.block});
  }

  ir::Graph& graph_;
  Rewriter rewriter_;
  const size_t end_;                         ///< place of the op that gives the loss
  const size_t num_ops_ = graph_.num_ops();  ///< the others are made here
  std::set<ValueId> sources_;                ///< what has a copy
  std::set<OpId> again_;                     ///< ops that backward repeats on copies
  std::map<ValueId, ValueId> versions_;      ///< of forward's values, in backward
  Fp8ActivationsReport report_;
};

}  // namespace

Result<Fp8ActivationsReport> fp8_activations(ir::Graph& graph, const Fp8ActivationsOptions& options) {
  if (!options.last_forward_op.valid()) return Fp8ActivationsReport{};
  return Fp8Activations(graph, options).run();
}

}  // namespace plimsoll::passes
