// Reads a part of a file that is opened for it alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"

namespace plimsoll::io {

/// Fills `out` from byte `offset` of the file and returns how long the file is; where it is shorter than
/// that, `out` is left as it is. Takes nothing from the heap where it succeeds. Errors: as ReadFile::open and
/// ReadFile::read_at.
Result<int64_t> read_part(const char* path, int64_t offset, std::span<std::byte> out);

}  // namespace plimsoll::io
