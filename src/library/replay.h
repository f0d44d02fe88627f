// Appends the ops of a trace to another graph: a program's forward pass, in training or in evaluation.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "library/trace.h"
#include "models/model.h"
#include "tasks/task.h"

namespace plimsoll::library {

class Replay {
 public:
  /// `needed`: by op of the trace, those that will be appended.
  Replay(const Trace& trace, const std::vector<bool>& needed, ir::Builder& b, const models::Model& model,
         const tasks::LossOperands& operands);

  void give(ir::ValueId traced, ir::ValueId value) { at(traced) = value; }
  void append(ir::OpId id);
  /// The loss stands outside of all blocks, wherever its last op does.
  tasks::Outputs outputs();

 private:
  ir::ValueId& at(ir::ValueId traced) { return values_[static_cast<size_t>(traced.index)]; }
  void keep(const ir::Op& op, const std::vector<ir::ValueId>& results);
  void read(const ir::Op& op);
  void append_quietly(const ir::Op& op);
  /// In training the statistics of the batch, which the running values follow; in evaluation these.
  void append_statistics(const ir::Op& op, const TracedNorm& norm);
  void follow(ir::ValueId running, ir::ValueId value, double keep, double share);
  /// A buffer, as it is at this point of the program.
  ir::ValueId current(ir::ValueId buffer);
  /// The norm whose running values stand in for these statistics of a batch; null where there are none.
  [[nodiscard]] const TracedNorm* running_norm(ir::ValueId mean) const;
  ir::ValueId single(ir::ValueId loss);
  ir::ValueId total(ir::ValueId loss);

  const Trace& trace_;
  const ir::Graph& graph_;
  ir::Builder& b_;
  const models::Model& model_;
  const tasks::LossOperands& operands_;
  std::vector<ir::ValueId> values_;       // by value of the trace
  std::map<int32_t, int> norms_to_come_;  // by buffer: statistics that it has yet to follow
};

}  // namespace plimsoll::library
