// The tokens that examples end with.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace plimsoll::corpora {

/// Of up to `most` of a shard's examples, evenly taken, the last token of each: ascending, each once. Errors:
/// as Shard::open and Shard::read.
Result<std::vector<int32_t>> last_tokens(const std::string& shard, int64_t most);

}  // namespace plimsoll::corpora
