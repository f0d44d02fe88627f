// Finds the random stream of an update that rounds stochastically. The op's operand `random` is i32[4], as
// that of other ops, or, of an update that ranks share, i32[6]: behind those words the number of the piece's
// first element over 4, and what the op's key is combined with on this rank (exclusive or; 0 on rank 0).
#pragma once

#include <cstdint>

#include "ops/philox.h"

namespace plimsoll::ops {

inline constexpr int64_t kOwnDraws = 6;

struct UpdateDraws {
  RandomStream stream = {};
  int64_t first = 0;  ///< the number of the first element in the whole tensor
};

/// `word(i)` is word i of so many; `first` is the op's attribute.
template <typename Word>
UpdateDraws update_draws(int64_t words, Word word, int64_t key, int64_t first) {
  const bool is_shared = words == kOwnDraws;
  const auto own = static_cast<uint32_t>(key) ^ (is_shared ? word(5) : uint32_t{0});
  return {{word(0), word(1), word(2), 0, own}, first + (is_shared ? 4 * int64_t{word(4)} : 0)};
}

}  // namespace plimsoll::ops
