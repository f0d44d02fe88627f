#include "planner/cost/queue_times.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <vector>

#include "base/at.h"
#include "base/check.h"
#include "ir/network_queue.h"
#include "ir/op_def.h"

namespace plimsoll::planner {
namespace {

using ir::MemorySpace;

using passes::kQueueHost;
using passes::kQueueIn;
using passes::kQueueNetwork;
using passes::kQueueOut;
using passes::kQueuesBeside;
using passes::later;
using passes::QueueProgram;
using passes::QueuesEnded;
using passes::QueueWork;

bool has(const QueuesEnded& ended, const QueuesEnded& needed) {
  for (size_t q = 0; q < kQueuesBeside; ++q)
    if (ended[q] < needed[q]) return false;
  return true;
}

/// Of what the same processor does beside its kernels: each of two gets half of it.
constexpr CopyRates kSameProcessor = {.alone = 1, .beside_kernels = 0.5, .kernel_seconds = 1};

CopyRates rates_of_host(const MachineProfile& profile) {
  return profile.memory_bytes == 0 ? kSameProcessor : CopyRates{.alone = 1};
}

class Finder {
 public:
  explicit Finder(const ir::Graph& graph)
      : graph_(graph),
        after_(graph.num_values()),
        made_(graph.num_values(), 0),
        lasts_(graph.num_values(), false) {}

  QueueProgram run() {
    result_.needs.resize(graph_.order().size() + 1);
    for (size_t place = 0; place < graph_.order().size(); ++place)
      visit(graph_.op(graph_.order()[place]), static_cast<int32_t>(place));
    return std::move(result_);
  }

 private:
  void visit(const ir::Op& op, int32_t place) {
    QueuesEnded inputs = {};
    int32_t sources = 0;
    for (const ir::ValueId v : op.inputs)
      if (v.valid()) inputs = later(inputs, after_[at(v)]), sources = std::max(sources, made_[at(v)]);
    const bool is_state = op.def->state != ir::StateAccess::kNone;
    QueuesEnded& needs = result_.needs[static_cast<size_t>(place)];
    if (op.def->is_copy) {
      const MemorySpace from = graph_.value(op.inputs[0]).space, to = graph_.value(op.outputs[0]).space;
      result_.add(op.queue == ir::Queue::kCopyIn ? kQueueIn : kQueueOut, inputs,
                  {.bytes = graph_.type(op.outputs[0]).bytes().count,
                   .from = from,
                   .to = to,
                   .place = to == MemorySpace::kDevice ? place : sources});
    } else if (op.def->ends_copy) {
      // Behind it the source's bytes go on to others; what is read by the host alone keeps no kernel waiting.
      const bool frees =
          graph_.value(op.inputs[1]).space == MemorySpace::kDevice && !lasts_[at(op.inputs[1])];
      if (frees) needs = inputs;
    } else if (op.queue == ir::kNetworkQueue) {
      result_.add(kQueueNetwork, inputs, {.op_place = place, .place = place});
    } else if (op.queue == ir::Queue::kHost) {
      result_.add(kQueueHost, inputs, {.op_place = place, .place = sources});
    } else if (!op.def->is_view && !is_state) {
      needs = inputs;
      inputs = {}, sources = place + 1;
    }
    for (const ir::ValueId v : op.outputs) {
      after_[at(v)] = inputs, made_[at(v)] = sources;
      lasts_[at(v)] =
          op.def->state == ir::StateAccess::kRead || (op.def->is_view && lasts_[at(op.inputs[0])]);
    }
  }

  const ir::Graph& graph_;
  std::vector<QueuesEnded> after_;
  std::vector<int32_t> made_;  ///< when kernels have come so far, it is there
  std::vector<bool> lasts_;    ///< its bytes are a state's
  QueueProgram result_;
};

/// What is left of a piece of work: seconds of a kernel, at a rate of one, or bytes.
struct Work {
  double left = 0;
  CopyRates rates;
  bool uses_disk = false;
};

/// The clock of one program.
class Simulation {
 public:
  Simulation(const QueueProgram& program, std::span<const double> seconds, const MachineProfile& profile,
             bool network_is_apart)
      : program_(program) {
    const CopyRates of_host = rates_of_host(profile);
    const CopyRates of_network = network_is_apart ? CopyRates{.alone = 1} : kSameProcessor;
    for (size_t q = 0; q < kQueuesBeside; ++q)
      for (const QueueWork& work : program.queues[q])
        works_[q].push_back(
            work.op_place >= 0
                ? Work{seconds[static_cast<size_t>(work.op_place)], q == kQueueNetwork ? of_network : of_host}
                : Work{static_cast<double>(work.bytes), copy_rates(profile, work.from, work.to),
                       work.from == MemorySpace::kDisk || work.to == MemorySpace::kDisk});
  }

  /// The op at that place, once what it needs is there.
  void run(size_t place, double seconds) {
    reached_ = static_cast<int32_t>(place);
    go_on(0, program_.needs[place]);
    go_on(seconds, {});
  }
  /// All that is left.
  void finish() {
    reached_ = std::numeric_limits<int32_t>::max();
    QueuesEnded all = {};
    for (size_t q = 0; q < kQueuesBeside; ++q) all[q] = static_cast<int32_t>(works_[q].size());
    go_on(0, all);
  }
  [[nodiscard]] double seconds() const { return clock_; }

