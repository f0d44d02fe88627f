// A run's events.jsonl as columns of numbers. Who wrote the file is not known: every line is checked, what is
// no event of a known form is counted and left out, and nothing of it is an error.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "io/tree.h"

namespace plimsoll::reports {

/// What a step tells, in the order of the curves.
enum class Figure : uint8_t {
  kLoss,
  kGradNorm,
  kLearningRate,
  kSpeed,  ///< in the unit of the run's task, as kUnits
  kDataWait,
  kLossScale,
  kStepSeconds,
  kUnits
};
inline constexpr size_t kNumFigures = 8;
/// As events spell it where tokens are counted: "loss", "grad_norm", "tokens_per_second", …
std::string_view name(Figure figure);

/// What the run of a step's event or a summary counts its examples in; "tokens" where it says nothing
/// that is a word.
std::string unit_of(const io::Tree& event);

struct StepRow {
  int64_t step = 0;
  std::array<double, kNumFigures> values;  ///< NaN: not told, or not finite
  StepRow() { values.fill(std::numeric_limits<double>::quiet_NaN()); }
  [[nodiscard]] double operator[](Figure f) const { return values[static_cast<size_t>(f)]; }
};

struct EvalRow {
  std::string name;  ///< of the set; empty: of all there is
  int64_t step = 0;
  double loss = 0;
  std::vector<std::pair<std::string, double>> metrics;  ///< perplexity among them
};

struct CheckpointRow {
  int64_t step = 0;
  std::string path;
  double seconds = 0;
};

struct RunEvents {
  static constexpr size_t kMostMessages = 100;
  static constexpr size_t kMostMachineFigures = 16;

  std::vector<StepRow> steps;              ///< in order, each once
  std::vector<EvalRow> evals;              ///< in order, each step and name once
  std::vector<CheckpointRow> checkpoints;  ///< as told
  std::vector<std::string> warnings;
  std::string unit = "tokens";  ///< of the task
  io::Tree plan, summary;       ///< the last ones; null: none
  io::Tree last_eval;           ///< the last event of an evaluation of all there is; null: none
  /// Numbers of the machine beside the run, by name and step.
  std::vector<std::pair<std::string, std::vector<std::pair<int64_t, double>>>> machine;
  int64_t bad_lines = 0;   ///< no events
  int64_t repeated = 0;    ///< steps told again: the last one counts
  int64_t not_finite = 0;  ///< steps whose loss is no number
};

/// Takes events line by line; `finish` puts them in order.
class EventsReader {
 public:
  void line(std::string_view text);
  RunEvents finish();
  /// What has come so far, unordered.
  [[nodiscard]] const RunEvents& events() const { return events_; }

 private:
  void take(const io::Tree& event);
  void take_step(const io::Tree& event);
  void take_eval(const io::Tree& event);
  void take_machine(const io::Tree& event);
  RunEvents events_;
};

/// A step's line in the form in which runs write it, without building anything. False where it has another;
/// then `row` is undefined.
bool read_step_line(std::string_view text, StepRow& row);

/// Errors: kBadData where there is no such file; kIo.
Result<RunEvents> read_run_events(const std::string& path);

}  // namespace plimsoll::reports
