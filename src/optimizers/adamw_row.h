// AdamW's row of the table, for every optimizer that falls back on its rule.
#pragma once

#include "optimizers/optimizer.h"

namespace plimsoll::optimizers {

/// As OptimizerDef::write_row.
void write_adamw_row(const StepHyper& hyper, double weight_decay, float* row);

}  // namespace plimsoll::optimizers
