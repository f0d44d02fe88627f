#include "training/best_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace plimsoll::training {
namespace {

using Figure = std::pair<std::string, double>;

void add_figures(const EvalEvent& event, const std::string& prefix,
                 std::vector<std::pair<std::string, double>>& figures) {
  figures.emplace_back(prefix + "loss", event.loss);
  if (event.has_perplexity) figures.emplace_back(prefix + "perplexity", std::exp(event.loss));
  for (const metrics::Value& m : event.metrics) figures.emplace_back(prefix + std::string(m.name), m.value);
}

}  // namespace

std::vector<std::pair<std::string, double>> figures_of(const EvalEvent& event) {
  std::vector<std::pair<std::string, double>> figures;
  add_figures(event, "", figures);
  for (const EvalEvent& part : event.parts) add_figures(part, part.name + "_", figures);
  return figures;
}

BestModel::BestModel(const settings::TrainingSettings& training)
    : metric_(settings::best_metric(training)),
      patience_(training.early_stopping_patience),
      threshold_(training.early_stopping_threshold) {
  if (metric_) state_.metric = metric_->name;
}

bool BestModel::resume(const std::optional<checkpoints::BestState>& state) {
  if (!tracks() || !state) return true;
  if (state->metric != metric_->name && state->metric != metric_->otherwise) return false;
  state_ = *state;
  return true;
}

Status BestModel::add(const EvalEvent& event) {
  if (!tracks()) return Ok{};
  const auto figures = figures_of(event);
  const auto find = [&](const std::string& name) { return std::ranges::find(figures, name, &Figure::first); };
  auto figure = find(metric_->name);
  if (figure == figures.end()) figure = find(metric_->otherwise);
  if (figure == figures.end()) {
    std::string known;
    for (const auto& f : figures) known += (known.empty() ? "" : ", ") + f.first;
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("training.metric_for_best_model is {}, and evaluations do not have it", metric_->name),
        {},
        "they have " + known};
  }
  // A checkpoint may be of another figure: f1 was f1_macro of two classes too.
  if (figure->first != state_.metric) state_ = {.metric = figure->first};
  const double value = figure->second;
  const bool first = state_.step < 0, better = first ? !std::isnan(value) : is_better(value, state_.value);
  const bool progress = first || (better && std::fabs(value - state_.value) > threshold_);
  state_.waited = progress ? 0 : state_.waited + 1;
  if (better) {
    state_.step = event.step;
    state_.value = value;
  }
  last_step_ = event.step;
  last_value_ = value;
  return Ok{};
}

void BestModel::set_saved() {
  if (!tracks() || last_step_ < 0 || std::isnan(last_value_)) return;
  if (state_.saved_step >= 0 && !is_better(last_value_, state_.saved_value)) return;
  state_.saved_step = last_step_;
  state_.saved_value = last_value_;
}

bool BestModel::stops() const { return tracks() && patience_ && state_.waited >= *patience_; }

std::optional<checkpoints::BestState> BestModel::state() const {
  if (!tracks()) return std::nullopt;
  return state_;
}

std::string BestModel::text() const {
  if (!tracks() || state_.saved_step < 0) return "";
  return fmt::format("eval_{} {:.6g} at step {}", state_.metric, state_.saved_value, state_.saved_step);
}

}  // namespace plimsoll::training