 private:
  using Active = std::array<Work*, kQueuesBeside>;

  Work* active(size_t queue) {
    const auto next = static_cast<size_t>(ended_[queue]);
    if (next == works_[queue].size()) return nullptr;
    const QueueWork& work = program_.queues[queue][next];
    return work.place <= reached_ && has(ended_, work.after) ? &works_[queue][next] : nullptr;
  }
  static double rate_of(const Active& works, size_t queue, bool beside_kernels) {
    const Work& work = *works[queue];
    double rate = work.rates.alone;
    if (beside_kernels) rate *= work.rates.beside_kernels;
    for (size_t other = 0; other < kQueuesBeside; ++other)
      if (other != queue && works[other] != nullptr && work.uses_disk && works[other]->uses_disk)
        rate *= work.rates.beside_copy;
    return rate;
  }

  /// Until so much of a kernel is done and those have ended, all that can goes on at once.
  void go_on(double kernel, const QueuesEnded& until) {
    while (kernel > 0 || !has(ended_, until)) {
      const Active works = {active(kQueueIn), active(kQueueOut), active(kQueueHost), active(kQueueNetwork)};
      PLIMSOLL_CHECK(kernel > 0 || std::ranges::any_of(works, [](const Work* w) { return w != nullptr; }),
                     "a copy that never begins");
      double slowdown = 1;
      std::array<double, kQueuesBeside> rates = {};
      for (size_t q = 0; q < kQueuesBeside; ++q) {
        if (works[q] == nullptr) continue;
        rates[q] = rate_of(works, q, kernel > 0);
        slowdown += works[q]->rates.kernel_seconds;
      }
      double step = kernel > 0 ? kernel * slowdown : std::numeric_limits<double>::infinity();
      for (size_t q = 0; q < kQueuesBeside; ++q)
        if (works[q] != nullptr) step = std::min(step, works[q]->left / rates[q]);
      clock_ += step;
      kernel = step == kernel * slowdown ? 0 : kernel - step / slowdown;
      for (size_t q = 0; q < kQueuesBeside; ++q) {
        if (works[q] == nullptr) continue;
        const bool ends = step == works[q]->left / rates[q];
        works[q]->left -= step * rates[q];
        if (ends) ++ended_[q];
      }
    }
  }

  const QueueProgram& program_;
  std::array<std::vector<Work>, kQueuesBeside> works_;
  QueuesEnded ended_ = {};
  int32_t reached_ = 0;
  double clock_ = 0;
};

}  // namespace

CopyRates copy_rates(const MachineProfile& p, MemorySpace from, MemorySpace to) {
  const bool in = to == MemorySpace::kDevice;
  const auto part = [](double beside, double alone) {
    return beside > 0 && alone > 0 ? std::min(1.0, beside / alone) : 1.0;
  };
  const double link = in ? p.copy_in_bandwidth : p.copy_out_bandwidth;
  if (from == MemorySpace::kDisk || to == MemorySpace::kDisk) {
    const double known = in ? p.disk_read_bandwidth : p.disk_write_bandwidth;
    const double disk = known > 0 ? known : kUnknownDiskBandwidth;
    const double alone = link > 0 ? std::min(disk, link) : disk;  // a device has it over its link
    return {.alone = std::max(1.0, alone),
            .beside_kernels = part(in ? p.disk_read_beside_kernels : p.disk_write_beside_kernels, alone),
            .beside_copy = part(in ? p.disk_read_beside_write : p.disk_write_beside_read, alone),
            .kernel_seconds = p.disk_kernel_seconds};
  }
  return {.alone = std::max(1.0, link > 0 ? link : p.memory_bandwidth),
          .beside_kernels = part(in ? p.copy_in_beside_kernels : p.copy_out_beside_kernels, link),
          .kernel_seconds = p.copy_kernel_seconds};
}

passes::CopySeconds copy_seconds(const MachineProfile& profile) {
  return [profile](int64_t bytes, MemorySpace from, MemorySpace to) {
    const CopyRates rates = copy_rates(profile, from, to);
    return static_cast<double>(bytes) / (rates.alone * rates.beside_kernels * rates.beside_copy);
  };
}

passes::QueueProgram queue_program(const ir::Graph& graph) { return Finder(graph).run(); }

double waiting_seconds(const QueueProgram& program, std::span<const double> kernel_seconds,
                       const MachineProfile& profile, bool network_is_apart) {
  Simulation simulation(program, kernel_seconds, profile, network_is_apart);
  std::vector<bool> is_beside(kernel_seconds.size(), false);
  for (const size_t q : {kQueueHost, kQueueNetwork})
    for (const QueueWork& work : program.queues[q]) is_beside[static_cast<size_t>(work.op_place)] = true;
  double worked = 0;
  for (size_t place = 0; place < kernel_seconds.size(); ++place) {
    const double seconds = is_beside[place] ? 0 : kernel_seconds[place];
    simulation.run(place, seconds);
    worked += seconds;
  }
  simulation.finish();
  return simulation.seconds() - worked;
}

}  // namespace plimsoll::planner
