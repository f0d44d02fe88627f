// plimsoll bench data: how fast a run's data comes, setting by setting, and what bounds it.
#pragma once

#include "cli/commands.h"

namespace plimsoll::cli {

struct BenchDataArguments {
  RunArguments run;
  int64_t milliseconds = 500;  ///< of each rung
};

/// A ladder: tokenizing on the way, cold and warm cache, workers, prefetch, packing. Each rung prints samples
/// and tokens a second, what a step of the estimated length waits, and what bounds it. Nothing is trained;
/// the run's cache is used, and made where it is missing. Errors: as load_run_config, prepare, of the data.
Status bench_data(const BenchDataArguments& arguments);

}  // namespace plimsoll::cli
