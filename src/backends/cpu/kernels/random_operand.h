// The stream that an op's operand `random` and its attribute `key` name.
#pragma once

#include <cstdint>

#include "backends/cpu/kernel.h"
#include "ops/philox.h"

namespace plimsoll::cpu {

/// `random`: i32[4], the words of ops/philox.h.
inline ops::RandomStream stream_of(const TensorRef& random, const ir::Attrs& attrs) {
  const auto* words = random.as<const uint32_t>();
  return {words[0], words[1], words[2], words[3], static_cast<uint32_t>(attrs.i64("key"))};
}

}  // namespace plimsoll::cpu
