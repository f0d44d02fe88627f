// Hints as a run's command takes them: what reads data speaks of the options of `plimsoll data`.
#pragma once

#include <string>

#include "base/result.h"

namespace plimsoll::preprocessing {

/// "--on-error skip" as "data.on_error=skip", and so on.
Error in_words_of_runs(Error error);

}  // namespace plimsoll::preprocessing
