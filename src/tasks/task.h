// The interface of a training task. A task says which tensors a batch has, how data becomes them, what its
// examples are counted in, what the loss is and what it is a mean over, and how well outputs meet labels. It
// is made for one model and knows its sizes. Planner, loader, feeder, trainer and evaluator know named
// tensors and ask a task for the rest.
//
//   files ─ open_source ─► rows ─► inputs() ─► forward() ─► loss, logits ─► metrics()
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "datasets/example_source.h"
#include "ir/builder.h"
#include "metrics/metrics.h"
#include "models/model.h"

namespace plimsoll::tasks {

/// What plans, events and speeds count a task's examples in.
struct Unit {
  std::string_view name = "examples";  ///< a plural; JSON has "<name>" and "<name>_per_second"
  bool by_length = false;              ///< an example of length n counts as n, as with tokens; else as one
  /// Of an example of that length.
  [[nodiscard]] int64_t of(int64_t length) const { return by_length ? length : 1; }
};
inline constexpr Unit kTokens = {.name = "tokens", .by_length = true};

/// What a forward pass takes beside the inputs; what is invalid is absent.
struct LossOperands {
  ir::ValueId grad_scale;   ///< f32[1], see ops::cross_entropy
  ir::ValueId acc = {};     ///< f32[1], the loss of the micro-batches before this one
  bool training = false;    ///< dropout; else the model is as it answers
  ir::ValueId random = {};  ///< i32[4]: what dropout draws from
  bool logits = false;      ///< the logits are wanted too
};

struct Outputs {
  ir::ValueId loss;    ///< f32[1], a sum over what the loss is a mean over; an op's that knows its cotangent
  ir::ValueId logits;  ///< of logits_shape, where they are wanted
  ir::ValueId total = {};  ///< f32[1]: what is added up over micro-batches; absent: `loss`
};

/// What a classifier says of an example.
struct Answer {
  int32_t label = 0, predicted = 0;
  float score = 0;  ///< the probability of the predicted class
  [[nodiscard]] bool is_right() const { return label == predicted; }
};

/// Const calls may come from any thread.
class Task {
 public:
  virtual ~Task() = default;
  [[nodiscard]] virtual Unit unit() const { return {}; }
  /// What the loss is a mean over, a plural. ExampleCounts::targets counts them.
  [[nodiscard]] virtual std::string_view loss_unit() const { return unit().name; }

  /// The tensors of a batch, in the order of the rows that sources fill.
  [[nodiscard]] const std::vector<datasets::TensorSpec>& inputs() const { return inputs_; }

  /// The forward pass to the loss. `inputs` in the order of inputs().
  virtual Outputs forward(ir::Builder& b, const models::Model& model, std::span<const ir::ValueId> inputs,
                          const LossOperands& operands) const = 0;
  /// The forward pass to the logits alone, as `debug.dump` writes them: logits_shape of the micro-batch.
  virtual ir::ValueId logits(ir::Builder& b, const models::Model& model,
                             std::span<const ir::ValueId> inputs) const = 0;
  /// f32 [batch, …], of the longest examples.
  [[nodiscard]] virtual ir::Shape logits_shape(int64_t batch) const = 0;

  /// Blocks of the forward pass that are computed again in backward, whatever the budget.
  [[nodiscard]] virtual std::span<const int32_t> checkpointed_blocks() const { return {}; }

  /// Opens files of the run's data as examples of these inputs. Errors: as TrainingData::open.
  virtual Result<std::unique_ptr<datasets::ExampleSource>> open_source(
      const datasets::DataFiles& files, const datasets::SourceOptions& options) const = 0;

  /// Scratch that reading an example takes at least, by what is known of the data; 0: what texts take.
  [[nodiscard]] virtual int64_t scratch_bytes() const { return 0; }

  /// Bytes that a source keeps beside what every source keeps.
  [[nodiscard]] virtual int64_t source_bytes() const { return 0; }

  /// Whether the examples of a batch that is trained on are mixed with each other.
  [[nodiscard]] virtual bool blends() const { return false; }
  /// Mixes the examples of batch number `batch` of the run, in place; `tensors` in the order of inputs().
  /// `scratch`: scratch_bytes. Allocates nothing. A pure function of what it is given.
  virtual void blend(int64_t /*batch*/, std::span<const std::span<std::byte>> /*tensors*/,
                     std::span<std::byte> /*scratch*/) const {}

  /// Whether an evaluation says more than the loss: then it keeps the logits and gives them to metrics.
  [[nodiscard]] virtual bool has_metrics() const { return false; }
  /// For at most `max_examples` examples; null without metrics.
  [[nodiscard]] virtual std::unique_ptr<metrics::Metrics> make_metrics(int64_t max_examples) const;
  /// Bytes that they take.
  [[nodiscard]] virtual int64_t metrics_bytes(int64_t max_examples) const;
  /// Adds an example's outputs and what its row holds of the inputs to metrics of this task.
  virtual void add_to(metrics::Metrics& metrics, std::span<const float> outputs,
                      datasets::ExampleRow row) const;
  /// Names of the classes that the metrics' confusion matrix counts; empty where they have none.
  [[nodiscard]] virtual std::span<const std::string> class_names() const { return {}; }
  /// The model's answer for an example, which reports show; nothing for an example without a label, and from
  /// tasks that have no answers to show.
  [[nodiscard]] virtual std::optional<Answer> answer(std::span<const float> /*outputs*/,
                                                     datasets::ExampleRow /*row*/) const {
    return {};
  }
  /// Whether exp(loss) means something.
  [[nodiscard]] virtual bool has_perplexity() const { return false; }

  /// An example at random, for benchmarks, as long as its rows. A pure function of `seed`.
  virtual void draw(uint64_t seed, datasets::ExampleRow row) const = 0;
  /// Of each of the longest that is drawn.
  [[nodiscard]] virtual datasets::ExampleCounts drawn_counts() const { return {1, 1}; }

 protected:
  std::vector<datasets::TensorSpec> inputs_;
};

/// What tasks over tokens know of their model and their data; 0 where nothing is drawn or dumped.
struct TokenSizes {
  int64_t vocab_size = 0;
  int64_t longest = 0;  ///< tokens of the longest sequence
};

/// Next tokens: the language model's loss over every target. Inputs: "tokens" and "targets" i32[batch,
/// length], and with `documents` - sequences that hold several - "doc_start" alike. Logits [batch, length,
/// vocab].
std::unique_ptr<Task> make_causal_lm(bool documents, const TokenSizes& sizes = {});

}  // namespace plimsoll::tasks
