// One walk along the order, which looks at each value that is quantised where that is computed.
#include "passes/fusion/fuse_quantize.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/op_def.h"
#include "ir/op_query.h"
#include "ops/fused_quantize.h"
#include "ops/op_list.h"
#include "ops/scaled_operand.h"

namespace plimsoll::passes {
namespace {

using ir::Op;
using ir::OpId;
using ir::ValueId;

/// The ops that quantise a value: as it lies, and its transpose.
struct QuantizedCopies {
  OpId plain = {}, turned = {};
  size_t count = 0;
  [[nodiscard]] OpId any() const { return plain.valid() ? plain : turned; }
  [[nodiscard]] bool are_both() const { return plain.valid() && turned.valid(); }
};

class FuseQuantize {
 public:
  FuseQuantize(ir::Graph& graph, const FuseQuantizeOptions& options)
      : graph_(graph), rewriter_(graph, options.keep) {
    if (options.last_forward_op.valid()) end_ = rewriter_.position(options.last_forward_op);
  }

  Result<FuseQuantizeReport> run() {
    for (const OpId id : rewriter_.order()) {
      if (rewriter_.removed(id)) continue;
      const std::vector<ValueId> results = rewriter_.op(id).outputs;
      for (const ValueId v : results) visit(id, v);
    }
    PLIMSOLL_ASSIGN(report_.replaced, rewriter_.finish());
    return report_;
  }

 private:
  [[nodiscard]] bool is_backward(OpId id) const { return end_ && rewriter_.position(id) > *end_; }

  void visit(OpId maker, ValueId v) {
    const std::optional<QuantizedCopies> copies = copies_of(maker, v);
    if (!copies) return;
    const Op first = rewriter_.op(copies->any());
    ir::Attrs attrs = first.attrs;
    if (copies->are_both()) attrs.set("both", true);
    if (copies->are_both() && rewriter_.op(copies->turned).attrs.flag("by_sequence"))
      attrs.set("by_sequence", true);
    const bool alone = copies->count == rewriter_.uses(v).size() && !rewriter_.wanted(v);
    if (alone && fuse(maker, v, *copies, attrs)) return;
    if (!copies->are_both()) return;
    ++report_.paired;
    const bool is_first = rewriter_.position(copies->plain) < rewriter_.position(copies->turned);
    const OpId anchor = is_first ? copies->plain : copies->turned;
    replace(*copies, rewriter_.before(anchor, first.def->name, first.inputs, std::move(attrs)));
  }

  /// Of the side of the program that the value is made on; nothing where one of them is of another kind.
  [[nodiscard]] std::optional<QuantizedCopies> copies_of(OpId maker, ValueId v) const {
    QuantizedCopies found;
    for (const OpId user : rewriter_.uses(v)) {
      const Op& op = rewriter_.op(user);
      if (!ir::takes_attr(op, "hadamard") || op.inputs[0] != v || is_backward(user) != is_backward(maker))
        continue;
      if (op.attrs.flag("hadamard") || op.attrs.flag("stochastic") || op.attrs.flag("both")) continue;
      const bool takes_one = numerics::info(ops::scheme_of(op.attrs, "scheme")).has_tensor_scale;
      OpId& copy = op.attrs.flag("transposed") ? found.turned : found.plain;
      if (copy.valid() || (takes_one && found.count > 0)) return std::nullopt;
      copy = user;
      ++found.count;
    }
    if (found.count == 0) return std::nullopt;
    if (!found.are_both()) return found;
    const Op &plain = rewriter_.op(found.plain), &turned = rewriter_.op(found.turned);
    const bool same =
        plain.attrs.str("scheme") == turned.attrs.str("scheme") &&
        (plain.attrs.find("precision") == nullptr) == (turned.attrs.find("precision") == nullptr);
    return same ? std::optional(found) : std::nullopt;
  }

  /// Computes and quantises in one op, where there is one for both.
  bool fuse(OpId maker, ValueId v, const QuantizedCopies& copies, const ir::Attrs& attrs) {
    const Op op = rewriter_.op(maker);
    const ops::FusedQuantize* fused = ops::quantizing(op.def->name);
    if (fused == nullptr || op.outputs[fused->result] != v || op.inputs.size() != fused->num_inputs)
      return false;
    const Op quantise = rewriter_.op(copies.any());
    std::vector<ValueId> inputs = op.inputs;
    if (quantise.inputs.size() > 1) inputs.push_back(quantise.inputs[1]);
    ir::Attrs all = op.attrs;
    for (const auto& [name, value] : attrs.entries()) all.set(name, value);
    if (!fits(fused->op, inputs, all) || !are_there(inputs, maker)) return false;
    const std::vector<ValueId> made = rewriter_.before(maker, fused->op, std::move(inputs), std::move(all));
    graph_.op(graph_.value(made[0]).producer).recomputed = op.recomputed;
    const auto others = static_cast<int64_t>(op.outputs.size()) - 1;
    for (size_t i = 0, other = 0; i < op.outputs.size(); ++i)
      if (i != fused->result) rewriter_.replace(op.outputs[i], made[other++]);
    replace(copies, {made.begin() + others, made.end()});
    rewriter_.remove(maker);
    ++report_.fused;
    return true;
  }

  /// Operands that are dense, of types that the op takes.
  [[nodiscard]] bool fits(std::string_view name, const std::vector<ValueId>& inputs,
                          const ir::Attrs& attrs) const {
    ir::OpTypes types{name, {}, {}, attrs};
    for (const ValueId v : inputs) {
      if (rewriter_.producer(v).def->is_view) return false;
      types.inputs.push_back(rewriter_.type(v));
    }
    return ops::find_op(name)->infer(types).ok();
  }
  [[nodiscard]] bool are_there(const std::vector<ValueId>& inputs, OpId at) const {
    return std::ranges::all_of(inputs, [&](ValueId v) {
      return rewriter_.position(rewriter_.producer_id(v)) <= rewriter_.position(at);
    });
  }

  void replace(const QuantizedCopies& copies, const std::vector<ValueId>& made) {
    size_t next = 0;
    for (const OpId copy : {copies.plain, copies.turned}) {
      if (!copy.valid()) continue;
      const std::vector<ValueId> results = rewriter_.op(copy).outputs;
      for (const ValueId v : results) rewriter_.replace(v, made[next++]);
      rewriter_.remove(copy);
    }
  }

  ir::Graph& graph_;
  Rewriter rewriter_;
  std::optional<size_t> end_;  ///< place of the op that gives the loss
  FuseQuantizeReport report_;
};

}  // namespace

Result<FuseQuantizeReport> fuse_quantize(ir::Graph& graph, const FuseQuantizeOptions& options) {
  return FuseQuantize(graph, options).run();
}

}  // namespace plimsoll::passes
