// Writes the files of a run folder beside checkpoints: events.jsonl,
// trainer_state.json, environment.json, and event files for TensorBoard. None of it is a reason to end the
// run: what cannot be written is told once a file.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "io/append_file.h"
#include "settings/run_config.h"
#include "telemetry/event_file.h"
#include "telemetry/events.h"

namespace plimsoll::training {
class Trainer;
}

namespace plimsoll::telemetry {

class RunFolder {
 public:
  using Warn = std::function<void(const std::string&)>;
  /// Takes out of an earlier process's events what this one will repeat, and opens the files. `trainer` has
  /// been created: the folder is its.
  RunFolder(const settings::RunConfig& config, const training::Trainer& trainer, Warn warn);

  /// A line of events, without its end.
  void line(std::string_view text);
  void step(const training::StepEvent& event);
  void eval(const training::EvalEvent& event);
  /// trainer_state.json of the last step; with the summary, that of a run at its end.
  void write_state(const Summary* end = nullptr);

 private:
  void check(const Status& status, const std::string& file);
  void write_environment();
  [[nodiscard]] double epoch(int64_t step) const;
  [[nodiscard]] std::string path(std::string_view name) const;

  const settings::RunConfig& config_;
  const training::Trainer& trainer_;
  Warn warn_;
  std::set<std::string> told_;
  std::optional<io::AppendFile> log_;
  std::optional<EventFile> event_file_;
};

}  // namespace plimsoll::telemetry
