#include "reports/run_events.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "io/json.h"
#include "io/line_reader.h"

namespace plimsoll::reports {
namespace {

constexpr size_t kLongestUnit = 32;
constexpr int64_t kMostSteps = int64_t{1} << 53;  // beyond, a page's numbers are no longer exact
constexpr std::array<std::string_view, kNumFigures> kNames = {
    "loss",       "grad_norm",    "learning_rate", "tokens_per_second", "data_wait_seconds",
    "loss_scale", "step_seconds", "tokens"};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// A number as JSON has it at the begin of `rest`, which goes on behind it.
bool take_number(std::string_view& rest, double& value) {
  size_t at = rest.starts_with('-') ? 1 : 0;
  const auto digits = [&] {
    const size_t begin = at;
    while (at < rest.size() && is_digit(rest[at])) ++at;
    return at > begin;
  };
  const size_t first = at;
  if (!digits() || (rest[first] == '0' && at > first + 1)) return false;
  if (at < rest.size() && rest[at] == '.' && (++at, !digits())) return false;
  if (at < rest.size() && (rest[at] == 'e' || rest[at] == 'E')) {
    ++at;
    if (at < rest.size() && (rest[at] == '+' || rest[at] == '-')) ++at;
    if (!digits()) return false;
  }
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + at, value);
  if (error != std::errc{} || end != rest.data() + at) return false;
  rest.remove_prefix(at);
  return true;
}

bool take_prefix(std::string_view& rest, std::string_view prefix) {
  if (!rest.starts_with(prefix)) return false;
  rest.remove_prefix(prefix.size());
  return true;
}

double number_of(const io::Tree& event, std::string_view key) {
  const io::Tree* value = event.find(key);
  const bool is_number =
      value != nullptr && (value->kind == io::Tree::Kind::kNumber || value->kind == io::Tree::Kind::kInteger);
  return is_number && std::isfinite(value->number) ? value->number : std::nan("");
}

std::string text_of(const io::Tree& event, std::string_view key) {
  const io::Tree* value = event.find(key);
  return value != nullptr && value->kind == io::Tree::Kind::kString ? value->text : "";
}

std::optional<int64_t> step_of(const io::Tree& event) {
  const io::Tree* value = event.find("step");
  if (value == nullptr || value->kind != io::Tree::Kind::kInteger) return std::nullopt;
  if (value->integer < 0 || value->integer > kMostSteps) return std::nullopt;
  return value->integer;
}

EvalRow eval_row(const io::Tree& event, std::string name, int64_t step) {
  EvalRow row{std::move(name), step, number_of(event, "loss"), {}};
  if (const double value = number_of(event, "perplexity"); std::isfinite(value))
    row.metrics.emplace_back("perplexity", value);
  if (const io::Tree* metrics = event.find("metrics"); metrics != nullptr)
    for (const auto& [metric, value] : metrics->members)
      if (const double number = number_of(*metrics, metric); std::isfinite(number) && value.is_scalar())
        row.metrics.emplace_back(metric, number);
  return row;
}

/// In order of `less`; of equal ones the last told stays. Returns how many went.
template <typename Row, typename Less>
int64_t keep_last(std::vector<Row>& rows, Less less) {
  if (!std::is_sorted(rows.begin(), rows.end(), less)) std::stable_sort(rows.begin(), rows.end(), less);
  const size_t before = rows.size();
  size_t kept = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i + 1 < rows.size() && !less(rows[i], rows[i + 1])) continue;
    if (kept != i) rows[kept] = std::move(rows[i]);
    ++kept;
  }
  rows.resize(kept);
  return static_cast<int64_t>(before - kept);
}

}  // namespace

std::string unit_of(const io::Tree& event) {
  const std::string unit = text_of(event, "unit");
  const bool is_word = std::ranges::all_of(unit, [](char c) { return c >= 'a' && c <= 'z'; });
  return unit.empty() || !is_word || unit.size() > kLongestUnit ? "tokens" : unit;
}

std::string_view name(Figure figure) { return kNames[static_cast<size_t>(figure)]; }

