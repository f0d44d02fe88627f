// Ops are joined from the last one: whatever gives an operand may have been joined before.
#include "passes/fusion/fuse_pointwise.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/at.h"
#include "ir/op_def.h"
#include "ops/broadcast.h"
#include "ops/expression.h"

namespace plimsoll::passes {
namespace {

using ir::Op;
using ir::OpId;
using ir::ValueId;
using ops::Expression;

constexpr size_t kMaxOperands = 8, kMaxParts = 64;

bool is_pointwise(const Op& op) { return op.def->name == "pointwise"; }

/// The op as an expression of its operands; empty where it is none.
std::string_view text_of(const Op& op) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kTexts = {
      {{"add", "add(x0,x1)"}, {"mul", "mul(x0,x1)"}, {"silu", "mul(x0,sigmoid(x0))"}}};
  if (is_pointwise(op)) return op.attrs.str("expr");
  for (const auto& [name, text] : kTexts)
    if (op.def->name == name) return text;
  return {};
}

/// How often the op's expression reads `v`.
int reads_of(const Op& op, ValueId v) {
  const Expression f = *Expression::parse(text_of(op));
  int reads = 0;
  for (const Expression::Node& node : f.nodes())
    for (int k = 0; k < ops::info(node.function).arity; ++k) {
      const Expression::Node& arg = f.nodes()[at(node.args[at(k)])];
      const bool is_read = arg.function == ops::Function::kInput && op.inputs[at(arg.args[0])] == v;
      reads += is_read ? 1 : 0;
    }
  return reads;
}

class PointwiseJoiner {
 public:
  PointwiseJoiner(Rewriter& rw, OpId id) : rw_(rw), id_(id), op_(rw.op(id)) {}

  /// Whether the op took in what gives some of its operands.
  bool join() {
    if (text_of(op_).empty()) return false;
    for (const ValueId v : op_.inputs)
      if (std::find(inner_.begin(), inner_.end(), v) == inner_.end() && may_take(v)) inner_.push_back(v);
    if (inner_.empty()) return false;
    const Expression f = *Expression::parse(text_of(op_));
    while (!inner_.empty() && !try_join(f)) inner_.pop_back();  // fewer, where all are too many
    if (inner_.empty()) return false;
    replace();
    return true;
  }

 private:
  [[nodiscard]] bool may_take(ValueId v) const {
    const OpId from = rw_.producer_id(v);
    const Op& op = rw_.op(from);
    const bool is_one = is_pointwise(op) || is_pointwise(op_);
    return is_one && !text_of(op).empty() && !rw_.removed(from) && rw_.only_use(v, id_) &&
           rw_.type(v).shape == rw_.type(op_.outputs[0]).shape && op.block == op_.block &&
           op.recomputed == op_.recomputed && rw_.may_sink(from, rw_.position(id_)) &&
           std::ranges::all_of(op.inputs, [&](ValueId operand) { return keeps_order(from, operand); });
  }

  /// Whether the cotangent of an operand of `from` is summed as before where `from` stands with the op: what
  /// others contribute does not come between, and of two parts each order is the same.
  [[nodiscard]] bool keeps_order(OpId from, ValueId operand) const {
    const size_t begin = rw_.position(from), end = rw_.position(id_);
    const bool is_shared = std::ranges::find(op_.inputs, operand) != op_.inputs.end();
    const std::span<const OpId> users = rw_.uses(operand);
    const auto comes_between = [&](OpId user) {
      const size_t place = rw_.position(user);
      return user != from && user != id_ && place >= begin && (is_shared || place <= end);
    };
    if (is_shared && reads_of(rw_.op(from), operand) + reads_of(op_, operand) > 2) return false;
    return (!is_shared && users.size() <= 2) || std::ranges::none_of(users, comes_between);
  }

  int node_of(ValueId v) {
    auto found = std::find(operands_.begin(), operands_.end(), v);
    if (found == operands_.end()) found = operands_.insert(found, v);
    const auto number = static_cast<size_t>(found - operands_.begin());
    return number < kMaxOperands ? joined_.input(static_cast<int>(number)) : Expression::kNone;
  }

  bool try_join(const Expression& f) {
    joined_ = {};
    operands_.clear();
    std::array<int, Expression::kMaxInputs> nodes{};
    for (size_t i = 0; i < op_.inputs.size(); ++i) {
      const ValueId v = op_.inputs[i];
      nodes[i] = std::find(inner_.begin(), inner_.end(), v) == inner_.end() ? node_of(v) : node_of_inner(v);
    }
    joined_.finish(f.append_to(joined_, nodes));
    return operands_.size() <= kMaxOperands && joined_.is_complete() && joined_.nodes().size() <= kMaxParts;
  }

  int node_of_inner(ValueId v) {
    const Op& op = rw_.producer(v);
    std::array<int, Expression::kMaxInputs> nodes{};
    for (size_t i = 0; i < op.inputs.size(); ++i) nodes[i] = node_of(op.inputs[i]);
    return Expression::parse(text_of(op))->append_to(joined_, nodes);
  }

  void replace() {
    const ValueId result = op_.outputs[0];
    const ir::TensorType type = rw_.type(result);
    ir::Attrs attrs{{"expr", joined_.text()}};
    std::optional<ir::Shape> shape = rw_.type(operands_[0]).shape;
    bool all_f32 = type.dtype == ir::DType::kF32;
    for (const ValueId v : operands_) {
      shape = ops::broadcast(*shape, rw_.type(v).shape);
      all_f32 = all_f32 && rw_.type(v).dtype == ir::DType::kF32;
    }
    if (*shape != type.shape) attrs.set("shape", ops::extents_of(type.shape));
    if (!all_f32) attrs.set("out", std::string(ir::name(type.dtype)));
    const auto fused = rw_.before(id_, "pointwise", operands_, std::move(attrs));
    rw_.remove(id_);
    for (const ValueId v : inner_) rw_.remove(rw_.producer_id(v));
    rw_.replace(result, fused[0]);
  }

  Rewriter& rw_;
  OpId id_;
  const Op op_;
  Expression joined_;
  std::vector<ValueId> operands_;
  std::vector<ValueId> inner_;  ///< operands whose ops are taken in
};

}  // namespace

Result<FusePointwiseReport> fuse_pointwise(ir::Graph& graph, const FusePointwiseOptions& options) {
  Rewriter rw(graph, options.keep);
  FusePointwiseReport report;
  for (const OpId id : rw.order())
    if (!rw.removed(id)) report.fused += PointwiseJoiner(rw, id).join() ? 1 : 0;
  PLIMSOLL_ASSIGN(report.replaced, rw.finish());
  return report;
}

}  // namespace plimsoll::passes
