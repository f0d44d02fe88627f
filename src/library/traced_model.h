// Presents a trace as a model and a task to the planner, the optimizers and the checkpoints, so that a
// caller's model is planned and trained like any other.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "library/trace.h"
#include "models/model.h"
#include "tasks/task.h"

namespace plimsoll::library {

class TracedModel final : public models::Model {
 public:
  explicit TracedModel(const Trace& trace);

  /// Running values that training writes.
  [[nodiscard]] const std::vector<std::string>& followed() const { return followed_; }
  /// By how much the numbers of batches grow with each part of a step, by name.
  [[nodiscard]] const std::map<std::string, int64_t>& counts() const { return counts_; }

 private:
  void count_call(const Trace& trace, const std::string& running_mean);
  void add_norms(const Trace& trace, const std::vector<bool>& needed);

  std::vector<std::string> followed_;
  std::map<std::string, int64_t> counts_;
};

/// The state that keeps a running value while a step runs that may be taken back. It is in no file.
inline std::string kept_state(const std::string& running) { return running + "@before"; }

/// Of a trace with a loss. A batch is one micro-batch of the declared shapes.
class TracedTask final : public tasks::Task {
 public:
  explicit TracedTask(std::shared_ptr<const Trace> trace);

  [[nodiscard]] std::string_view loss_unit() const override { return "batches"; }
  tasks::Outputs forward(ir::Builder& b, const models::Model& model, std::span<const ir::ValueId> inputs,
                         const tasks::LossOperands& operands) const override;
  [[nodiscard]] std::span<const int32_t> checkpointed_blocks() const override {
    return trace_->scopes().checkpointed();
  }

  // An own model's data are the caller's: nobody asks for these.
  ir::ValueId logits(ir::Builder& b, const models::Model& model,
                     std::span<const ir::ValueId> inputs) const override;
  [[nodiscard]] ir::Shape logits_shape(int64_t batch) const override { return {batch}; }
  Result<std::unique_ptr<datasets::ExampleSource>> open_source(
      const datasets::DataFiles& files, const datasets::SourceOptions& options) const override;
  void draw(uint64_t /*seed*/, datasets::ExampleRow /*row*/) const override {}

 private:
  std::shared_ptr<const Trace> trace_;
  std::vector<bool> needed_;  ///< by op of the trace: the loss depends on it
};

/// Whether the loss depends on each op.
std::vector<bool> needed_ops(const Trace& trace);
/// Errors: kInvalidArgument of a trace without a loss, with an open scope, or with a parameter that the loss
/// does not depend on, or through no op with a derivative.
Status check_trace(const std::shared_ptr<const Trace>& trace);

}  // namespace plimsoll::library
