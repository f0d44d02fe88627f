// Reads a gradient from its accumulators.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/session.h"

namespace plimsoll::training {

/// Elements of the sum of `accumulators` (f32 or bf16, one for each use of the parameter) from `first` on,
/// added in f32 in their order. Errors: of the device.
Status read_sum(const runtime::Session& session, const std::vector<std::string>& accumulators, int64_t first,
                std::span<float> sum);

}  // namespace plimsoll::training
