// plan --explain memory: what each technique would do, and which dimension the peak grows by.
#pragma once

#include "strategy/prepare.h"

namespace plimsoll::cli {

/// Plans and prints both, as tables or as the events `techniques` and `dimensions`; on a terminal it says how
/// far it has come. `prepared` is the run's plan.
void print_techniques(const settings::RunConfig& config, const strategy::Prepared& prepared, bool json);

}  // namespace plimsoll::cli
