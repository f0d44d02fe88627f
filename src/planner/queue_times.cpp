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

/// Queues beside the kernels': copies to the device, all others, and what the host computes.
constexpr size_t kIn = 0, kOut = 1, kHost = 2, kBeside = 3;
/// How much of each has ended. As each queue keeps its order, that says which.
using Ended = std::array<size_t, kBeside>;

Ended later(const Ended& a, const Ended& b) {
  return {std::max(a[kIn], b[kIn]), std::max(a[kOut], b[kOut]), std::max(a[kHost], b[kHost])};
}
bool has(const Ended& ended, const Ended& needed) {
  return ended[kIn] >= needed[kIn] && ended[kOut] >= needed[kOut] && ended[kHost] >= needed[kHost];
}

/// A copy, or a kernel of the host: its seconds are its bytes then, at a rate of one.
struct Work {
  double left = 0;
  CopyRates rates;
  bool uses_disk = false;
  size_t place = 0;  ///< it may begin when the kernels have come so far
  Ended after = {};  ///< and these have ended
};

/// What waits for what: by place in the order.
struct Dependencies {
  std::array<std::vector<Work>, kBeside> queues;
  std::vector<Ended> needs;  ///< before the op at that place runs
};

CopyRates rates_of_host(const MachineProfile& profile) {
  const bool is_device = profile.memory_bytes == 0;
  return {.alone = 1, .beside_kernels = is_device ? 0.5 : 1, .kernel_seconds = is_device ? 1.0 : 0.0};
}

class Finder {
 public:
  Finder(const ir::Graph& graph, std::span<const double> seconds, const MachineProfile& profile)
      : graph_(graph),
        seconds_(seconds),
        profile_(profile),
        after_(graph.num_values()),
        made_(graph.num_values(), 0),
        lasts_(graph.num_values(), false) {}

  Dependencies run() {
    result_.needs.resize(graph_.order().size());
    for (size_t place = 0; place < graph_.order().size(); ++place)
      visit(graph_.op(graph_.order()[place]), place);
    return std::move(result_);
  }

 private:
  void visit(const ir::Op& op, size_t place) {
    Ended inputs = {};
    size_t sources = 0;
    for (const ir::ValueId v : op.inputs)
      if (v.valid()) inputs = later(inputs, after_[at(v)]), sources = std::max(sources, made_[at(v)]);
    const bool is_state = op.def->state != ir::StateAccess::kNone;
    if (op.def->is_copy) {
      const MemorySpace from = graph_.value(op.inputs[0]).space, to = graph_.value(op.outputs[0]).space;
      add(op.queue == ir::Queue::kCopyIn ? kIn : kOut, inputs,
          {.left = static_cast<double>(graph_.type(op.outputs[0]).bytes().count),
           .rates = copy_rates(profile_, from, to),
           .uses_disk = from == MemorySpace::kDisk || to == MemorySpace::kDisk,
           .place = to == MemorySpace::kDevice ? place : sources});
    } else if (op.def->name == "copy_done") {
      // Behind it the source's bytes go on to others; what is read by the host alone keeps no kernel waiting.
      const bool frees =
          graph_.value(op.inputs[1]).space == MemorySpace::kDevice && !lasts_[at(op.inputs[1])];
      if (frees) result_.needs[place] = inputs;
    } else if (op.queue == ir::Queue::kHost) {
      add(kHost, inputs, {.left = seconds_[place], .rates = rates_of_host(profile_), .place = sources});
    } else if (!op.def->is_view && !is_state) {
      result_.needs[place] = inputs;
      inputs = {}, sources = place + 1;
    }
    for (const ir::ValueId v : op.outputs) {
      after_[at(v)] = inputs, made_[at(v)] = sources;
      lasts_[at(v)] =
          op.def->state == ir::StateAccess::kRead || (op.def->is_view && lasts_[at(op.inputs[0])]);
    }
  }
  /// Behind what `inputs` say, which then say that it has ended.
  void add(size_t queue, Ended& inputs, Work work) {
    work.after = inputs;
    result_.queues[queue].push_back(work);
    inputs[queue] = std::max(inputs[queue], result_.queues[queue].size());
  }

  const ir::Graph& graph_;
  std::span<const double> seconds_;
  const MachineProfile& profile_;
  std::vector<Ended> after_;
  std::vector<size_t> made_;  ///< when kernels have come so far, it is there
  std::vector<bool> lasts_;   ///< its bytes are a state's
  Dependencies result_;
};

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
    go_on(0, {d_.queues[kIn].size(), d_.queues[kOut].size(), d_.queues[kHost].size()});
  }
  [[nodiscard]] double seconds() const { return clock_; }

 private:
  using Active = std::array<Work*, kBeside>;

  Work* active(size_t queue) {
    std::vector<Work>& works = d_.queues[queue];
    if (ended_[queue] == works.size()) return nullptr;
    Work& next = works[ended_[queue]];
    return next.place <= reached_ && has(ended_, next.after) ? &next : nullptr;
  }
  static double rate_of(const Active& works, size_t queue, bool beside_kernels) {
    const Work& work = *works[queue];
    double rate = work.rates.alone;
    if (beside_kernels) rate *= work.rates.beside_kernels;
    for (size_t other = 0; other < kBeside; ++other)
      if (other != queue && works[other] != nullptr && work.uses_disk && works[other]->uses_disk)
        rate *= work.rates.beside_copy;
    return rate;
  }

  /// Until so much of a kernel is done and those have ended, all that can goes on at once.
  void go_on(double kernel, const Ended& until) {
    while (kernel > 0 || !has(ended_, until)) {
      const Active works = {active(kIn), active(kOut), active(kHost)};
      PLIMSOLL_CHECK(kernel > 0 || std::ranges::any_of(works, [](const Work* w) { return w != nullptr; }),
                     "a copy that never begins");
      double slowdown = 1;
      std::array<double, kBeside> rates = {};
      for (size_t q = 0; q < kBeside; ++q) {
        if (works[q] == nullptr) continue;
        rates[q] = rate_of(works, q, kernel > 0);
        slowdown += works[q]->rates.kernel_seconds;
      }
      double step = kernel > 0 ? kernel * slowdown : std::numeric_limits<double>::infinity();
      for (size_t q = 0; q < kBeside; ++q)
        if (works[q] != nullptr) step = std::min(step, works[q]->left / rates[q]);
      clock_ += step;
      kernel = step == kernel * slowdown ? 0 : kernel - step / slowdown;
      for (size_t q = 0; q < kBeside; ++q) {
        if (works[q] == nullptr) continue;
        const bool ends = step == works[q]->left / rates[q];
        works[q]->left -= step * rates[q];
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
  Simulation simulation(Finder(graph, kernel_seconds, profile).run());
  double worked = 0;
  for (size_t place = 0; place < graph.order().size(); ++place) {
    const ir::Op& op = graph.op(graph.order()[place]);
    const bool is_kernel = !op.def->is_copy && op.def->name != "copy_done" && !op.def->is_view &&
                           op.def->state == ir::StateAccess::kNone && op.queue != ir::Queue::kHost;
    const double seconds = is_kernel ? kernel_seconds[place] : 0;
    simulation.run(place, seconds);
    worked += seconds;
  }
  simulation.finish();
  return simulation.seconds() - worked;
}

}  // namespace plimsoll::planner
