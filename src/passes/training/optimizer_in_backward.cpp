// One walk over the order: behind each op the updates that it was the last to keep waiting.
#include "passes/training/optimizer_in_backward.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "ir/op_def.h"
#include "passes/order/dependencies.h"

namespace plimsoll::passes {
namespace {

/// How an op finds its place.
enum class Kind : uint8_t {
  kOwn,     ///< where it was
  kUpdate,  ///< behind the last op that it waits for
  kAtHand,  ///< waits for none of these: a state's value, an update's constant; before its first use
};

class OptimizerInBackward {
 public:
  explicit OptimizerInBackward(ir::Graph& graph) : graph_(graph), deps_(dependencies(graph)) {
    const size_t n = graph.order().size();
    done_.assign(n, false);
    for (size_t i = 0; i < n; ++i) {
      const auto& before = deps_.before[i];
      const auto waits = std::ranges::count_if(before, [&](size_t b) { return kinds_[b] != Kind::kAtHand; });
      waits_for_.push_back(static_cast<size_t>(waits));
      const ir::Op& op = graph.op(graph.order()[i]);
      const bool is_update = op.block == ir::kUpdateBlock;
      const bool is_read = op.def->state == ir::StateAccess::kRead;
      kinds_.push_back(waits == 0 && (is_update || is_read) ? Kind::kAtHand
                       : is_update                          ? Kind::kUpdate
                                                            : Kind::kOwn);
    }
  }

  OptimizerInBackwardReport run() {
    for (size_t i = 0; i < kinds_.size(); ++i)
      if (kinds_[i] == Kind::kOwn) emit(i);
    for (size_t i = 0; i < kinds_.size(); ++i) pull(i);  // what nothing asked for
    OptimizerInBackwardReport report;
    const auto is_own = [&](size_t place) { return kinds_[place] == Kind::kOwn; };
    const auto end = std::ranges::find_if(order_.rbegin(), order_.rend(), is_own).base();
    report.moved = static_cast<size_t>(
        std::count_if(order_.begin(), end, [&](size_t i) { return kinds_[i] == Kind::kUpdate; }));
    std::vector<ir::OpId> ids;
    for (const size_t place : order_) ids.push_back(graph_.order()[place]);
    graph_.set_order(std::move(ids));
    return report;
  }

 private:
  /// The op with what it needs of what is at hand.
  void pull(size_t place) {
    if (done_[place]) return;
    done_[place] = true;
    for (const size_t b : deps_.before[place])
      if (kinds_[b] == Kind::kAtHand) pull(b);
    order_.push_back(place);
  }

  void emit(size_t place) {
    std::vector<size_t> ready = {place};
    for (size_t i = 0; i < ready.size(); ++i) {
      pull(ready[i]);
      for (const size_t after : deps_.after[ready[i]])
        if (--waits_for_[after] == 0 && kinds_[after] == Kind::kUpdate) ready.push_back(after);
    }
  }

  ir::Graph& graph_;
  const Dependencies deps_;
  std::vector<Kind> kinds_;        // by place
  std::vector<size_t> waits_for_;  // by place: ops not at hand that are still to come
  std::vector<bool> done_;
  std::vector<size_t> order_;
};

}  // namespace

Result<OptimizerInBackwardReport> optimizer_in_backward(ir::Graph& graph) {
  return OptimizerInBackward(graph).run();
}

}  // namespace plimsoll::passes
