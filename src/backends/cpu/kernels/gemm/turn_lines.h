// Rows that become columns.
#pragma once

#include <cstdint>

namespace plimsoll::cpu {

/// to[c * stride + i] = lines[i * length + c], for `count` lines of `length` numbers. Fastest for 16 lines.
void turn_lines(const float* lines, int64_t count, int64_t length, float* to, int64_t stride);

}  // namespace plimsoll::cpu
