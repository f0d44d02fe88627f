// The data of a task whose source reads the files as they lie there.
#pragma once

#include "base/result.h"
#include "preprocessing/run_data.h"

namespace plimsoll::preprocessing {

/// The files of data.train and data.eval, as prepare_data gives them; writes nothing. Errors: kBadData for
/// entries that name no file; kInvalidArgument for data.eval_fraction.
Result<RunData> unprepared_data(const settings::RunConfig& config, bool train);

}  // namespace plimsoll::preprocessing
