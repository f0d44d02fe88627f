// Seconds of ops and of steps, from a machine's profile.
#pragma once

#include <array>
#include <string_view>

#include "ir/graph.h"
#include "ir/op_def.h"
#include "planner/machine_profile.h"

namespace plimsoll::planner {

/// What a step's time goes to.
enum class Part : uint8_t { kProducts, kAttention, kLoss, kMemory, kOptimizer, kCopies };
inline constexpr size_t kNumParts = 6;
/// "products", "attention", "loss head", "memory-bound ops", "optimizer", "copies".
std::string_view name(Part part);

/// Seconds by part, and how much of each is waiting for memory rather than arithmetic.
struct StepSeconds {
  std::array<double, kNumParts> parts = {};
  std::array<double, kNumParts> by_memory = {};

  [[nodiscard]] double total() const;
  void add(const StepSeconds& other, double times);
};

/// Deterministic; copies of a profile give the same seconds.
class CostModel {
 public:
  /// A CPU's rates go with `num_threads`; a card's do not.
  CostModel(const MachineProfile& profile, int num_threads);

  /// Adds an op. One that takes no time (a view, a state's name) adds nothing.
  void add(const ir::Graph& graph, const ir::Op& op, StepSeconds& seconds) const;
  /// Of work of which the shapes are not known, products in that type: linear, so that parts add up.
  [[nodiscard]] double seconds(const ir::Cost& cost, ProductType type) const;
  /// Operations a second of a product [m, k] x [k, n]: between the points that were measured by the distance
  /// of their extents' logarithms, else saturating with each extent.
  [[nodiscard]] double product_rate(ProductType type, double m, double n, double k) const;
  [[nodiscard]] const MachineProfile& profile() const { return profile_; }

 private:
  struct Time {
    double arithmetic = 0, memory = 0;
  };
  [[nodiscard]] Time time_of(Part part, const ir::OpTypes& types, const ir::Cost& cost) const;
  [[nodiscard]] double product_seconds(const ir::OpTypes& types, double flops) const;

  MachineProfile profile_;  ///< with the rates of all threads
};

/// What the op's products compute in.
ProductType product_type(const ir::OpTypes& types);

}  // namespace plimsoll::planner
