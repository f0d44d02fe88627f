// plimsoll inspect on a token shard.
#pragma once

#include "base/result.h"
#include "cli/inspect/inspect.h"

namespace plimsoll::cli {

class LengthHistogram;

/// What a shard's header says, its lengths, and whether every byte of it is what was written.
/// Errors: kBadData where it is damaged; what is known is printed before.
Status inspect_shard(const InspectArguments& arguments);

/// Lengths as facts: percentiles and bins.
void add_lengths(Facts& facts, const LengthHistogram& lengths);

}  // namespace plimsoll::cli
