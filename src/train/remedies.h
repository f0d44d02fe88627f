// Where a plan does not fit: the settings under which it would, found by planning them.
#pragma once

#include "train/prepare.h"

namespace plimsoll::train {

/// Fills prepared.report.remedies, the cheapest first: what leaves the bits, then narrower numbers, then
/// shorter sequences; each that does by itself, and where none does, the first of them together that do.
/// Nothing where the plan fits, or where no setting that is known helps.
void add_remedies(const RunConfig& config, const runtime::Target& target, const PrepareOptions& options,
                  Prepared& prepared);

}  // namespace plimsoll::train
