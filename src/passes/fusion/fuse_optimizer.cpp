// Joins runs of equal ops; each run stands where its last member stood.
#include "passes/fusion/fuse_optimizer.h"

#include <algorithm>
#include <map>
#include <string>

#include "ir/op_def.h"
#include "ops/update_rules.h"

namespace plimsoll::passes {
namespace {

using ir::OpId;
using ir::ValueId;

/// Operands of an update: param, grad, states, clip, groups.
constexpr size_t kGrad = 1;
constexpr size_t kAnywhere = static_cast<size_t>(-1);

class FuseOptimizer {
 public:
  FuseOptimizer(ir::Graph& graph, const FuseOptimizerOptions& options)
      : rw_(graph, options.keep), updates_(options.updates) {
    for (size_t i = 0; i < rw_.order().size(); ++i) {
      const ir::Op& op = rw_.op(rw_.order()[i]);
      if (op.def->state != ir::StateAccess::kNone) touched_[op.attrs.str("name")].push_back(i);
    }
  }

  Result<FuseOptimizerReport> run() {
    for (const OpId id : rw_.order()) {
      if (rw_.op(id).def->name == "global_norm") fuse_squares(id);
      const ops::UpdateRule* rule = ops::find_update_rule(rw_.op(id).def->name);
      if (updates_ && rule != nullptr && rule->name == rw_.op(id).def->name) take_update(id, *rule);
    }
    flush();
    PLIMSOLL_ASSIGN(report_.replaced, rw_.finish());
    return std::move(report_);
  }

 private:
  /// What makes the first square.
  [[nodiscard]] const ir::OpDef* squares_of(const ir::Op& norm) const {
    return rw_.producer(norm.inputs[0]).def;
  }

  void fuse_squares(OpId id) {
    const ir::Op norm = rw_.op(id);
    if (norm.inputs.size() < 2 || squares_of(norm)->multi_tensor.empty()) return;
    std::vector<ValueId> tensors;
    for (const ValueId square : norm.inputs) {
      const OpId maker = rw_.producer_id(square);
      if (rw_.op(maker).def != squares_of(norm) || !rw_.only_use(square, id)) return;
      if (!rw_.may_sink(maker, rw_.position(id))) return;
      if (std::count(norm.inputs.begin(), norm.inputs.end(), square) > 1) return;
      if (!tensors.empty() && rw_.op(maker).attrs != rw_.producer(norm.inputs[0]).attrs) return;
      tensors.push_back(rw_.op(maker).inputs[0]);
    }
    const ValueId squares =
        rw_.before(id, squares_of(norm)->multi_tensor, tensors, rw_.producer(norm.inputs[0]).attrs)[0];
    const ValueId total = rw_.before(id, "global_norm", {squares})[0];
    rw_.remove(id);
    for (const ValueId square : norm.inputs) rw_.remove(rw_.producer_id(square));
    rw_.replace(norm.outputs[0], total);
    report_.fused_squares += norm.inputs.size();
  }

  /// Adds an update to the open run, or begins another with it.
  void take_update(OpId id, const ops::UpdateRule& rule) {
    if (!run_.empty() && !joins(id, rule)) flush();
    rule_ = &rule;
    run_.push_back(id);
    latest_ = std::min(run_.size() == 1 ? kAnywhere : latest_, latest_place(id));
  }

  [[nodiscard]] bool joins(OpId id, const ops::UpdateRule& rule) const {
    const auto& update = rw_.op(id).inputs;
    const auto& first = rw_.op(run_.front()).inputs;
    const auto shared = static_cast<std::ptrdiff_t>(rule.num_operands());  // clip, groups, random
    return &rule == rule_ && same_form(rw_.op(id).attrs, rw_.op(run_.front()).attrs) &&
           std::equal(update.begin() + shared, update.end(), first.begin() + shared, first.end()) &&
           rw_.position(rw_.producer_id(update[kGrad])) < rw_.position(run_.front()) &&
           rw_.position(id) <= latest_;
  }

  /// Two updates of one rule keep their tensors in the same way.
  static bool same_form(const ir::Attrs& a, const ir::Attrs& b) {
    for (const std::string_view name : {"rounded", "copy"}) {
      const ir::Attr *x = a.find(name), *y = b.find(name);
      if ((x == nullptr) != (y == nullptr) || (x != nullptr && *x != *y)) return false;
    }
    return true;
  }

  /// How late update `id`, with the assignments of its results, may stand.
  [[nodiscard]] size_t latest_place(OpId id) const {
    const ir::Op& op = rw_.op(id);
    size_t latest = kAnywhere;
    for (size_t i = 0; i < rule_->num_operands(); ++i)
      latest = std::min(latest, rw_.next_consumed(op.inputs[i], rw_.position(id)));
    for (const ValueId v : op.outputs)
      for (const OpId user : rw_.uses(v)) {
        if (rw_.op(user).def->state != ir::StateAccess::kAssign) {
          latest = std::min(latest, rw_.position(user) - 1);
          continue;
        }
        const auto& places = touched_.at(rw_.op(user).attrs.str("name"));
        const auto next = std::upper_bound(places.begin(), places.end(), rw_.position(user));
        if (next != places.end()) latest = std::min(latest, *next);
      }
    return latest;
  }

  void flush() {
    const std::vector<OpId> run = std::move(run_);
    run_.clear();
    if (run.size() < 2) return;
    const OpId last = run.back();
    const auto shared = static_cast<std::ptrdiff_t>(rule_->num_operands());
    const std::vector<ValueId>& trailing = rw_.op(last).inputs;
    std::vector<ValueId> operands(trailing.begin() + shared, trailing.end());
    ir::Attrs attrs = rw_.op(last).attrs;
    std::vector<int64_t> groups, keys;
    for (const OpId id : run) {
      const ir::Op& op = rw_.op(id);
      operands.insert(operands.end(), op.inputs.begin(), op.inputs.begin() + shared);
      groups.push_back(op.attrs.i64("group"));
      if (op.attrs.find("key") != nullptr) keys.push_back(op.attrs.i64("key"));
      rw_.remove(id);
    }
    attrs.set("group", groups);
    if (!keys.empty()) attrs.set("key", keys);
    const auto fused = rw_.before(last, rule_->multi_tensor, operands, attrs);
    size_t next = 0;
    for (const OpId id : run)
      for (const ValueId v : std::vector(rw_.op(id).outputs)) move_result(v, fused[next++], last);
    report_.fused_updates += run.size();
  }

  void move_result(ValueId old, ValueId now, OpId anchor) {
    rw_.replace(old, now);
    if (!now.valid()) return;
    for (const OpId user : rw_.uses_now(now)) {
      if (rw_.position(user) > rw_.position(anchor)) continue;
      rw_.before(anchor, "state_assign", {now}, rw_.op(user).attrs);
      rw_.remove(user);
    }
  }

  Rewriter rw_;
  bool updates_;
  std::map<std::string, std::vector<size_t>> touched_;  // by state: places of its reads and assignments
  const ops::UpdateRule* rule_ = nullptr;               ///< of the run
  std::vector<OpId> run_;
  size_t latest_ = 0;  ///< how late all of the run may stand
  FuseOptimizerReport report_;
};

}  // namespace

Result<FuseOptimizerReport> fuse_optimizer(ir::Graph& graph, const FuseOptimizerOptions& options) {
  return FuseOptimizer(graph, options).run();
}

}  // namespace plimsoll::passes
