#include "library/own_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "base/process.h"
#include "base/units.h"
#include "io/suggest.h"
#include "library/first_values.h"
#include "library/invalid.h"
#include "library/traced_model.h"
#include "planner/programs/step_programs.h"
#include "settings/param_groups.h"
#include "strategy/run_device.h"
#include "strategy/step_options.h"
#include "training/gradient_sum.h"
#include "training/initialise.h"

namespace plimsoll::library {
namespace {

using passes::ProgramRole;

enum Scalar : uint8_t { kGradScale, kGroups };

Error has_no_accumulators(const std::string& what) {
  return invalid(what + ", and the plan is one of steps in one part, without accumulators of the gradients",
                 "leave training.gradient_accumulation_steps out of the plan's settings (accumulate=False in "
                 "Python)");
}

}  // namespace

Result<std::unique_ptr<OwnSession>> OwnSession::create(std::shared_ptr<const OwnPlan> plan, int64_t seed) {
  if (!plan->fits()) return plan->does_not_fit();
  std::unique_ptr<OwnSession> session(new OwnSession(std::move(plan), seed));
  PLIMSOLL_TRY(session->open());
  return session;
}

Status OwnSession::open() {
  const settings::RunConfig& config = plan_->config();
  PLIMSOLL_ASSIGN(device_, strategy::make_device(config, plan_->num_threads(), plan_->prepared()));
  PLIMSOLL_ASSIGN(session_, runtime::Session::create(*device_, plan_->prepared().programs.session,
                                                     {.poison = config.debug.poison}));
  groups_ = settings::group_hypers(config.training);
  PLIMSOLL_ASSIGN(schedule_, settings::make_schedule(config.training, config.training.max_steps.value_or(1)));
  const passes::SessionPlan& programs = session_->plan();
  accumulates_ = strategy::caller_accumulates(config);
  first_ = programs.find_program({accumulates_ ? ProgramRole::kMicroFirst : ProgramRole::kStep});
  if (accumulates_) next_ = programs.find_program({ProgramRole::kMicroNext});
  if (accumulates_) update_ = programs.find_program({ProgramRole::kUpdate});
  eval_ = programs.find_program({ProgramRole::kEval});
  scalars_ = session_->make_block({planner::kGradScaleState, optimizers::kGroupsState});
  std::vector<std::string> names;
  for (const TracedInput& input : plan_->trace().inputs())
    if (programs.find_state(planner::input_state(input.name)) != nullptr)
      names.push_back(planner::input_state(input.name));
  std::vector<std::string_view> states(names.begin(), names.end());
  draws_ = programs.find_state(planner::kRandomState) != nullptr;
  if (draws_) states.push_back(planner::kRandomState);
  inputs_ = session_->make_block(states);
  const auto& model = dynamic_cast<const TracedModel&>(*plan_->prepared().model);
  running_ = RunningValues(model.followed());
  counts_ = model.counts();
  PLIMSOLL_TRY(write_first_values(plan_->trace(), seed_, *session_));
  scaler_[ops::kScale] = static_cast<float>(config.training.loss_scale.first());
  return session_->write(optimizers::kScalerState, std::as_bytes(std::span(scaler_)));
}

Status OwnSession::read_scaler() {
  return session_->read(optimizers::kScalerState, std::as_writable_bytes(std::span(scaler_)));
}

Status OwnSession::go_on(const StepCounters& counters, int64_t seed) {
  PLIMSOLL_TRY(read_scaler());
  counters_ = counters;
  uncounted_ = 0;
  seed_ = seed;
  return Ok{};
}

double OwnSession::rate_of(std::optional<double> given) const {
  return given ? *given : schedule_->rate(counters_.steps + 1);
}

Status OwnSession::write_scalars(double learning_rate, int64_t parts) {
  const settings::TrainingSettings& t = plan_->config().training;
  optimizers::StepHyper hyper{learning_rate,  t.adam_beta1,   t.adam_beta2,
                              t.adam_epsilon, t.weight_decay, counters_.steps - counters_.skipped + 1};
  hyper.momentum = t.momentum;
  hyper.dampening = t.dampening;
  hyper.nesterov = t.nesterov;
  hyper.schedule_factor = t.learning_rate > 0 ? learning_rate / t.learning_rate : 1;
  hyper.optimizer = t.optimizer;
  hyper.adafactor = t.adafactor;
  hyper.muon = t.muon;
  PLIMSOLL_TRY(session_->begin(scalars_));
  optimizers::write_groups(hyper, groups_, session_->of<float>(scalars_, kGroups).data());
  session_->of<float>(scalars_, kGradScale)[0] = static_cast<float>(1.0 / static_cast<double>(parts));
  PLIMSOLL_TRY(session_->commit(scalars_));
  return session_->fill(planner::kLossState, std::bit_cast<uint32_t>(planner::kLossStart));
}

Status OwnSession::feed(const BatchParts& parts, int64_t part) {
  PLIMSOLL_TRY(session_->begin(inputs_));
  const std::vector<TracedInput>& inputs = plan_->trace().inputs();
  size_t place = 0;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (session_->plan().find_state(planner::input_state(inputs[i].name)) != nullptr)
      parts.copy(part, i, session_->of<std::byte>(inputs_, place++));
  if (draws_) {
    auto random = training::random_words(seed_, counters_.steps + 1);
    random[3] = static_cast<int32_t>(part * plan_->config().training.micro_batch_size.value_or(1));
    std::ranges::copy(random, session_->of<int32_t>(inputs_, place).begin());
  }
  return session_->commit(inputs_);
}

Result<double> OwnSession::backward(const BatchParts& parts, int64_t count, double learning_rate) {
  has_gradients_ = false;
  PLIMSOLL_TRY(running_.keep(*session_));
  PLIMSOLL_TRY(write_scalars(learning_rate, count));
  for (int64_t part = 0; part < count; ++part) {
    PLIMSOLL_TRY(feed(parts, part));
    PLIMSOLL_TRY(session_->run(part == 0 ? first_ : next_));
  }
  PLIMSOLL_ASSIGN(const float sum, session_->value<float>(planner::kLossState));
  return static_cast<double>(sum) / static_cast<double>(count);
}

Error OwnSession::diverged(double loss, double norm, bool unchanged) const {
  const std::string what = std::isfinite(loss) ? fmt::format("the gradient norm is {}", std::fabs(norm))
                                               : fmt::format("the loss is {}", loss);
  const std::string_view after =
      unchanged ? "the session is as it was before the step" : "the parameters have been updated";
  return {ErrorCode::kDiverged, what, fmt::format("step {}", counters_.steps + 1),
          fmt::format("look for values in the batch that are not finite, lower the learning rate, or set "
                      "clip_norm; {}",
                      after)};
}

Result<OwnStep> OwnSession::step(const Batch& batch, std::optional<double> learning_rate, int64_t count) {
  const double start = now_seconds();
  constexpr double kLargestRate = 1e6;  // as training.learning_rate
  if (learning_rate && !(*learning_rate >= 0 && *learning_rate <= kLargestRate))
    return invalid(
        fmt::format("step: lr is {}, expected a number from 0 to {:.0f}", *learning_rate, kLargestRate));
  if (count > 1 && !accumulates_) return has_no_accumulators(fmt::format("accumulate is {}", count));
  PLIMSOLL_ASSIGN(const BatchParts parts, BatchParts::of(batch, plan_->trace(), count));
  OwnStep step{
      .index = counters_.steps + 1, .learning_rate = rate_of(learning_rate), .loss_scale = loss_scale()};
  PLIMSOLL_ASSIGN(step.loss, backward(parts, count, step.learning_rate));
  if (accumulates_ && !std::isfinite(step.loss)) {
    PLIMSOLL_TRY(running_.put_back(*session_));
    return diverged(step.loss, 0);
  }
  const std::array<float, ops::kScalerFields> before = scaler_;
  if (accumulates_) PLIMSOLL_TRY(session_->run(update_));
  PLIMSOLL_ASSIGN(const float norm, session_->value<float>(optimizers::kGradNormState));
  PLIMSOLL_TRY(read_scaler());
  step.grad_norm = static_cast<double>(std::fabs(norm));
  step.skipped = scaler_[ops::kSkipped] != 0;
  if (step.skipped) PLIMSOLL_TRY(running_.put_back(*session_));
  if (!std::isfinite(step.loss) || (step.skipped && !plan_->scales_dynamically())) {
    scaler_ = before;
    PLIMSOLL_TRY(session_->write(optimizers::kScalerState, std::as_bytes(std::span(scaler_))));
    return diverged(step.loss, step.grad_norm, step.skipped);
  }
  ++counters_.steps;
  if (step.skipped)
    ++counters_.skipped;
  else
    uncounted_ += count;
  step.seconds = now_seconds() - start;
  return step;
}

Result<double> OwnSession::evaluate(const Batch& batch) {
  PLIMSOLL_ASSIGN(const BatchParts parts, BatchParts::of(batch, plan_->trace(), 1));
  has_gradients_ = false;
  PLIMSOLL_TRY(write_scalars(rate_of({}), 1));
  PLIMSOLL_TRY(feed(parts, 0));
  PLIMSOLL_TRY(session_->run(eval_));
  PLIMSOLL_ASSIGN(const float loss, session_->value<float>(planner::kLossState));
  return static_cast<double>(loss);
}

Result<double> OwnSession::gradients(const Batch& batch, int64_t count) {
  if (!accumulates_) return has_no_accumulators("gradients");
  PLIMSOLL_ASSIGN(const BatchParts parts, BatchParts::of(batch, plan_->trace(), count));
  PLIMSOLL_ASSIGN(const double loss, backward(parts, count, rate_of({})));
  PLIMSOLL_TRY(running_.put_back(*session_));
  has_gradients_ = true;
  return loss;
}

Result<NamedTensor> OwnSession::find(std::string_view name, int64_t elements) const {
  const std::vector<TracedParameter>& parameters = plan_->trace().parameters();
  const std::vector<TracedBuffer>& buffers = plan_->trace().buffers();
  NamedTensor tensor;
  if (const auto p = std::ranges::find(parameters, name, &TracedParameter::name); p != parameters.end()) {
    tensor = {p->name, p->shape, {}};
    if (p->kind() == ir::ParameterKind::kFilters)
      tensor.order = {.positions = p->shape.dim(2) * p->shape.dim(3), .inputs = p->shape.dim(1)};
  } else if (const auto b = std::ranges::find(buffers, name, &TracedBuffer::name); b != buffers.end()) {
    tensor = {b->name, b->shape, {}, b->options.is_count};
  } else {
    std::vector<std::string> names;
    for (const TracedParameter& parameter : parameters) names.push_back(parameter.name);
    for (const TracedBuffer& buffer : buffers) names.push_back(buffer.name);
    return invalid(fmt::format("there is no parameter '{}'", name), io::nearest_hint(name, names));
  }
  if (elements >= 0 && tensor.shape.num_elements() != elements)
    return invalid(fmt::format("{} is float32 {}, {} elements and not {}", name, ir::to_string(tensor.shape),
                               tensor.shape.num_elements(), elements));
  return tensor;
}

Status OwnSession::settle_counts() {
  for (const auto& [name, per_part] : counts_) {
    PLIMSOLL_ASSIGN(int64_t value, session_->value<int64_t>(name));
    value += uncounted_ * per_part;
    PLIMSOLL_TRY(session_->write(name, std::as_bytes(std::span(&value, 1))));
  }
  uncounted_ = 0;
  return Ok{};
}

Status OwnSession::read(std::string_view name, std::span<float> values) {
  PLIMSOLL_ASSIGN(const NamedTensor tensor, find(name, std::ssize(values)));
  if (!tensor.is_count) return read_values(*session_, tensor, values);
  PLIMSOLL_TRY(settle_counts());
  PLIMSOLL_ASSIGN(const int64_t batches, session_->value<int64_t>(tensor.name));
  values[0] = static_cast<float>(batches);
  return Ok{};
}

Status OwnSession::write_count(const NamedTensor& tensor, float value) {
  constexpr float kMost = 1LL << 62;
  if (!(value >= 0 && value < kMost && value == std::floor(value)))
    return invalid(fmt::format("{} is {}, expected a whole number from 0 on", tensor.name, value));
  PLIMSOLL_TRY(settle_counts());
  const auto batches = static_cast<int64_t>(value);
  return session_->write(tensor.name, std::as_bytes(std::span(&batches, 1)));
}

Status OwnSession::write(std::string_view name, std::span<const float> values) {
  PLIMSOLL_ASSIGN(const NamedTensor tensor, find(name, std::ssize(values)));
  const auto odd = std::ranges::find_if(values, [](float v) { return !std::isfinite(v); });
  if (odd != values.end())
    return Error{ErrorCode::kBadData, fmt::format("{}: element {} is {}", name, odd - values.begin(), *odd)};
  return tensor.is_count ? write_count(tensor, values[0]) : write_values(*session_, tensor, values);
}

Result<std::span<const float>> OwnSession::view(std::string_view name) const {
  PLIMSOLL_ASSIGN(const NamedTensor tensor, find(name, -1));
  const std::span<const std::byte> bytes = session_->host_bytes(tensor.name);
  if (bytes.empty() || session_->type(tensor.name).dtype != ir::DType::kF32)
    return invalid(fmt::format("{} does not lie in the host's memory as float32", name), "read a copy of it");
  return std::span(reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float));
}

Status OwnSession::read_gradient(std::string_view name, std::span<float> values) const {
  PLIMSOLL_ASSIGN(const NamedTensor tensor, find(name, std::ssize(values)));
  if (!has_gradients_) return invalid("no gradients are there: another call has been made since");
  const auto& all = plan_->prepared().programs.gradients;
  const auto found = std::ranges::find(all, tensor.name, &planner::GradientStates::parameter);
  if (found == all.end()) return invalid(fmt::format("{} is frozen, or a buffer, and has no gradient", name));
  std::ranges::fill(values, 0.0F);
  PLIMSOLL_TRY(training::read_sum(*session_, found->accumulators, 0, values));
  const float scale = scaler_[ops::kScale];
  if (scale != 1.0F)
    for (float& value : values) value /= scale;
  to_callers_order(tensor.order, values);
  return Ok{};
}

}  // namespace plimsoll::library
