// Seconds of ops and of steps, from a machine's profile.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "ir/op_def.h"
#include "planner/cost/machine_profile.h"
#include "planner/cost/network.h"
#include "planner/cost/op_work.h"
#include "runtime/target.h"

namespace plimsoll::planner {

/// What a step's time goes to.
enum class Part : uint8_t { kProducts, kAttention, kLoss, kMemory, kOptimizer, kCopies, kNetwork };
inline constexpr size_t kNumParts = 7;
/// "products", "attention", "loss head", "memory-bound ops", "optimizer", "copies", "network": of events.
std::string_view name(Part part);

/// Seconds by part, and how much of each is waiting for memory rather than arithmetic.
struct StepSeconds {
  std::array<double, kNumParts> parts = {};
  std::array<double, kNumParts> by_memory = {};
  double hidden = 0;  ///< of exchanges between ranks, behind what else the step computes: no part

  [[nodiscard]] double total() const;
  void add(const StepSeconds& other, double times);
};

/// The parts of a CPU profile's rates that so many threads reach: measured, or between what was; below that
/// in proportion, and beyond all threads too where nothing was measured.
ThreadShares thread_shares(const MachineProfile& profile, int64_t threads);

/// What the host of a device computes updates with, bytes and operations a second.
struct HostRates {
  double update_bandwidth = 0, flops = 0;
};
/// Of a device that is the CPU its own. Of a card's host no profile says anything: half of what two channels
/// of DDR4-3200 have, and as many operations as four cores of 25 GFLOP/s.
HostRates host_rates(const MachineProfile& profile);

/// Deterministic; copies of a profile give the same seconds.
class CostModel {
 public:
  /// A CPU's rates go with `num_threads` (thread_shares); a card's do not. `network`: between ranks.
  /// `target`: says which products of FP8 and FP4 operands run on units for these formats, and whether
  /// kernels of their own round what products multiply, and outlives this; null: none.
  CostModel(const MachineProfile& profile, int num_threads, const Network& network = {},
            const runtime::Target* target = nullptr);

  /// Of a kernel that the host runs (ir::Queue::kHost).
  [[nodiscard]] double host_seconds(const ir::Graph& graph, const ir::Op& op) const;
  /// Adds an op. One that takes no time (a view, a state's name) adds nothing.
  void add(const ir::Graph& graph, const ir::Op& op, StepSeconds& seconds) const;
  /// Work a second: between the points that were measured of that kind and type by the distance of their
  /// extents' logarithms; an extent beyond all of theirs is taken for the nearest, as rates saturate. 0 where
  /// none was measured.
  [[nodiscard]] double measured_rate(const OpWork& of) const;
  [[nodiscard]] const MachineProfile& profile() const { return profile_; }
  [[nodiscard]] const Network& network() const { return network_; }
  /// Whether what ranks exchange takes nothing from the kernels beside it: a card's, or over a described
  /// network. Else the same processor moves it.
  [[nodiscard]] bool network_is_apart() const { return network_.is_described || profile_.memory_bytes > 0; }

 private:
  struct Time {
    double arithmetic = 0, memory = 0;
  };
  [[nodiscard]] Time time_of(Part part, const ir::OpDef& def, const ir::OpTypes& types,
                             const ir::Cost& cost) const;
  /// By the large rates alone, where nothing was measured of the kind.
  [[nodiscard]] double arithmetic_seconds(Part part, const OpWork& of, const ir::OpTypes& types,
                                          const ir::Cost& cost) const;
  [[nodiscard]] double factor_of(const OpWork& of) const;
  [[nodiscard]] double network_seconds(const ir::OpDef& def, const ir::OpTypes& types,
                                       const ir::Cost& cost) const;
  /// Of a product on units for the codes of its operands; 0: it is another op, or no such rate is known.
  [[nodiscard]] double code_rate(const ir::OpTypes& types) const;

  /// What was measured of one kind in one type.
  struct Known {
    struct Point {
      std::array<double, 3> log_extents;
      double log_rate;
    };
    std::string kind;
    ProductType type;
    std::vector<Point> points;
    std::array<double, 3> least = {}, most = {};  ///< of the points' log_extents
  };
  [[nodiscard]] const Known* known(const OpWork& of) const;

  const runtime::Target* target_;
  MachineProfile profile_;  ///< with the rates of all threads
  Network network_;         ///< with a rate within the machine
  std::vector<Known> known_;
};

}  // namespace plimsoll::planner
