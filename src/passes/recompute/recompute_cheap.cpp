// Candidates are taken in forward order, so that an operand's fate is known before its user's.
#include "passes/recompute/recompute_cheap.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <string>

#include "base/at.h"
#include "base/check.h"
#include "ir/builder.h"
#include "ir/op_def.h"
#include "ops/op_list.h"
#include "passes/memory/storage_groups.h"

namespace plimsoll::passes {
namespace {

using ir::Graph;
using ir::Op;
using ir::OpId;
using ir::ValueId;

/// The arithmetic that a freed element may cost. Norms, activations and dropout do 4 to 20 operations for
/// one, which is below what memory takes for it, in two bytes too; a table of sines in double does far more.
constexpr double kMaxFlopsPerElement = 24;
/// A result is worth it only as this share of the largest that its op makes, or of what rebuilding reads:
/// rstd is a row's, not an element's.
constexpr int64_t kMinShareOfResults = 2;
constexpr int64_t kMinShareOfOperands = 8;
constexpr size_t kNowhere = std::numeric_limits<size_t>::max();

/// A value rebuilt in backward: its ops go before the op at `place`.
struct Clone {
  ValueId value;
  std::vector<OpId> ops;
  size_t place = 0;
  std::vector<size_t> depends = {};  ///< on other clones
};

class RecomputeCheap {
 public:
  RecomputeCheap(Graph& graph, const RecomputeCheapOptions& options)
      : graph_(graph), order_(graph.order()), builder_(graph, ops::find_op), num_values_(graph.num_values()) {
    position_.assign(graph.num_ops(), kNowhere);
    for (size_t i = 0; i < order_.size(); ++i) position_[at(order_[i])] = i;
    boundary_ = position_[at(options.last_forward_op)];
    PLIMSOLL_CHECK(boundary_ != kNowhere, "recompute_cheap: the op that gives the loss is gone");
    uses_ = graph.uses();
    clone_of_.assign(num_values_, kNowhere);
    pinned_.assign(num_values_, false);
    for (const ValueId v : options.keep)
      if (v.valid()) pinned_[at(root(v))] = true;
    find_lifetimes();
  }

  Result<RecomputeCheapReport> run() {
    for (size_t i = 0; i <= boundary_; ++i) {
      if (!may_run_again(graph_.op(order_[i]))) continue;
      const Op op = graph_.op(order_[i]);
      for (size_t output = 0; output < op.outputs.size(); ++output) consider(op, output);
    }
    PLIMSOLL_TRY(builder_.status());
    rebuild_order();
    return report_;
  }

 private:
  [[nodiscard]] ValueId root(ValueId v) const { return view_root(graph_, v); }
  [[nodiscard]] const Op& producer(ValueId v) const { return graph_.op(graph_.value(v).producer); }

  [[nodiscard]] bool is_state(ValueId v) const { return producer(v).def->state == ir::StateAccess::kRead; }

  void find_lifetimes() {
    last_use_.assign(num_values_, 0);
    overwritten_.assign(num_values_, kNowhere);
    for (size_t i = 0; i < order_.size(); ++i) {
      const Op& op = graph_.op(order_[i]);
      for (const ValueId v : op.inputs)
        if (v.valid()) last_use_[at(root(v))] = i;
      for (const ir::Alias& a : ir::op_consumes(op))
        overwrite(root(op.inputs[static_cast<size_t>(a.input)]), i);
      if (op.def->state != ir::StateAccess::kAssign) continue;
      pinned_[at(root(op.inputs[0]))] = true;
      state_written_.try_emplace(op.attrs.str("name"), i);
    }
  }

  void overwrite(ValueId owner, size_t place) {
    overwritten_[at(owner)] = std::min(overwritten_[at(owner)], place);
    pinned_[at(owner)] = true;
    if (is_state(owner)) state_written_.try_emplace(producer(owner).attrs.str("name"), place);
  }

  static bool may_run_again(const Op& op) {
    return op.def->recompute == ir::RecomputeClass::kNearlyFree && !op.def->is_view && !op.def->has_effect &&
           ir::op_consumes(op).empty();
  }

  /// Whether the op's results are views of that operand.
  static bool shows(const Op& op, ValueId v) { return op.def->is_view && op.inputs[0] == v; }

