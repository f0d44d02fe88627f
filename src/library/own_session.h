// A session of a caller's model owns the memory and the parameters and runs the steps. It runs the programs
// of a run, micro_first, micro_next and update; the caller's parts take the place of micro-batches. A plan of
// steps in one part (training.gradient_accumulation_steps: 1) has the program step in their place.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "library/batch.h"
#include "library/own_plan.h"
#include "library/parameter_values.h"
#include "library/running_values.h"
#include "ops/loss_scale.h"
#include "runtime/session.h"
#include "settings/schedule.h"

namespace plimsoll::library {

struct OwnStep {
  int64_t index = 0;  ///< from 1
  double loss = 0, grad_norm = 0, seconds = 0, learning_rate = 0;
  double loss_scale = 1;  ///< that the loss was multiplied with
  bool skipped = false;   ///< a scaled gradient overflowed: nothing was updated
};

/// Counters of the steps of a session, which are saved with it.
struct StepCounters {
  int64_t steps = 0;
  int64_t skipped = 0;  ///< of them
};

class OwnSession {
 public:
  /// Allocates the memory and initialises the parameters. Errors: kDoesNotFit; kIo of the device.
  static Result<std::unique_ptr<OwnSession>> create(std::shared_ptr<const OwnPlan> plan, int64_t seed);

  /// One update from `parts` parts. `learning_rate`: of this step; nothing: the plan's. Errors: as
  /// BatchParts::of; kDiverged where loss or gradient is not finite, and then nothing has changed, but where
  /// steps have one part and the loss alone is not finite; kInvalidArgument for several parts there.
  Result<OwnStep> step(const Batch& batch, std::optional<double> learning_rate, int64_t parts);
  /// The loss without dropout. Errors: as BatchParts::of.
  Result<double> evaluate(const Batch& batch);
  /// The loss and the gradients of what would be the next step, which stay until the next call. Errors: as
  /// BatchParts::of; kInvalidArgument where steps have one part.
  Result<double> gradients(const Batch& batch, int64_t parts);

  // Parameters and buffers by the names of the trace, elements in its shapes. Errors: kInvalidArgument for an
  // unknown name, another number of elements, a value that is not finite, a gradient that is not there.
  Status read(std::string_view name, std::span<float> values);
  Status write(std::string_view name, std::span<const float> values);
  /// Into the states: the numbers of batches that running values have followed. Errors: of the device.
  Status settle_counts();
  Status read_gradient(std::string_view name, std::span<float> values) const;
  /// Where the parameter lies, as long as the session; filters lie there as [out, height, width, in /
  /// groups]. Errors: kInvalidArgument where the host does not reach it, or it is not kept in f32.
  Result<std::span<const float>> view(std::string_view name) const;

  [[nodiscard]] const OwnPlan& plan() const { return *plan_; }
  [[nodiscard]] runtime::Session& session() { return *session_; }
  [[nodiscard]] const StepCounters& counters() const { return counters_; }
  [[nodiscard]] int64_t seed() const { return seed_; }
  [[nodiscard]] double loss_scale() const { return static_cast<double>(scaler_[ops::kScale]); }
  /// Takes over what was saved beside the states, which are written. Errors: of the device.
  Status go_on(const StepCounters& counters, int64_t seed);

 private:
  OwnSession(std::shared_ptr<const OwnPlan> plan, int64_t seed) : plan_(std::move(plan)), seed_(seed) {}
  Status open();
  Status write_scalars(double learning_rate, int64_t parts);
  Status feed(const BatchParts& parts, int64_t part);
  /// Runs backward of all parts and returns their mean loss.
  Result<double> backward(const BatchParts& parts, int64_t count, double learning_rate);
  Status read_scaler();
  Status write_count(const NamedTensor& tensor, float value);
  [[nodiscard]] Result<NamedTensor> find(std::string_view name, int64_t elements) const;
  [[nodiscard]] Error diverged(double loss, double norm, bool unchanged = true) const;
  [[nodiscard]] double rate_of(std::optional<double> given) const;

  std::shared_ptr<const OwnPlan> plan_;
  int64_t seed_ = 0;
  std::unique_ptr<runtime::Device> device_;
  std::unique_ptr<runtime::Session> session_;
  std::vector<optimizers::GroupHyper> groups_;
  std::optional<settings::Schedule> schedule_;
  runtime::BlockId scalars_, inputs_;
  bool draws_ = false;       ///< the programs draw random numbers
  bool accumulates_ = true;  ///< steps may have several parts, and gradients can be read
  int first_ = -1, next_ = -1, update_ = -1, eval_ = -1;
  std::array<float, ops::kScalerFields> scaler_{};
  StepCounters counters_;
  RunningValues running_;
  std::map<std::string, int64_t> counts_;  ///< of TracedModel
  int64_t uncounted_ = 0;                  ///< parts of steps since the last settle_counts()
  bool has_gradients_ = false;
};

}  // namespace plimsoll::library
