// Estimates memory and copies of a program with offloaded tensors: the bytes alive at each op, the work of
// its queues. No program is generated, so that many choices can be compared, and their copies with the free
// space.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "ir/graph.h"
#include "ir/op_def.h"
#include "passes/offload/offload.h"
#include "passes/offload/offload_items.h"
#include "passes/offload/offload_uses.h"
#include "passes/order/queue_program.h"

namespace plimsoll::passes {

/// Scratch of an op's kernel on the device and on the host; empty: none.
struct KernelScratch {
  std::function<int64_t(const ir::OpTypes&)> device = {}, host = {};
};

struct OffloadOutline {
  /// By space and place in the order: the most that is alive of the arena at the op there and at the copies
  /// in front of it and behind. Storages rounded up to the space's alignment.
  std::array<std::vector<int64_t>, ir::kNumSpaces> alive;
  std::array<int64_t, ir::kNumSpaces> peak_bytes = {};
  QueueProgram queues;  ///< places are those of the program without copies
  int64_t num_ops = 0;  ///< that the program would have
};

/// Outlines of one scheduled program.
class OffloadOutliner {
 public:
  /// The graph outlives it and stays as it is; it has no copies. `keep`: values that must still be there when
  /// the program ends.
  OffloadOutliner(const ir::Graph& graph, ir::OpId last_forward_op, const KernelScratch& scratch,
                  std::span<const ir::ValueId> keep = {});

  [[nodiscard]] const ir::Graph& graph() const { return graph_; }
  [[nodiscard]] const OffloadUses& uses() const { return uses_; }
  /// The most that is alive is exactly what emit_offloaded's program comes to, bound, but for dense copies of
  /// strided operands that a kernel does not take.
  [[nodiscard]] OffloadOutline outline(const OffloadOptions& options, const OffloadItems& items) const;

 private:
  friend class OutlineVisitor;
  /// An op, without what the walk does not ask.
  struct Step {
    const ir::OpDef* def = nullptr;
    int32_t first_input = 0, num_inputs = 0, first_output = 0, num_outputs = 0;
    int64_t device_scratch = 0, host_scratch = 0;
  };

  const ir::Graph& graph_;
  OffloadUses uses_;
  std::vector<Step> steps_;           // by place
  std::vector<ir::ValueId> inputs_;   // of the steps, one after the other
  std::vector<ir::ValueId> outputs_;  // the same
  std::vector<int32_t> consumed_;     // by output: the input whose storage it takes in any case, or -1
  std::vector<int64_t> bytes_;        // by value
  std::vector<bool> whole_;           // by value: it covers its storage densely
  std::vector<ir::ValueId> keep_;
};

}  // namespace plimsoll::passes