  /// The first use behind forward, seen through views; kNowhere where there is none.
  [[nodiscard]] size_t first_backward_use(ValueId v) const {
    size_t first = kNowhere;
    for (const OpId user : uses_[at(v)]) {
      if (position_[at(user)] > boundary_) {
        first = std::min(first, position_[at(user)]);
      } else if (shows(graph_.op(user), v)) {
        for (const ValueId w : graph_.op(user).outputs) first = std::min(first, first_backward_use(w));
      }
    }
    return first;
  }

  /// Whether `v` can be read at `place` of backward without being kept for that.
  [[nodiscard]] bool available(ValueId v, size_t place) const {
    const ValueId owner = root(v);
    if (is_state(owner)) {
      const auto it = state_written_.find(producer(owner).attrs.str("name"));
      return it == state_written_.end() || place <= it->second;
    }
    return clone_of_[at(owner)] == kNowhere && last_use_[at(owner)] >= place &&
           overwritten_[at(owner)] >= place;
  }

  void consider(const Op& op, size_t output) {
    const ValueId v = op.outputs[output];
    if (pinned_[at(v)] || clone_of_[at(v)] != kNowhere) return;
    const size_t place = first_backward_use(v);
    if (place == kNowhere || !worth_it(op, v)) return;
    std::optional<Clone> clone = build(op, output, place);
    if (!clone) clone = build_from_smaller(op, output, place);
    if (!clone) return;
    for (const size_t d : clone->depends) move_up(d, place);
    redirect(v, clone->value, *clone);
    clone_of_[at(v)] = clones_.size();
    clones_.push_back(std::move(*clone));
    ++report_.recomputed;
    report_.saved += graph_.type(v).bytes();
  }

  /// The same where one operand has to be kept for it.
  std::optional<Clone> build_from_smaller(const Op& op, size_t output, size_t place) {
    const ValueId kept = kept_instead(op, op.outputs[output], place);
    if (!kept.valid()) return std::nullopt;
    std::optional<Clone> clone = build(op, output, place, kept);
    if (!clone) return std::nullopt;
    last_use_[at(kept)] = std::max(last_use_[at(kept)], place);
    report_.saved = report_.saved - graph_.type(kept).bytes();
    return clone;
  }

  /// The one operand that is not at hand at `place`, where it is smaller than `v`: kept in its stead.
  [[nodiscard]] ValueId kept_instead(const Op& op, ValueId v, size_t place) const {
    ValueId found;
    for (const ValueId in : op.inputs) {
      if (!in.valid() || available(in, place)) continue;
      const ValueId owner = root(in);
      const bool may = !found.valid() && clone_of_[at(owner)] == kNowhere &&
                       overwritten_[at(owner)] >= place &&
                       graph_.type(owner).bytes() < graph_.type(v).bytes();
      if (!may) return {};
      found = owner;
    }
    return found;
  }

  [[nodiscard]] bool worth_it(const Op& op, ValueId v) const {
    const int64_t bytes = graph_.type(v).bytes().count;
    int64_t operand = 0;
    for (const ValueId in : op.inputs)
      if (in.valid() && !is_state(root(in))) operand = std::max(operand, graph_.type(in).bytes().count);
    int64_t result = 0;
    for (const ValueId out : op.outputs) result = std::max(result, graph_.type(out).bytes().count);
    return bytes * kMinShareOfOperands >= operand && bytes * kMinShareOfResults >= result &&
           ir::op_cost(graph_, op).flops <=
               kMaxFlopsPerElement * static_cast<double>(graph_.type(v).num_elements());
  }

  /// Appends the ops that give the value again; nothing where an operand is not at hand at `place` nor is
  /// `kept` from now on.
  std::optional<Clone> build(const Op& op, size_t output, size_t place, ValueId kept = {}) {
    const size_t known = graph_.num_ops();
    builder_.stand_with(op);
    Clone clone;
    clone.place = place;
    clone.value = op.def->rebuild != nullptr ? op.def->rebuild(builder_, op, output)
                                             : builder_.ops(op.def->name, op.inputs, op.attrs)[output];
    for (size_t i = known; i < graph_.num_ops(); ++i) clone.ops.push_back(OpId{static_cast<int32_t>(i)});
    if (!clone.value.valid()) return std::nullopt;
    std::vector<OpId> views;  // of other clones; they come first
    for (const OpId id : clone.ops) {
      graph_.op(id).recomputed = true;
      for (size_t i = 0; i < graph_.op(id).inputs.size(); ++i) {
        const ValueId v = graph_.op(id).inputs[i];
        if (!v.valid() || at(v) >= num_values_ || available(v, place) || root(v) == kept) continue;
        const ValueId again = rebuilt(v, clone, views);
        if (!again.valid()) return std::nullopt;
        graph_.op(id).inputs[i] = again;
      }
    }
    clone.ops.insert(clone.ops.begin(), views.begin(), views.end());
    return clone;
  }

