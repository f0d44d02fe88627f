// A walk over backward that makes what an op asks for just before it, operands first.
#include "passes/recompute/recompute.h"

#include <algorithm>
#include <limits>
#include <map>
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

constexpr size_t kNever = std::numeric_limits<size_t>::max();

class Recompute {
 public:
  Recompute(Graph& graph, const RecomputeOptions& options)
      : graph_(graph),
        options_(options),
        order_(graph.order()),
        builder_(graph, ops::find_op),
        num_values_(graph.num_values()),
        dropped_(num_values_, false),
        stands_(num_values_),
        held_(num_values_, false),
        before_(order_.size()) {
    for (const ValueId v : options.dropped) dropped_[at(v)] = true;
    for (const ValueId v : options.keep)
      if (v.valid()) dropped_[at(root(v))] = false;
    const auto last = std::find(order_.begin(), order_.end(), options.last_forward_op);
    PLIMSOLL_CHECK(last != order_.end(), "recompute: the op that gives the loss is gone");
    backward_ = static_cast<size_t>(last - order_.begin()) + 1;
    keep_what_must_be();
  }

  Result<RecomputeReport> run() {
    for (place_ = backward_; place_ < order_.size(); ++place_) {
      // Which moves where others are made.
      const auto op = [&]() -> Op& { return graph_.op(order_[place_]); };
      if (op().block >= 0 && op().block != block_) enter(op().block);
      for (size_t i = 0; i < op().inputs.size(); ++i)
        if (const ValueId in = op().inputs[i]; in.valid()) {
          const ValueId instead = stand_in(in);
          op().inputs[i] = instead;
        }
    }
    PLIMSOLL_TRY(builder_.status());
    rebuild_order();
    return report_;
  }

 private:
  [[nodiscard]] const Op& producer(ValueId v) const { return graph_.op(graph_.value(v).producer); }
  [[nodiscard]] ValueId root(ValueId v) const { return view_root(graph_, v); }

  /// Storages that are consumed or become a state's hold something else by the time backward asks.
  void keep_what_must_be() {
    for (size_t i = 0; i < order_.size(); ++i) {
      const Op& op = graph_.op(order_[i]);
      for (const ir::Alias& a : ir::op_consumes(op)) {
        const ValueId owner = root(op.inputs[static_cast<size_t>(a.input)]);
        dropped_[at(owner)] = false;
        if (producer(owner).def->state == ir::StateAccess::kRead)
          state_written_.try_emplace(producer(owner).attrs.str("name"), i);
      }
      if (op.def->state != ir::StateAccess::kAssign) continue;
      dropped_[at(root(op.inputs[0]))] = false;
      state_written_.try_emplace(op.attrs.str("name"), i);
    }
    for (size_t i = 0; i < backward_; ++i)
      if (!may_run_again(graph_.op(order_[i])))
        for (const ValueId v : graph_.op(order_[i]).outputs) dropped_[at(v)] = false;
  }

  [[nodiscard]] bool may_run_again(const Op& op) const {
    const auto is_overwritten = [&](ValueId v) {
      if (!v.valid()) return false;
      const Op& owner = producer(root(v));
      if (owner.def->state != ir::StateAccess::kRead) return false;
      const auto written = state_written_.find(owner.attrs.str("name"));
      return written != state_written_.end() && written->second < first_update();
    };
    return op.def->recompute != ir::RecomputeClass::kNever && !op.def->has_effect &&
           ir::op_consumes(op).empty() && std::ranges::none_of(op.inputs, is_overwritten);
  }
  /// The place of the update's first op: states that it writes are whole as long as backward runs.
  [[nodiscard]] size_t first_update() const {
    if (first_update_ == kNever)
      for (first_update_ = backward_; first_update_ < order_.size(); ++first_update_)
        if (graph_.op(order_[first_update_]).block == ir::kUpdateBlock) break;
    return first_update_;
  }

  /// Clones of the block before end here; the block's round begins.
  void enter(int32_t block) {
    block_ = block;
    for (const ValueId v : made_)
      if (!held_[at(v)]) stands_[at(v)] = {};
    std::erase_if(made_, [&](ValueId v) { return !held_[at(v)]; });
    for (const RecomputeRound& round : options_.rounds) {
      if (round.block != block) continue;
      for (const ValueId v : round.hold) stand_in(v);
      for (const ValueId v : round.hold) held_[at(v)] = true;
    }
  }

  /// What is read for `v` at this place: itself where it is kept, else its clone, made now if there is none.
  ValueId stand_in(ValueId v) {
    const size_t owner = at(v) < num_values_ ? at(root(v)) : num_values_;
    if (owner >= num_values_ || !dropped_[owner]) return v;  // a clone, or backward's view of one
    if (!stands_[at(v)].valid()) make(v);
    return stands_[at(v)];
  }

  void make(ValueId v) {
    const Op op = producer(v);
    const auto output = static_cast<size_t>(graph_.value(v).result_index);
    const size_t known = graph_.num_ops();
    builder_.stand_with(op);
    if (op.def->rebuild != nullptr) {
      note(v, op.def->rebuild(builder_, op, output));
    } else {
      const std::vector<ValueId> again = builder_.ops(op.def->name, op.inputs, op.attrs);
      for (size_t i = 0; i < op.outputs.size(); ++i)
        if (!stands_[at(op.outputs[i])].valid()) note(op.outputs[i], again[i]);
    }
    const size_t end = graph_.num_ops();
    for (size_t i = known; i < end; ++i) {
      const OpId id{static_cast<int32_t>(i)};
      graph_.op(id).recomputed = true;
      for (size_t k = 0; k < graph_.op(id).inputs.size(); ++k) {
        const ValueId in = graph_.op(id).inputs[k];
        if (!in.valid()) continue;
        const ValueId now = stand_in(in);  // makes ops, which moves the graph's own
        graph_.op(id).inputs[k] = now;
      }
      before_[place_].push_back(id);
      ++report_.clones;
    }
  }
  void note(ValueId v, ValueId again) {
    stands_[at(v)] = again;
    made_.push_back(v);
  }

  void rebuild_order() {
    std::vector<OpId> order;
    for (size_t i = 0; i < order_.size(); ++i) {
      order.insert(order.end(), before_[i].begin(), before_[i].end());
      order.push_back(order_[i]);
    }
    graph_.set_order(std::move(order));
  }

  Graph& graph_;
  const RecomputeOptions& options_;
  const std::vector<OpId> order_;
  ir::Builder builder_;
  const size_t num_values_;                      // values beyond are clones'
  std::vector<bool> dropped_;                    // by value that owns a storage
  std::vector<ValueId> stands_;                  // by value: its clone
  std::vector<bool> held_;                       // by value: the clone stays
  std::vector<ValueId> made_;                    // values with a clone
  std::vector<std::vector<OpId>> before_;        // by place: clones in front of it
  std::map<std::string, size_t> state_written_;  // place of the first write to a state
  mutable size_t first_update_ = kNever;
  size_t backward_ = 0;  // place of its first op
  size_t place_ = 0;
  int32_t block_ = ir::kNoBlock;
  RecomputeReport report_;
};

}  // namespace

Result<RecomputeReport> recompute(Graph& graph, const RecomputeOptions& options) {
  if (options.dropped.empty()) return RecomputeReport{};
  return Recompute(graph, options).run();
}

}  // namespace plimsoll::passes
