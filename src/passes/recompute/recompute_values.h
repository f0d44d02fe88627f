// The values that a program drops if it recomputes units of layers, and the bytes saved.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ir/op_def.h"
#include "passes/recompute/recompute.h"

namespace plimsoll::passes {

/// What is computed again as one, from what enters it: a block, a part of one, or a run of blocks.
struct RecomputeUnit {
  int32_t first = 0, last = 0;  ///< blocks
  std::string part = {};        ///< the part's own name, "mlp"; empty: all of it
  std::string name = {};        ///< "layers.3.mlp", "layers.3", "layers.0..layers.3"
};

/// Bytes that backward would have kept of what a unit drops, nearly free values left out; and the work of the
/// clones.
struct RecomputeGain {
  int64_t bytes = 0;
  ir::Cost cost = {};
  std::vector<ir::OpId> cloned = {};  ///< in the graph's order
};

/// A differentiated program as recomputation sees it: what stands before the loss, and who reads it behind.
/// Holds on to the graph.
class RecomputeAnalysis {
 public:
  RecomputeAnalysis(const ir::Graph& graph, ir::OpId last_forward_op);

  /// The blocks and their parts, in order; first and last are the same.
  [[nodiscard]] const std::vector<RecomputeUnit>& layers() const { return layers_; }

  /// For `recompute`. A unit's input stays: the values that enter it, or, where they enter a norm that adds
  /// them, their sum. So a chain of units is kept by one value each. Units do not overlap.
  [[nodiscard]] RecomputeOptions values(const std::vector<RecomputeUnit>& units) const;
  [[nodiscard]] const ir::Graph& graph() const { return graph_; }
  /// Of one unit by itself.
  [[nodiscard]] RecomputeGain gain(const RecomputeUnit& unit) const;

 private:
  struct ForwardOp {
    ir::OpId id;
    std::string part;
  };
  [[nodiscard]] const ir::Op& producer(ir::ValueId v) const { return graph_.op(graph_.value(v).producer); }
  [[nodiscard]] ir::ValueId root(ir::ValueId v) const;
  [[nodiscard]] bool is_read(ir::ValueId owner, int32_t before_block) const;
  [[nodiscard]] std::vector<ir::OpId> ops_of(const RecomputeUnit& unit) const;
  void drop(const RecomputeUnit& unit, std::vector<bool>& inside, std::vector<bool>& stays) const;
  [[nodiscard]] std::vector<ir::ValueId> kept(std::span<const ir::OpId> ops, int32_t before_block) const;

  const ir::Graph& graph_;
  ir::OpId last_forward_op_;
  std::vector<RecomputeUnit> layers_;
  std::vector<std::vector<ForwardOp>> blocks_;  // forward's ops by block
  std::vector<std::vector<int32_t>> backward_;  // by value that owns a storage: blocks that read it
};

}  // namespace plimsoll::passes
