// The walk over the order backwards. The rules themselves stand with the ops.
#include "passes/training/autodiff.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/at.h"
#include "base/check.h"
#include "ir/builder.h"
#include "ir/op_def.h"
#include "ir/op_query.h"
#include "ops/elementwise.h"
#include "ops/op_list.h"

namespace plimsoll::passes {
namespace {

using ir::Graph;
using ir::Op;
using ir::OpId;
using ir::ValueId;

class Walk final : public ir::VjpContext {
 public:
  Walk(Graph& graph, const AutodiffOptions& options)
      : graph_(graph), options_(options), builder_(graph, ops::find_op), cotangents_(graph.num_values()) {
    wrt_of_.assign(graph.num_values(), {});
    needed_ = ir::depends_on(graph, options.wrt);
    report_.cotangents.resize(options.wrt.size());
    report_.contributions.resize(options.wrt.size());
    for (size_t i = 0; i < options.wrt.size(); ++i) wrt_of_[at(options.wrt[i])].push_back(i);
  }

  Result<AutodiffReport> run() {
    PLIMSOLL_TRY(check_start());
    const std::vector<OpId> forward = graph_.order();  // the builder appends to the graph's own
    cotangents_[at(options_.loss)] = options_.seed.valid() ? options_.seed : options_.loss;
    for (auto it = forward.rbegin(); it != forward.rend(); ++it) PLIMSOLL_TRY(visit(*it));
    for (size_t i = 0; i < options_.wrt.size(); ++i) {
      const ValueId v = options_.wrt[i];
      if (v != options_.loss || options_.seed.valid()) report_.cotangents[i] = cotangents_[at(v)];
    }
    return std::move(report_);
  }

  ir::Builder& builder() override { return builder_; }
  [[nodiscard]] const Op& op() const override { return current_; }
  [[nodiscard]] ValueId cotangent(size_t output) const override {
    return cotangents_[at(current_.outputs[output])];
  }
  [[nodiscard]] bool wants(size_t input) const override {
    return input < current_.inputs.size() && current_.inputs[input].valid() &&
           needed_[at(current_.inputs[input])];
  }
  void add(size_t input, ValueId contribution) override {
    if (!wants(input) || !contribution.valid()) return;
    const ValueId to = current_.inputs[input];
    for (const size_t i : wrt_of_[at(to)]) report_.contributions[i].push_back(contribution);
    ValueId& sum = cotangents_[at(to)];
    sum = sum.valid() ? ops::add(builder_, sum, contribution) : contribution;
  }

 private:
  /// The loss is fit to start from.
  Status check_start() {
    const OpId producer = graph_.value(options_.loss).producer;
    if (!options_.seed.valid() && !graph_.op(producer).def->is_loss)
      return Error{.what = fmt::format("autodiff: the result of '{}' needs a cotangent to start from",
                                       graph_.op(producer).def->name),
                   .where = graph_.op(producer).layer};
    return Ok{};
  }

  Status visit(OpId id) {
    current_ = graph_.op(id);  // a copy: the graph's ops move as the builder appends
    const bool reached = std::any_of(current_.outputs.begin(), current_.outputs.end(),
                                     [&](ValueId v) { return cotangents_[at(v)].valid(); });
    if (!reached) return Ok{};
    bool wanted = false;
    for (size_t i = 0; i < current_.inputs.size(); ++i) wanted = wanted || wants(i);
    if (!wanted) return Ok{};
    if (current_.def->vjp == nullptr)
      return Error{.what = fmt::format("autodiff: '{}' has no derivative", current_.def->name),
                   .where = current_.layer};
    builder_.stand_with(current_);
    current_.def->vjp(*this);
    return builder_.status();
  }

  Graph& graph_;
  const AutodiffOptions& options_;
  ir::Builder builder_;
  Op current_;
  std::vector<ValueId> cotangents_;          // by forward value
  std::vector<std::vector<size_t>> wrt_of_;  // by forward value: its places in options.wrt
  std::vector<bool> needed_;                 // values that depend on what is differentiated with respect to
  AutodiffReport report_;
};

}  // namespace

Result<AutodiffReport> autodiff(Graph& graph, const AutodiffOptions& options) {
  PLIMSOLL_CHECK(options.loss.valid());
  return Walk(graph, options).run();
}

}  // namespace plimsoll::passes
