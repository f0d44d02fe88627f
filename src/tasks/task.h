// The interface of a training task. A task says which tensors a batch has, how data becomes them, what the
// loss is and what it is a mean over, and how well outputs meet labels. Planner, loader, feeder, trainer and
// evaluator know named tensors and ask a task for the rest.
//
//   files ─ open_source ─► rows ─► inputs() ─► forward() ─► loss, logits ─► metrics()
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "datasets/batch_layout.h"
#include "datasets/training_data.h"
#include "ir/builder.h"
#include "metrics/metrics.h"
#include "models/model.h"

namespace plimsoll::tasks {

/// A tensor of a micro-batch that the host brings; the programs read it from the state "batch.<name>".
struct Input {
  std::string name;
  ir::DType dtype = ir::DType::kI32;
  datasets::RowTensor row = {};
  /// Of a tensor with values a sequence: [batch, values], else one value and [batch].
  bool has_columns = false;

  [[nodiscard]] ir::Shape shape(int64_t batch, int64_t length) const;
};

/// What a forward pass takes beside the inputs; what is invalid is absent.
struct LossOperands {
  ir::ValueId grad_scale;   ///< f32[1], see ops::cross_entropy
  ir::ValueId acc = {};     ///< f32[1], the loss of the micro-batches before this one
  bool training = false;    ///< dropout; else the model is as it answers
  ir::ValueId random = {};  ///< i32[4]: what dropout draws from
  bool logits = false;      ///< the logits are wanted too
};

struct Outputs {
  ir::ValueId loss;    ///< f32[1], a sum over what the loss is a mean over
  ir::ValueId logits;  ///< of logits_shape, where they are wanted
};

/// Const calls may come from any thread.
class Task {
 public:
  virtual ~Task() = default;
  /// "causal_lm", "sequence_classification".
  [[nodiscard]] virtual std::string_view name() const = 0;
  /// What the loss is a mean over: "targets", "examples". SequenceCounts::targets counts them.
  [[nodiscard]] virtual std::string_view unit() const = 0;

  /// The tensors of a batch, in the order of the rows that sources fill.
  [[nodiscard]] const std::vector<Input>& inputs() const { return inputs_; }
  [[nodiscard]] datasets::BatchLayout layout() const;

  /// The forward pass to the loss. `inputs` in the order of inputs().
  virtual Outputs forward(ir::Builder& b, const models::Model& model, std::span<const ir::ValueId> inputs,
                          const LossOperands& operands) const = 0;
  /// The forward pass to the logits alone, as `debug.dump` writes them: logits_shape of the micro-batch.
  virtual ir::ValueId logits(ir::Builder& b, const models::Model& model,
                             std::span<const ir::ValueId> inputs) const = 0;
  /// f32 [batch, …].
  [[nodiscard]] virtual ir::Shape logits_shape(const models::Model& model, int64_t batch,
                                               int64_t length) const = 0;

  /// Opens files of the run's data as sequences of these inputs. Errors: as TrainingData::open.
  virtual Result<std::unique_ptr<datasets::SequenceSource>> open_source(
      const datasets::DataFiles& files, const datasets::TrainingDataOptions& options) const = 0;

  /// Whether an evaluation says more than the loss: then it keeps the logits and gives them to metrics.
  [[nodiscard]] virtual bool has_metrics() const { return false; }
  /// For at most `max_examples` examples; null without metrics.
  [[nodiscard]] virtual std::unique_ptr<metrics::Metrics> make_metrics(int64_t max_examples) const;
  /// Bytes that they take.
  [[nodiscard]] virtual int64_t metrics_bytes(int64_t max_examples) const;
  /// Adds a sequence's outputs and what its row holds of the inputs to metrics of this task.
  virtual void add_to(metrics::Metrics& metrics, std::span<const float> outputs,
                      datasets::SequenceRow row) const;
  /// Whether exp(loss) means something.
  [[nodiscard]] virtual bool has_perplexity() const { return false; }

  /// A sequence at random, for benchmarks, as long as its tokens' row. A pure function of `seed`.
  virtual void draw(uint64_t seed, int64_t vocab_size, datasets::SequenceRow row) const = 0;
  [[nodiscard]] virtual datasets::SequenceCounts drawn_counts(int64_t length) const = 0;

 protected:
  std::vector<Input> inputs_;
};

/// Next tokens: the language model's loss over every target. Inputs: "tokens" and "targets" i32[batch,
/// length], and with `documents` - sequences that hold several - "doc_start" alike. Logits [batch, length,
/// vocab].
std::unique_ptr<Task> make_causal_lm(bool documents);

}  // namespace plimsoll::tasks
