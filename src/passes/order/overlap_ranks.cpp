// A walk along the order that leaves out exchanges, what is computed of their results, and gathers, and puts
// each where its rule says, or where another op needs it.
#include "passes/order/overlap_ranks.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include "base/at.h"
#include "base/check.h"
#include "ir/network_queue.h"
#include "ir/op_def.h"
#include "ops/ranks.h"
#include "ops/shard.h"
#include "passes/order/dependencies.h"

namespace plimsoll::passes {
namespace {

using ir::Graph;
using ir::Op;
using ir::OpId;
using ir::ValueId;

constexpr size_t kNoSend = static_cast<size_t>(-1);
/// What may stand behind a sum over ranks at once: nothing that updates.
constexpr std::string_view kBehindSums[] = {"all_gather", "put_piece", "state_assign",
                                            "add",        "pointwise", "cast"};

/// A gradient's way to the other ranks, and what is computed at once of what comes back: places.
struct Send {
  size_t place = 0;
  int64_t bytes = 0;         ///< received
  int32_t block = 0;         ///< of the gradient
  std::vector<size_t> tail;  ///< the sum first
};
/// A tensor that is made whole, or whose other pieces come where it lies.
struct Gather {
  size_t place = 0;
  int64_t bytes = 0;
  int32_t block = 0;
};

/// The bytes of the block that has most; where none is of a block, of the largest alone. `items` are in
/// order.
template <typename Item>
int64_t window_of(const std::vector<Item>& items) {
  int64_t most = 0, largest = 0, run = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    const bool goes_on = i > 0 && items[i].block == items[i - 1].block;
    run = (goes_on ? run : 0) + items[i].bytes;
    if (items[i].block >= 0) most = std::max(most, run);
    largest = std::max(largest, items[i].bytes);
  }
  return most > 0 ? most : largest;
}

/// Finds sends and gathers in a graph's order.
class ExchangeFinder {
 public:
  explicit ExchangeFinder(const Graph& graph) : graph_(graph), users_(graph.num_values()) {
    for (size_t place = 0; place < graph.order().size(); ++place)
      for (const ValueId v : op(place).inputs)
        if (v.valid() && (users_[at(v)].empty() || users_[at(v)].back() != place))
          users_[at(v)].push_back(place);
  }

  [[nodiscard]] std::vector<Gather> gathers() const {
    std::vector<Gather> found;
    for (size_t place = 0; place < graph_.order().size(); ++place)
      if (makes_whole(op(place))) found.push_back({place, bytes(op(place).outputs[0]), op(place).block});
    return found;
  }

  [[nodiscard]] std::vector<Send> sends() const {
    std::vector<Send> found;
    for (size_t place = 0; place < graph_.order().size(); ++place) {
      const Op& sends = op(place);
      if (sends.def->traffic == nullptr || sends.inputs.size() != 1) continue;
      const std::vector<size_t>& users = users_[at(sends.outputs[0])];
      if (users.size() != 1 || !ops::is_sum_of_ranks(*op(users[0]).def)) continue;
      found.push_back(
          {place, bytes(sends.outputs[0]), producer(sends.inputs[0]).block, tail(users[0], sends.inputs[0])});
    }
    return found;
  }

 private:
  [[nodiscard]] const Op& op(size_t place) const { return graph_.op(graph_.order()[place]); }
  [[nodiscard]] const Op& producer(ValueId v) const { return graph_.op(graph_.value(v).producer); }
  [[nodiscard]] int64_t bytes(ValueId v) const { return graph_.type(v).bytes().count; }
  [[nodiscard]] bool reads_state(ValueId v) const { return producer(v).def->state == ir::StateAccess::kRead; }
  [[nodiscard]] bool makes_whole(const Op& op) const {
    if (ops::makes_whole(*op.def)) return reads_state(op.inputs[0]);
    if (op.def->traffic == nullptr || op.inputs.size() != 2 || !reads_state(op.inputs[1])) return false;
    const Op& piece = producer(op.inputs[0]);
    return ops::is_own_piece(*piece.def) && piece.inputs[0] == op.inputs[1];
  }

  /// The sum, and the ops behind it that need nothing else but states and the gradient: its piece is put
  /// back or gathered, added to others, and becomes a state's.
  [[nodiscard]] std::vector<size_t> tail(size_t sum, ValueId gradient) const {
    std::vector<size_t> found = {sum};
    std::vector<ValueId> made = op(sum).outputs;
    const auto is_there = [&](ValueId v) {
      return !v.valid() || v == gradient || reads_state(v) || std::ranges::find(made, v) != made.end();
    };
    for (size_t i = 0; i < made.size(); ++i)
      for (const size_t user : users_[at(made[i])]) {
        const Op& next = op(user);
        const bool may_follow = std::ranges::find(kBehindSums, next.def->name) != std::end(kBehindSums);
        if (!may_follow || std::ranges::find(found, user) != found.end() ||
            !std::ranges::all_of(next.inputs, is_there))
          continue;
        found.push_back(user);
        made.insert(made.end(), next.outputs.begin(), next.outputs.end());
      }
    std::ranges::sort(found);
    return found;
  }

