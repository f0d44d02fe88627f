// The day that a chat template writes (strftime_now). The clock is an input of a run like any other: the
// first start of a run fixes it, as data.template_date, and whatever is tokenized later has the same.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "settings/run_config.h"

namespace plimsoll::preprocessing {

/// What ChatOptions::now takes: the day's midnight; nothing where the day is "auto".
std::optional<int64_t> template_now(const settings::DataSettings& data);

/// data.template_date of the run that `path`, a run.yaml, records; "auto" where there is none.
std::string recorded_date(const std::string& path);

/// The run with data.template_date fixed: as the settings say it; else as `recorded`, of the run that this
/// one goes on with ("auto" of a run that fixed none stays so); else, where the data has conversations to be
/// rendered and the chat template asks for the date, as today. `note` is told of it. What is wrong with the
/// tokenizer's files is left to prepare_data.
settings::RunConfig with_template_date(const settings::RunConfig& config,
                                       const std::optional<std::string>& recorded,
                                       const std::function<void(const std::string&)>& note);

}  // namespace plimsoll::preprocessing
