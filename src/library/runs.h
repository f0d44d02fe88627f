// Whole runs for the library's caller: they do what the program's commands do and pass the events to a
// callback on the calling thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "settings/run_config.h"

namespace plimsoll::library {

/// A run file, or the text of one, with overrides.
struct RunText {
  std::string file = {}, text = {};
  std::vector<std::string> overrides = {};
};
/// Exactly one of the first two is not null. Errors: kInvalidArgument.
Result<RunText> run_text(const char* file, const char* text, const char* const* overrides,
                         size_t num_overrides);
/// As the command line reads a run. Errors: as load_run_config.
Result<settings::RunConfig> read_run(const RunText& run, settings::RunUse use);

/// Gets events as JSON, in their order, on the calling thread; true asks the run to stop.
using OnEvent = std::function<bool(const std::string& event)>;

/// By how much a run exceeds its budget.
struct Shortfall {
  int64_t least_bytes = 0;  ///< the least budget that fits
  int64_t budget_bytes = 0;
};
/// Of a training or an evaluation that has not fit, by its plan, which is made again without programs;
/// nothing where it fits now. Errors: as the run's.
Result<std::optional<Shortfall>> shortfall_of(const RunText& run, settings::RunUse use);

/// `resume` as engine::TrainOptions. Errors: as Engine::train.
Status train_run(const RunText& run, const std::string& resume, const OnEvent& on_event);
/// Errors: as Engine::evaluate.
Status evaluate_run(const RunText& run, const OnEvent& on_event);
/// `request`: JSON, see pls_generate. Errors: kInvalidArgument of the request; as generate::run.
Status generate_texts(std::string_view request, const OnEvent& on_event);

}  // namespace plimsoll::library