  const Graph& graph_;
  std::vector<std::vector<size_t>> users_;  ///< by value: places
};

class OverlapWalk {
 public:
  explicit OverlapWalk(const Graph& graph)
      : graph_(graph),
        deps_(dependencies(graph)),
        done_(size(), false),
        waiting_(size()),
        send_of_(size(), kNoSend) {
    const ExchangeFinder finder(graph);
    sends_ = finder.sends(), gathers_ = finder.gathers();
    window_ = window_of(sends_), gathered_window_ = window_of(gathers_);
    placed_.assign(size(), false);
    for (size_t s = 0; s < sends_.size(); ++s) {
      placed_[sends_[s].place] = true, send_of_[sends_[s].place] = s;
      for (const size_t place : sends_[s].tail) placed_[place] = true;
    }
    for (const Gather& gather : gathers_) placed_[gather.place] = true;
    for (size_t place = 0; place < size(); ++place) waiting_[place] = deps_.before[place].size();
  }

  std::vector<OpId> run() {
    for (size_t place = 0; place < size(); ++place)
      if (waiting_[place] == 0 && send_of_[place] != kNoSend) ready_.push_back(send_of_[place]);
    for (size_t place = 0; place < size(); ++place) {
      begin_sends();
      gather_ahead(place);
      if (!placed_[place]) emit_with_operands(place);
    }
    begin_sends();
    for (size_t place = 0; place < size(); ++place) emit_with_operands(place);
    return std::move(order_);
  }

 private:
  [[nodiscard]] size_t size() const { return graph_.order().size(); }

  /// Of gathers whose reader has not come yet as many as the window has room for, one in any case.
  void gather_ahead(size_t place) {
    for (; reached_ < gathers_.size() && gathers_[reached_].place <= place; ++reached_) {
      if (ahead_ > reached_)
        ahead_bytes_ -= gathers_[reached_].bytes;
      else
        ahead_ = reached_ + 1;
    }
    for (; ahead_ < gathers_.size(); ++ahead_) {
      const Gather& next = gathers_[ahead_];
      if (ahead_bytes_ > 0 && ahead_bytes_ + next.bytes > gathered_window_) break;
      emit_with_operands(next.place);
      ahead_bytes_ += next.bytes;
    }
  }

  /// Those whose gradient is there; the oldest under way end first where there is no room.
  void begin_sends() {
    while (!ready_.empty()) {
      const Send& send = sends_[ready_.front()];
      if (!done_[send.place]) {
        while (!flying_.empty() && flying_bytes_ + send.bytes > window_) finish(flying_.front());
        emit_with_operands(send.place);
        flying_.push_back(ready_.front());
        flying_bytes_ += send.bytes;
      }
      ready_.pop_front();
    }
  }
  void finish(size_t s) {
    flying_.erase(std::ranges::find(flying_, s));
    flying_bytes_ -= sends_[s].bytes;
    for (const size_t place : sends_[s].tail) emit_with_operands(place);
  }

  /// Depth first over what must come before; an explicit stack, as chains grow with the model.
  void emit_with_operands(size_t place) {
    if (done_[place]) return;
    stack_.assign(1, {place, 0});
    while (!stack_.empty()) {
      auto& [op, next] = stack_.back();
      if (done_[op]) {
        stack_.pop_back();
      } else if (next < deps_.before[op].size()) {
        const size_t needed = deps_.before[op][next++];
        if (!done_[needed]) stack_.emplace_back(needed, 0);
      } else {
        const size_t ready = op;
        stack_.pop_back();
        emit(ready);
      }
    }
  }
  void emit(size_t place) {
    done_[place] = true;
    order_.push_back(graph_.order()[place]);
    for (const size_t after : deps_.after[place])
      if (--waiting_[after] == 0 && send_of_[after] != kNoSend) ready_.push_back(send_of_[after]);
  }

  const Graph& graph_;
  const Dependencies deps_;
  std::vector<Send> sends_;
  std::vector<Gather> gathers_;
  int64_t window_ = 0, gathered_window_ = 0;
  std::vector<bool> placed_;  ///< by place: of a send or a gather
  std::vector<bool> done_;
  std::vector<size_t> waiting_;
  std::vector<size_t> send_of_;        ///< by place
  std::deque<size_t> ready_, flying_;  ///< sends
  int64_t flying_bytes_ = 0;
  size_t reached_ = 0, ahead_ = 0;  ///< gathers before the walk's place, and those that have begun
  int64_t ahead_bytes_ = 0;         ///< of those between the two
  std::vector<OpId> order_;
  std::vector<std::pair<size_t, size_t>> stack_;  ///< op, next of its predecessors
};

/// What is sent is read until it has arrived: until then its bytes are not another value's.
void keep_sources(Graph& graph) {
  for (const OpId id : graph.order()) {
    Op& sum = graph.op(id);
    if (!ops::is_sum_of_ranks(*sum.def) || sum.inputs.size() > 1) continue;
    const Op& sends = graph.op(graph.value(sum.inputs[0]).producer);
    if (sends.def->traffic != nullptr) sum.inputs.push_back(sends.inputs[0]);
  }
}

}  // namespace

void overlap_ranks(Graph& graph, bool early) {
  bool talks = false;
  for (const OpId id : graph.order()) {
    Op& op = graph.op(id);
    if (op.def->traffic == nullptr) continue;
    op.queue = ir::kNetworkQueue;
    talks = true;
  }
  if (!talks || !early) return;
  keep_sources(graph);
  std::vector<OpId> order = OverlapWalk(graph).run();
  PLIMSOLL_CHECK(order.size() == graph.order().size(), "an op was lost");
  graph.set_order(std::move(order));
}

}  // namespace plimsoll::passes
