// The mean loss over a data set: in training every so many steps, and alone.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "datasets/training_data.h"
#include "preprocessing/run_data.h"
#include "runtime/session.h"
#include "strategy/prepare.h"
#include "training/batch_feeder.h"
#include "training/observer.h"
#include "training/shown_examples.h"

namespace plimsoll::training {

/// Sequences that are done, of all.
using EvalProgress = std::function<void(int64_t done, int64_t total)>;

class Evaluator {
 public:
  /// Opens what is held out, as prepare_data made it ready. Errors: data (65), settings (2).
  static Result<std::unique_ptr<Evaluator>> open(const settings::RunConfig& config,
                                                 const preprocessing::RunData& data,
                                                 const strategy::Prepared& prepared);

  /// As packing_notes, of each part.
  [[nodiscard]] std::vector<std::string> notes() const;

  /// Where it runs: a session with the programs `eval` of the plan, and a host buffer to read data through.
  /// Called once.
  void bind(runtime::Session& session, std::span<std::byte> scratch, const strategy::Prepared& prepared);

  /// Mean loss over all targets or examples, and the task's metrics; of named parts each one's as well.
  /// Summed in fp32 over a global batch, whose split into micro-batches does not matter, and from there on in
  /// double. `stopped`, where given, is asked before each micro-batch; nothing comes of an evaluation that
  /// was stopped. `progress`, where given, is told as often how many sequences of how many are done. Errors:
  /// data (65, 74).
  Result<std::optional<EvalEvent>> run(int64_t step, const std::function<bool()>& stopped = {},
                                       const EvalProgress& progress = {});

 private:
  struct Part {
    std::string name;  ///< empty: there is this one alone
    datasets::TrainingData data;
    std::unique_ptr<metrics::Metrics> metrics = {};  ///< its own, where there are others
  };
  /// What is added up over a part.
  struct Sum {
    double loss = 0;
    datasets::ExampleCounts counts = {};
  };
  Evaluator(std::vector<Part> parts, const tasks::Task& task, int64_t global_batch_size)
      : task_(task), parts_(std::move(parts)), positions_(static_cast<size_t>(global_batch_size)) {}
  /// Nothing where it was stopped. `before`: sequences of the parts before it, `progress` is told of all.
  Result<std::optional<Sum>> run_part(Part& part, int64_t before, const std::function<bool()>& stopped,
                                      const EvalProgress& progress);
  [[nodiscard]] int64_t num_examples() const;
  [[nodiscard]] EvalEvent event_of(int64_t step, const Sum& sum, metrics::Metrics* metrics) const;
  /// Adds what the last micro-batch came to, of those positions. Errors: of the device.
  Status add_to_metrics(Part& part, size_t bucket, std::span<const int64_t> positions);
  /// The examples to show, with their names. Errors: data (65, 74).
  Result<std::vector<EvalExample>> shown() const;
  const tasks::Task& task_;
  std::vector<Part> parts_;
  std::vector<int64_t> positions_;  ///< of a global batch, see TrainingData::look_up
  size_t micro_batch_size_ = 1;
  runtime::Session* session_ = nullptr;
  std::span<std::byte> scratch_;
  std::unique_ptr<BatchFeeder> feeder_;
  std::vector<int> programs_;                  ///< by bucket
  std::unique_ptr<metrics::Metrics> metrics_;  ///< over all parts
  std::vector<float> outputs_;                 ///< of a micro-batch, for metrics
  ShownExamples shown_;
};

}  // namespace plimsoll::training
