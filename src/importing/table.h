// A key's row of its dialect's table, applied.
#pragma once

#include "importing/dialects.h"
#include "importing/draft.h"

namespace plimsoll::importing {

/// Settles a key by its row, unless it is settled or its row leaves it for later. A key without one is
/// unknown.
void apply_row(const SourceKey& key, Draft& draft);

}  // namespace plimsoll::importing
