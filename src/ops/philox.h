// The random bits of every random op: words of Philox-4x32-10 (numerics/philox.h) by these keys and counters.
// A draw depends on them alone, so a recomputation, another batch split and every backend draw the same.
//
//   key     = { seed low 32, seed high 32 }                    random[0], random[1]
//   counter = { element / 4 (low 32 bits), sequence, step, key of the op (low 32 bits) }
//   word    = output[element % 4]
//
// dropout: `element` counts within the sequence (axis 0 is the sequence), sequence = random[3] + index along
// axis 0, step = random[2]. random_normal: `element` counts in the whole tensor, sequence and step are 0.
//
// Attention's dropout (the weight of query i for key j, head h of the query) goes by blocks of four keys, so
// that a kernel that holds queries in its lanes wastes no word; T is the number of tokens of the sequence:
//   block   = (j / 4) * T + i, which has more than 32 bits from T = 131,072 on
//   counter = { block (low 32 bits), sequence + 2^16 * (its high bits), step, key of the op + h },   word =
//   output[j % 4]
// No two weights of a run share a word while T < 2^25, and sequences that are that long are fewer than 2^16 a
// step.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

#include "numerics/philox.h"

namespace plimsoll::ops {

using numerics::philox;
using numerics::PhiloxCounter;

/// Where a random op draws from: everything of key and counter but the element.
struct RandomStream {
  uint32_t seed_low = 0;
  uint32_t seed_high = 0;
  uint32_t step = 0;
  uint32_t sequence = 0;
  uint32_t op_key = 0;
};

/// The words of elements 4 * block .. 4 * block + 3.
constexpr PhiloxCounter random_words(const RandomStream& s, uint64_t block) {
  return philox({static_cast<uint32_t>(block), s.sequence, s.step, s.op_key}, {s.seed_low, s.seed_high});
}

/// The stream of a head's attention weights, and the block of query i and keys 4 * (j / 4) .. + 3.
constexpr RandomStream attention_stream(RandomStream s, int64_t head) {
  s.op_key += static_cast<uint32_t>(head);
  return s;
}
constexpr uint64_t attention_block(int64_t query, int64_t key, int64_t tokens) {
  return static_cast<uint64_t>(key / 4 * tokens + query);
}

/// Its words: those of random_words up to 2^32 blocks, and no others twice behind them.
constexpr RandomStream attention_stream_of_block(RandomStream s, uint64_t block) {
  s.sequence += static_cast<uint32_t>(block >> 32) << 16;
  return s;
}
constexpr PhiloxCounter attention_words(const RandomStream& s, uint64_t block) {
  return random_words(attention_stream_of_block(s, block), block);
}

/// A word as a number in (0, 1), exact in double.
constexpr double uniform(uint32_t word) { return (static_cast<double>(word) + 0.5) * 0x1p-32; }

/// dropout keeps an element where its word is at least this: the same as uniform(word) >= p, for p in [0, 1).
inline uint64_t dropout_threshold(double p) {
  const double bound = std::ceil(p * 0x1p32 - 0.5);
  return bound > 0 ? static_cast<uint64_t>(bound) : 0;
}

/// Box-Muller on the words of elements 2i and 2i + 1: radius from the even word, angle from the odd one; the
/// even element takes the cosine.
inline std::array<double, 2> normal_pair(uint32_t even, uint32_t odd) {
  constexpr double kTwoPi = 6.283185307179586;
  const double radius = std::sqrt(-2.0 * std::log(uniform(even)));
  const double angle = kTwoPi * uniform(odd);
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

}  // namespace plimsoll::ops