bool read_step_line(std::string_view text, StepRow& row) {
  if (!take_prefix(text, R"({"event": "step", "step": )")) return false;
  row = {};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), row.step);
  if (error != std::errc{} || row.step < 0 || row.step > kMostSteps || text[0] == '-') return false;
  if (text[0] == '0' && end > text.data() + 1) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  // Keys of a line all differ and stand in this order where a run wrote it; anything else goes the long way.
  size_t last = 0;
  constexpr std::array<std::string_view, 11> kOrder = {"loss",
                                                       "grad_norm",
                                                       "learning_rate",
                                                       "tokens",
                                                       "loss_scale",
                                                       "skipped",
                                                       "step_seconds",
                                                       "tokens_per_second",
                                                       "samples_per_second",
                                                       "data_wait_seconds",
                                                       "loss_mean"};
  while (take_prefix(text, ", \"")) {
    const size_t quote = text.find("\": ");
    if (quote == std::string_view::npos) return false;
    const std::string_view key = text.substr(0, quote);
    const auto* at = std::find(kOrder.begin() + last, kOrder.end(), key);
    if (at == kOrder.end()) return false;
    last = static_cast<size_t>(at - kOrder.begin()) + 1;
    text.remove_prefix(quote + 3);
    double value = std::nan("");
    const bool taken = key == "skipped" ? take_prefix(text, "true") || take_prefix(text, "false")
                                        : take_prefix(text, "null") || take_number(text, value);
    if (!taken) return false;
    const auto* figure = std::find(kNames.begin(), kNames.end(), key);
    if (figure != kNames.end()) row.values[static_cast<size_t>(figure - kNames.begin())] = value;
  }
  return text == "}";
}

void EventsReader::line(std::string_view text) {
  StepRow row;
  if (read_step_line(text, row)) {
    events_.steps.push_back(row);
    return;
  }
  auto tree = io::parse_json(text);
  if (!tree || tree->kind != io::Tree::Kind::kMap)
    ++events_.bad_lines;
  else
    take(*tree);
}

void EventsReader::take(const io::Tree& event) {
  const std::string kind = text_of(event, "event");
  const std::optional<int64_t> step = step_of(event);
  if ((kind == "step" || kind == "eval" || kind == "checkpoint") && !step)
    ++events_.bad_lines;
  else if (kind == "step")
    take_step(event);
  else if (kind == "eval")
    take_eval(event);
  else if (kind == "checkpoint")
    events_.checkpoints.push_back({*step, text_of(event, "path"), number_of(event, "seconds")});
  else if (kind == "plan")
    events_.plan = event;
  else if (kind == "summary")
    events_.summary = event;
  else if (kind == "machine")
    take_machine(event);
  else if (kind == "warning" && events_.warnings.size() < RunEvents::kMostMessages)
    events_.warnings.push_back(text_of(event, "message"));
  else if (kind.empty())
    ++events_.bad_lines;
}

void EventsReader::take_step(const io::Tree& event) {
  StepRow row;
  row.step = *step_of(event);
  for (size_t i = 0; i < kNumFigures; ++i) row.values[i] = number_of(event, kNames[i]);
  events_.unit = unit_of(event);
  row.values[static_cast<size_t>(Figure::kUnits)] = number_of(event, events_.unit);
  row.values[static_cast<size_t>(Figure::kSpeed)] = number_of(event, events_.unit + "_per_second");
  events_.steps.push_back(row);
}

void EventsReader::take_eval(const io::Tree& event) {
  const int64_t step = *step_of(event);
  const std::string set = text_of(event, "name");
  events_.evals.push_back(eval_row(event, set, step));
  if (set.empty()) events_.last_eval = event;
  const io::Tree* sources = event.find("sources");
  if (sources == nullptr) return;
  for (const auto& [source, figures] : sources->members)
    events_.evals.push_back(eval_row(figures, source, step));
}

void EventsReader::take_machine(const io::Tree& event) {
  const std::optional<int64_t> step = step_of(event);
  if (!step) return;
  for (const auto& [key, value] : event.members) {
    const double number = key == "step" ? std::nan("") : number_of(event, key);
    if (!std::isfinite(number) || !value.is_scalar()) continue;
    auto& list = events_.machine;
    auto at = std::find_if(list.begin(), list.end(),
                           [&, &wanted = key](const auto& each) { return each.first == wanted; });
    if (at == list.end()) {
      if (list.size() == RunEvents::kMostMachineFigures) continue;
      at = list.insert(list.end(), {key, {}});
    }
    at->second.emplace_back(*step, number);
  }
}

RunEvents EventsReader::finish() {
  RunEvents out = std::move(events_);
  events_ = {};
  out.repeated = keep_last(out.steps, [](const StepRow& a, const StepRow& b) { return a.step < b.step; });
  keep_last(out.evals, [](const EvalRow& a, const EvalRow& b) {
    return std::pair(a.step, std::string_view(a.name)) < std::pair(b.step, std::string_view(b.name));
  });
  const auto by_step = [](const auto& a, const auto& b) { return a.first < b.first; };
  for (auto& [figure, points] : out.machine) keep_last(points, by_step);
  for (const StepRow& row : out.steps) out.not_finite += std::isfinite(row[Figure::kLoss]) ? 0 : 1;
  return out;
}

Result<RunEvents> read_run_events(const std::string& path) {
  PLIMSOLL_ASSIGN(io::LineReader lines, io::LineReader::open(path));
  EventsReader reader;
  for (;;) {
    PLIMSOLL_ASSIGN(const auto line, lines.next());
    if (!line) return reader.finish();
    // The last line of a run that goes on may be half there.
    if (line->whole) reader.line(line->text);
  }
}

}  // namespace plimsoll::reports
