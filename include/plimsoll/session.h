// Sessions: a plan with its memory. From its creation on nothing is allocated; a step that starts ends within
// the plan.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plimsoll/loader_state.h"
#include "plimsoll/plan.h"

namespace plimsoll {
inline namespace PLIMSOLL_INLINE_NAMESPACE {

struct SessionOptions {
  uint64_t seed = 0;
  std::string resume = {};  ///< continue from this folder where it exists, else begin
};
struct StepOptions {
  std::optional<double> lr = {};  ///< of this step; none: the optimizer's
  int64_t accumulate = 1;         ///< parts whose mean loss and gradient make one update
};

struct Step {
  long long index = 0;   ///< from 1 on, over all sessions that were saved and loaded
  double loss = 0;       ///< the mean of the parts
  double grad_norm = 0;  ///< before clipping
  double seconds = 0;
  double lr = 0;
  double loss_scale = 1;  ///< what the loss was multiplied with
  bool skipped = false;   ///< a scaled gradient overflowed: nothing was updated, the scale has fallen
};

class Session {
 public:
#ifndef PLIMSOLL_NO_EXCEPTIONS
  /// Takes the plan's memory and draws the parameters. Throws DoesNotFit.
  explicit Session(const Plan& plan, const SessionOptions& options = {}) : Session(open(plan, options)) {}
#endif
  static Returned<Session> open(const Plan& plan, const SessionOptions& options = {});

  /// One update. The batch has the plan's shapes; with `accumulate` k its first axes are k times as long.
  Returned<Step> step(const Batch& batch, const StepOptions& options = {}) {
    return detail::returned(run_step(std::span<const Batch>(&batch, 1), options));
  }
  /// One update from as many parts as there are batches.
  Returned<Step> step(const std::vector<Batch>& parts, const StepOptions& options = {}) {
    return detail::returned(run_step(parts, {options.lr, static_cast<int64_t>(parts.size())}));
  }
  /// The loss without dropout; BatchNorm uses its running values. Changes nothing.
  Returned<double> evaluate(const Batch& batch);
  /// Gradients of the loss by the parameters' names, not clipped. Changes nothing.
  Returned<std::map<std::string, std::vector<float>>> gradients(const Batch& batch, int64_t accumulate = 1);

  /// Of parameters, and behind them of buffers.
  [[nodiscard]] std::vector<std::string> names() const;
  [[nodiscard]] Returned<std::vector<float>> read(const std::string& name) const {
    return detail::returned(read_tensor("parameter", name));
  }
  ReturnedNothing write(const std::string& name, std::span<const float> values) {
    return detail::returned(detail::call([&](pls_error** error) {
      return pls_session_write(session_.get(), name.c_str(), values.data(),
                               static_cast<int64_t>(values.size()), error);
    }));
  }

  /// Writes model.safetensors and what else load() needs, whole or not at all. `loader`: where a DataLoader
  /// stands.
  ReturnedNothing save(const std::string& folder, const LoaderState& loader = {});
  /// Continues from there, bit for bit.
  ReturnedNothing load(const std::string& folder) { return detail::returned(load_folder(folder)); }
  /// The one that was saved with what this session loaded.
  [[nodiscard]] LoaderState loader_state() const {
    return LoaderState::of_json(detail::json_value(pls_session_json(session_.get()), "host"));
  }

  /// Steps that have been made, in all sessions that were saved and loaded.
  [[nodiscard]] long long steps() const { return pls_session_steps(session_.get()); }
  [[nodiscard]] double loss_scale() const {
    return detail::json_number(detail::json_value(pls_session_json(session_.get()), "loss_scale"), 1.0);
  }
  [[nodiscard]] const Plan& plan() const { return plan_; }
  [[nodiscard]] pls_session* handle() const { return session_.get(); }

 private:
  struct Free {
    void operator()(pls_session* session) const { pls_session_free(session); }
  };
  Session(Plan plan, pls_session* session) : plan_(std::move(plan)), session_(session) {}
  static Result<Session> create(const Plan& plan, const SessionOptions& options);
  Result<Step> run_step(std::span<const Batch> parts, const StepOptions& options);
  Status load_folder(const std::string& folder) {
    return detail::call(
        [&](pls_error** error) { return pls_session_load(session_.get(), folder.c_str(), error); });
  }
  Result<std::vector<float>> read_tensor(const char* what, const std::string& name) const;

  Plan plan_;
  std::unique_ptr<pls_session, Free> session_;
};

}  // namespace PLIMSOLL_INLINE_NAMESPACE
}  // namespace plimsoll

#include "plimsoll/session_calls.h"
