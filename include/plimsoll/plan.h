// Plans: the loss function runs once, and what a step takes in memory and time is known before anything runs.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plimsoll/module.h"
#include "plimsoll/optimizers.h"

namespace plimsoll {
inline namespace PLIMSOLL_INLINE_NAMESPACE {

/// A tensor of each batch. The first axis is the batch's.
struct Input {
  std::string name;
  DType dtype = f32;
  Shape shape = {};
};

/// The inputs as values, by name.
class Inputs {
 public:
  Inputs(detail::Trace* trace, std::map<std::string, Value, std::less<>> values)
      : trace_(trace), values_(std::move(values)) {}
  Value operator[](std::string_view name) const {
    const auto found = values_.find(name);
    if (found != values_.end()) return found->second;
    std::string names;
    for (const auto& [known, value] : values_) names += (names.empty() ? "" : ", ") + known;
    detail::fail(trace_, Error(ErrorKind::invalid_argument, "the plan has no input " + std::string(name),
                               "its inputs are " + names));
    return {};
  }

 private:
  detail::Trace* trace_;
  std::map<std::string, Value, std::less<>> values_;
};

/// A number of bytes, or a text such as "2GiB". None: whatever the step takes.
class Budget {
 public:
  Budget() = default;
  template <std::integral Bytes>
  Budget(Bytes bytes) : json_(detail::number_text(bytes)) {}             // implicit by design
  Budget(const char* text) : json_(detail::json_quoted(text)) {}         // implicit by design
  Budget(const std::string& text) : json_(detail::json_quoted(text)) {}  // implicit by design
  [[nodiscard]] const std::string& json() const { return json_; }

 private:
  std::string json_;
};

/// What the loss is multiplied with where fp16 is used, as torch.amp.GradScaler. Left out: the library's
/// defaults.
struct LossScale {
  std::optional<double> fixed = {};  ///< a scale that does not change
  std::optional<double> init_scale = {};
  std::optional<double> growth_factor = {};
  std::optional<double> backoff_factor = {};
  std::optional<int64_t> growth_interval = {};
};

struct PlanOptions {
  std::vector<Input> inputs = {};
  std::function<Value(Inputs)> loss = {};  ///< called once, by plan(); its result is one number
  Optimizer optimizer = {};
  std::optional<double> clip_norm = {};  ///< as torch's clip_grad_norm_
  Budget memory_budget = {};
  std::string device = "cpu";
  LossScale loss_scale = {};
  std::string recompute =
      "auto";           ///< what the planner may choose to recompute, as memory.recompute of a run file
  int64_t threads = 0;  ///< 0: as many as there are CPUs
  /// False: steps have one part, gradients() is refused, and the plan has no accumulators of the gradients.
  bool accumulates = true;
};

/// A step, planned. Copies are the same plan; sessions hold it for themselves.
class Plan {
 public:
  /// Of plimsoll_c.h's handle, which it takes over.
  Plan(pls_plan* plan, std::vector<ParameterInfo> parameters)
      : plan_(plan, [](pls_plan* held) { pls_plan_free(held); }),
        parameters_(std::make_shared<const std::vector<ParameterInfo>>(std::move(parameters))) {}

  [[nodiscard]] bool fits() const { return pls_plan_fits(plan_.get()) == 1; }
  /// All that a session maps.
  [[nodiscard]] int64_t peak_bytes() const { return pls_plan_peak_bytes(plan_.get()); }
  /// The smallest budget that fits; peak_bytes() where the plan fits.
  [[nodiscard]] int64_t least_bytes() const {
    return detail::json_number(member("least_bytes"), peak_bytes());
  }
  /// Of one step, estimated.
  [[nodiscard]] double seconds() const { return detail::json_number(member("seconds"), 0.0); }
  /// Bytes by what they hold: parameters, optimizer_state, gradients, activations, …
  [[nodiscard]] std::map<std::string, int64_t> classes() const {
    std::map<std::string, int64_t> bytes;
    detail::JsonMembers members(member("classes"));
    while (members.next())
      bytes[std::string(members.key())] = detail::json_number<int64_t>(members.value(), 0);
    return bytes;
  }
  /// The report for people: every class of bytes, the peak, the budget.
  [[nodiscard]] Returned<std::string> table() const {
    const char* text = "";
    const Status status =
        detail::call([&](pls_error** error) { return pls_plan_text(plan_.get(), "table", &text, error); });
    return detail::returned(status ? Result<std::string>(text) : Result<std::string>(status.error()));
  }
  /// As plimsoll_c.h describes it.
  [[nodiscard]] std::string json() const { return pls_plan_json(plan_.get()); }

  /// Parameters, and behind them buffers.
  [[nodiscard]] const std::vector<ParameterInfo>& parameters() const { return *parameters_; }
  [[nodiscard]] pls_plan* handle() const { return plan_.get(); }

 private:
  [[nodiscard]] std::string_view member(std::string_view key) const {
    return detail::json_value(pls_plan_json(plan_.get()), key);
  }
  std::shared_ptr<pls_plan> plan_;
  std::shared_ptr<const std::vector<ParameterInfo>> parameters_;
};

}  // namespace PLIMSOLL_INLINE_NAMESPACE
}  // namespace plimsoll