  /// What stands in backward for `v`, a rebuilt value or a view of one; invalid if it is neither.
  ValueId rebuilt(ValueId v, Clone& clone, std::vector<OpId>& views) {
    if (const size_t other = clone_of_[at(v)]; other != kNowhere) {
      clone.depends.push_back(other);
      return clones_[other].value;
    }
    const Op view = producer(v);
    if (!view.def->is_view) return {};
    const ValueId of = rebuilt(view.inputs[0], clone, views);
    if (!of.valid()) return {};
    const auto result = static_cast<size_t>(graph_.value(v).result_index);
    for (const OpId made : views)  // q and k are parts of one split
      if (graph_.op(made).inputs[0] == of && graph_.op(made).attrs == view.attrs)
        return graph_.op(made).outputs[result];
    return clone_view(view, of, views)[result];
  }

  void move_up(size_t clone, size_t place) {
    if (clones_[clone].place <= place) return;
    clones_[clone].place = place;
    for (const size_t d : clones_[clone].depends) move_up(d, place);
  }

  /// Uses of `from` behind forward become uses of `to`; views made in forward are made again.
  void redirect(ValueId from, ValueId to, Clone& clone) {
    for (const OpId user : uses_[at(from)]) {
      if (position_[at(user)] > boundary_) {
        auto& inputs = graph_.op(user).inputs;
        std::replace(inputs.begin(), inputs.end(), from, to);
        continue;
      }
      if (!shows(graph_.op(user), from)) continue;
      const Op view = graph_.op(user);
      std::vector<ValueId> again;
      for (size_t i = 0; i < view.outputs.size(); ++i) {
        if (first_backward_use(view.outputs[i]) == kNowhere) continue;
        if (again.empty()) again = clone_view(view, to, clone.ops);
        redirect(view.outputs[i], again[i], clone);
      }
    }
  }

  std::vector<ValueId> clone_view(const Op& view, ValueId of, std::vector<OpId>& ops) {
    builder_.stand_with(view);
    const OpId id{static_cast<int32_t>(graph_.num_ops())};
    std::vector<ValueId> inputs = view.inputs;
    inputs[0] = of;
    std::vector<ValueId> results = builder_.ops(view.def->name, std::move(inputs), view.attrs);
    if (builder_.status()) {
      graph_.op(id).recomputed = true;
      ops.push_back(id);
    }
    return results;
  }

  void rebuild_order() {
    std::vector<std::vector<OpId>> before(order_.size());
    for (const Clone& clone : clones_)
      before[clone.place].insert(before[clone.place].end(), clone.ops.begin(), clone.ops.end());
    std::vector<OpId> order;
    for (size_t i = 0; i < order_.size(); ++i) {
      order.insert(order.end(), before[i].begin(), before[i].end());
      order.push_back(order_[i]);
    }
    graph_.set_order(std::move(order));
  }

  Graph& graph_;
  const std::vector<OpId> order_;
  ir::Builder builder_;
  const size_t num_values_;                      // values beyond are the clones'
  size_t boundary_ = 0;                          // place of forward's last op
  std::vector<size_t> position_;                 // by op
  Lists<OpId> uses_;                             // by value
  std::vector<size_t> last_use_;                 // by value that owns a storage
  std::vector<size_t> overwritten_;              // likewise: place of its first consumer
  std::vector<bool> pinned_;                     // likewise: outlives the program, or is consumed
  std::map<std::string, size_t> state_written_;  // place of the first write to a state
  std::vector<size_t> clone_of_;                 // by value: index into clones_
  std::vector<Clone> clones_;
  RecomputeCheapReport report_;
};

}  // namespace

Result<RecomputeCheapReport> recompute_cheap(Graph& graph, const RecomputeCheapOptions& options) {
  return RecomputeCheap(graph, options).run();
}

}  // namespace plimsoll::passes
