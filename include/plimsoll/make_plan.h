// plan(): runs the loss function, writes the settings, asks the library for the plan.
#pragma once

#include <regex.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plimsoll/plan.h"

namespace plimsoll {
inline namespace PLIMSOLL_INLINE_NAMESPACE {
namespace detail {

/// Makes the trace the thread's while the loss function runs.
class Tracing {
 public:
  explicit Tracing(Trace& trace) : outer_(std::exchange(current_trace, &trace)) {}
  Tracing(const Tracing&) = delete;
  Tracing& operator=(const Tracing&) = delete;
  ~Tracing() { current_trace = outer_; }

 private:
  Trace* outer_;
};

/// Names in which the pattern is found and that no group before has taken.
inline Result<std::string> group_names(const std::string& pattern,
                                       const std::vector<ParameterInfo>& parameters,
                                       std::set<std::string>& taken) {
  regex_t compiled;
  if (regcomp(&compiled, pattern.c_str(), REG_EXTENDED | REG_NOSUB) != 0)
    return Error(ErrorKind::invalid_argument,
                 "optimizer group: " + pattern + " is no POSIX extended regular expression");
  std::string names;
  bool is_found = false;
  for (const ParameterInfo& parameter : parameters) {
    if (parameter.is_buffer || regexec(&compiled, parameter.name.c_str(), 0, nullptr, 0) != 0) continue;
    is_found = true;
    if (taken.insert(parameter.name).second)
      names += (names.empty() ? "" : ",") + json_quoted(parameter.name);
  }
  regfree(&compiled);
  if (!is_found)
    return Error(
        ErrorKind::invalid_argument, "optimizer group: " + pattern + " matches no parameter",
        parameters.empty() ? "the model has no parameters" : "one of them is " + parameters.front().name);
  return names;
}

inline Result<Json> training_settings(const PlanOptions& options,
                                      const std::vector<ParameterInfo>& parameters) {
  Json training = options.optimizer.own_settings();
  std::string groups;
  std::set<std::string> taken;
  for (const Optimizer::Group& group : options.optimizer.groups()) {
    const Result<std::string> names = group_names(group.pattern, parameters, taken);
    if (!names) return names.error();
    if (names->empty()) continue;
    Json own;
    own.raw("params", '[' + *names + ']');
    if (group.options.lr) own.set("learning_rate", *group.options.lr);
    if (group.options.weight_decay) own.set("weight_decay", *group.options.weight_decay);
    if (const auto& betas = group.options.betas)
      own.raw("betas", '[' + number_text(betas->first) + ',' + number_text(betas->second) + ']');
    groups += (groups.empty() ? "" : ",") + own.text();
  }
  if (!groups.empty()) training.raw("param_groups", '[' + groups + ']');
  if (options.clip_norm) training.set("max_grad_norm", *options.clip_norm);
  if (!options.accumulates) training.set("gradient_accumulation_steps", int64_t{1});
  return training;
}

inline void add_loss_scale(Json& training, const LossScale& scale) {
  Json own;
  if (scale.init_scale) own.set("init_scale", *scale.init_scale);
  if (scale.growth_factor) own.set("growth_factor", *scale.growth_factor);
  if (scale.backoff_factor) own.set("backoff_factor", *scale.backoff_factor);
  if (scale.growth_interval) own.set("growth_interval", *scale.growth_interval);
  if (scale.fixed) {
    training.set("loss_scale", *scale.fixed);
  } else if (!own.empty()) {
    training.raw("loss_scale", own.text());
  }
}

/// A run file's sections, as JSON.
inline Result<std::string> settings_text(const PlanOptions& options,
                                         const std::vector<ParameterInfo>& parameters) {
  Result<Json> training = training_settings(options, parameters);
  if (!training) return training.error();
  add_loss_scale(*training, options.loss_scale);
  Json memory, runtime;
  if (!options.memory_budget.json().empty()) memory.raw("budget", options.memory_budget.json());
  if (options.recompute != "auto") memory.set("recompute", std::string_view(options.recompute));
  runtime.set("device", std::string_view(options.device));
  if (options.threads != 0) runtime.set("threads", options.threads);
  Json all;
  all.raw("training", training->text()).raw("memory", memory.text()).raw("runtime", runtime.text());
  return all.text();
}

inline Result<Inputs> declare_inputs(Trace& trace, const std::vector<Input>& inputs) {
  std::map<std::string, Value, std::less<>> values;
  for (const Input& input : inputs) {
    pls_value value = PLS_NONE;
    const Status status = call([&](pls_error** error) {
      return pls_input(trace.builder.get(), input.name.c_str(), dtype_name(input.dtype), input.shape.data(),
                       static_cast<int>(input.shape.size()), &value, error);
    });
    if (!status) return status.error();
    values[input.name] = Value(&trace, value);
  }
  return Inputs(&trace, std::move(values));
}

/// Runs the loss function.
inline Status trace_loss(Trace& trace, const PlanOptions& options) {
  if (!options.loss)
    return Error(ErrorKind::invalid_argument, "plan: there is no loss",
                 "give .loss, a function of the inputs");
  pls_builder* builder = nullptr;
  if (Status status = call([&](pls_error** error) { return pls_builder_create(&builder, error); }); !status)
    return status;
  trace.builder.reset(builder);
  const Result<Inputs> inputs = declare_inputs(trace, options.inputs);
  if (!inputs) return inputs.error();
  Value loss;
  {
    const Tracing tracing(trace);
    loss = options.loss(*inputs);
  }
  if (trace.error) return *trace.error;
  if (loss.trace() != &trace)
    return Error(ErrorKind::invalid_argument, "plan: the loss is no value of this plan",
                 "return what a loss function such as mse() gives");
  return call([&](pls_error** error) { return pls_loss(builder, loss.id(), error); });
}

/// The text without a run file's names for options, which the library's errors have, and without a line of
/// the settings that it was given.
inline std::string by_option(std::string text) {
  constexpr std::pair<std::string_view, std::string_view> kOptions[] = {
      {"training.max_grad_norm", "clip_norm"}, {"training.loss_scale", "loss_scale"},
      {"training.learning_rate", "lr"},        {"training.weight_decay", "weight_decay"},
      {"training.adam_beta1", "betas.first"},  {"training.adam_beta2", "betas.second"},
      {"training.adam_epsilon", "eps"},        {"training.momentum", "momentum"},
      {"training.dampening", "dampening"},     {"memory.budget", "memory_budget"},
      {"memory.recompute", "recompute"},       {"runtime.device", "device"},
      {"runtime.threads", "threads"},          {": settings line 1", ""}};
  for (const auto& [setting, option] : kOptions)
    for (size_t at = 0; (at = text.find(setting, at)) != std::string::npos; at += option.size())
      text.replace(at, setting.size(), option);
  return text;
}

inline Result<Plan> make_plan(const PlanOptions& options) {
  Trace trace;
  if (Status status = trace_loss(trace, options); !status) return status.error();
  const Result<std::string> settings = settings_text(options, trace.declared);
  if (!settings) return settings.error();
  pls_plan* plan = nullptr;
  const Status status = call([&](pls_error** error) {
    return pls_plan_create(trace.builder.get(), settings->c_str(), &plan, error);
  });
  if (!status && status.error().kind() == ErrorKind::invalid_argument)
    return Error(ErrorKind::invalid_argument, by_option(status.error().what()),
                 by_option(status.error().hint()));
  if (!status) return status.error();
  std::stable_partition(trace.declared.begin(), trace.declared.end(),
                        [](const ParameterInfo& tensor) { return !tensor.is_buffer; });
  return Plan(plan, std::move(trace.declared));
}

inline Result<Plan> make_run_plan(const std::string& run_file, const std::vector<std::string>& overrides) {
  std::vector<const char*> texts;
  for (const std::string& text : overrides) texts.push_back(text.c_str());
  pls_plan* plan = nullptr;
  const Status status = call([&](pls_error** error) {
    return pls_plan_run(run_file.c_str(), nullptr, texts.data(), texts.size(), &plan, error);
  });
  if (!status) return status.error();
  return Plan(plan, {});
}

}  // namespace detail

/// Plans training steps of the model that the loss function computes. A plan that does not fit its budget is
/// no error: fits() says so, and a session of it is refused.
inline Returned<Plan> plan(const PlanOptions& options) {
  return detail::returned(detail::make_plan(options));
}

/// Plans a run file as `plimsoll plan` does; overrides are texts such as "memory.budget=2GiB". It shows
/// memory and time. Sessions are of models that a loss function computes: one of this plan is refused.
inline Returned<Plan> plan(std::string_view run_file, const std::vector<std::string>& overrides = {}) {
  return detail::returned(detail::make_run_plan(std::string(run_file), overrides));
}

}  // namespace PLIMSOLL_INLINE_NAMESPACE
}  // namespace plimsoll
