#include "planner/queue_times.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <vector>

#include "base/check.h"
#include "ir/op_def.h"

namespace plimsoll::planner {
namespace {

using ir::MemorySpace;

size_t at(ir::ValueId v) { return static_cast<size_t>(v.index); }

/// Queues of copies: those to the device, and all others.
constexpr size_t kCopyQueues = 2;
/// How many copies of each have ended. As each queue keeps its order, that says which.
using Ended = std::array<size_t, kCopyQueues>;

Ended later(const Ended& a, const Ended& b) { return {std::max(a[0], b[0]), std::max(a[1], b[1])}; }

struct Copy {
  double bytes_left = 0;
  CopyRates rates;
  bool uses_disk = false;
  size_t place = 0;  ///< it may begin when the kernels have come so far
  Ended after = {};  ///< and these have ended
};

/// What waits for what: by place in the order.
struct Dependencies {
  std::array<std::vector<Copy>, kCopyQueues> queues;
  std::vector<Ended> needs;  ///< before the op at that place runs
};

Dependencies dependencies_of(const ir::Graph& graph, const MachineProfile& profile) {
  Dependencies result;
  std::vector<Ended> after(graph.num_values());
  std::vector<size_t> made(graph.num_values(), 0);  // when kernels have come so far, it is there
  result.needs.resize(graph.order().size());
  for (size_t place = 0; place < graph.order().size(); ++place) {
    const ir::Op& op = graph.op(graph.order()[place]);
    Ended inputs = {};
    size_t sources = 0;
    for (const ir::ValueId v : op.inputs)
      if (v.valid()) inputs = later(inputs, after[at(v)]), sources = std::max(sources, made[at(v)]);
    const bool is_state = op.def->state != ir::StateAccess::kNone;
    if (op.def->is_copy) {
      const MemorySpace from = graph.value(op.inputs[0]).space, to = graph.value(op.outputs[0]).space;
      const size_t q = op.queue == ir::Queue::kCopyIn ? 0 : 1;
      result.queues[q].push_back({.bytes_left = static_cast<double>(graph.type(op.outputs[0]).bytes().count),
                                  .rates = copy_rates(profile, from, to),
                                  .uses_disk = from == MemorySpace::kDisk || to == MemorySpace::kDisk,
                                  .place = to == MemorySpace::kDevice ? place : sources,
                                  .after = inputs});
      inputs[q] = std::max(inputs[q], result.queues[q].size());
    } else if (op.def->name == "copy_done") {
      if (graph.value(op.outputs[0]).space != MemorySpace::kDevice) result.needs[place] = inputs;
    } else if (!op.def->is_view && !is_state) {
      result.needs[place] = inputs;
      inputs = {}, sources = place + 1;
    }
    for (const ir::ValueId v : op.outputs) after[at(v)] = inputs, made[at(v)] = sources;
  }
  return result;
}

/// The clock of one program.
class Simulation {
 public:
  explicit Simulation(Dependencies dependencies) : d_(std::move(dependencies)) {}

  /// The op at that place, once what it needs is there.
  void run(size_t place, double seconds) {
    reached_ = place;
    go_on(0, d_.needs[place]);
    go_on(seconds, {});
  }
  /// All that is left.
  void finish() {
    reached_ = std::numeric_limits<size_t>::max();
    go_on(0, {d_.queues[0].size(), d_.queues[1].size()});
  }
  [[nodiscard]] double seconds() const { return clock_; }

 private:
  Copy* active(size_t queue) {
    std::vector<Copy>& copies = d_.queues[queue];
    if (ended_[queue] == copies.size()) return nullptr;
    Copy& next = copies[ended_[queue]];
    const bool may = next.place <= reached_ && next.after[0] <= ended_[0] && next.after[1] <= ended_[1];
    return may ? &next : nullptr;
  }
  static double rate_of(const Copy& copy, const Copy* other, bool beside_kernels) {
    double rate = copy.rates.alone;
    if (beside_kernels) rate *= copy.rates.beside_kernels;
    if (other != nullptr && copy.uses_disk && other->uses_disk) rate *= copy.rates.beside_copy;
    return rate;
  }

  /// Until so much of a kernel is done and those have ended, all that can goes on at once.
  void go_on(double kernel, const Ended& until) {
    while (kernel > 0 || ended_[0] < until[0] || ended_[1] < until[1]) {
      const std::array<Copy*, kCopyQueues> copies = {active(0), active(1)};
      PLIMSOLL_CHECK(kernel > 0 || copies[0] != nullptr || copies[1] != nullptr, "a copy that never begins");
      double slowdown = 1;
      std::array<double, kCopyQueues> rates = {};
      for (size_t q = 0; q < kCopyQueues; ++q) {
        if (copies[q] == nullptr) continue;
        rates[q] = rate_of(*copies[q], copies[1 - q], kernel > 0);
        slowdown += copies[q]->rates.kernel_seconds;
      }
      double step = kernel > 0 ? kernel * slowdown : std::numeric_limits<double>::infinity();
      for (size_t q = 0; q < kCopyQueues; ++q)
        if (copies[q] != nullptr) step = std::min(step, copies[q]->bytes_left / rates[q]);
      clock_ += step;
      kernel = step == kernel * slowdown ? 0 : kernel - step / slowdown;
      for (size_t q = 0; q < kCopyQueues; ++q) {
        if (copies[q] == nullptr) continue;
        const bool ends = step == copies[q]->bytes_left / rates[q];
        copies[q]->bytes_left -= step * rates[q];
        if (ends) ++ended_[q];
      }
    }
  }

  Dependencies d_;
  Ended ended_ = {};
  size_t reached_ = 0;
  double clock_ = 0;
};

}  // namespace

CopyRates copy_rates(const MachineProfile& p, MemorySpace from, MemorySpace to) {
  const bool in = to == MemorySpace::kDevice;
  const auto part = [](double beside, double alone) {
    return beside > 0 && alone > 0 ? std::min(1.0, beside / alone) : 1.0;
  };
  if (from == MemorySpace::kDisk || to == MemorySpace::kDisk) {
    const double alone = in ? p.disk_read_bandwidth : p.disk_write_bandwidth;
    return {.alone = std::max(1.0, alone > 0 ? alone : kUnknownDiskBandwidth),
            .beside_kernels = part(in ? p.disk_read_beside_kernels : p.disk_write_beside_kernels, alone),
            .beside_copy = part(in ? p.disk_read_beside_write : p.disk_write_beside_read, alone),
            .kernel_seconds = p.disk_kernel_seconds};
  }
  const double alone = in ? p.copy_in_bandwidth : p.copy_out_bandwidth;
  return {.alone = std::max(1.0, alone > 0 ? alone : p.memory_bandwidth),
          .beside_kernels = part(in ? p.copy_in_beside_kernels : p.copy_out_beside_kernels, alone),
          .kernel_seconds = p.copy_kernel_seconds};
}

double waiting_seconds(const ir::Graph& graph, std::span<const double> kernel_seconds,
                       const MachineProfile& profile) {
  Simulation simulation(dependencies_of(graph, profile));
  double worked = 0;
  for (size_t place = 0; place < graph.order().size(); ++place) {
    const ir::Op& op = graph.op(graph.order()[place]);
    const bool is_kernel = !op.def->is_copy && op.def->name != "copy_done" && !op.def->is_view &&
                           op.def->state == ir::StateAccess::kNone;
    const double seconds = is_kernel ? kernel_seconds[place] : 0;
    simulation.run(place, seconds);
    worked += seconds;
  }
  simulation.finish();
  return simulation.seconds() - worked;
}

}  // namespace plimsoll::planner
