// The stream that an op's operand `random` and its attribute `key` name, as references read it.
#pragma once

#include <cstdint>

#include "ir/op_def.h"
#include "ops/philox.h"

namespace plimsoll::ops {

/// `random`: i32[4], the words of philox.h.
inline RandomStream stream_of(const ir::RefTensor& random, const ir::Attrs& attrs) {
  const auto word = [&](size_t i) { return static_cast<uint32_t>(static_cast<int32_t>(random.data[i])); };
  return {word(0), word(1), word(2), word(3), static_cast<uint32_t>(attrs.i64("key"))};
}

}  // namespace plimsoll::ops
