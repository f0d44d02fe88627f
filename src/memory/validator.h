// The independent judge of every plan. It shares no code with the search: a plan that passes is right even
// where the search is wrong. It always runs.
#pragma once

#include <span>

#include "memory/buffer.h"

namespace plimsoll::memory {

/// Whether `placement` is a legal assignment of `buffers`.
/// Checks: one offset per buffer, none negative, each aligned, no two buffers that share time share bytes,
/// the height is the largest offset + size, and it is not below the stated lower bound.
/// Errors: kInvalidArgument naming the buffers in conflict.
/// Cost: O(n log n): a sweep over time with the live byte ranges in an ordered set.
Status validate(std::span<const Buffer> buffers, const Placement& placement);

}  // namespace plimsoll::memory
