// Random instances for the tests of this room: generated from a seed, the same everywhere.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "memory/buffer.h"

namespace plimsoll::memory {

/// A number in [low, high]; std::uniform_int_distribution differs between libraries.
inline int64_t pick(std::mt19937_64& random, int64_t low, int64_t high) {
  return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
}

/// Buffers with short lifetimes and any size up to max_size.
inline std::vector<Buffer> random_buffers(uint64_t seed, int64_t count, int64_t times, int64_t max_size) {
  std::mt19937_64 random(seed);
  std::vector<Buffer> buffers;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t lower = pick(random, 0, times - 1);
    const int64_t upper = lower + pick(random, 1, 1 + times / (random() % 4 == 0 ? 1 : 6));
    buffers.push_back({.lower = lower, .upper = upper, .size = pick(random, 1, max_size)});
  }
  return buffers;
}

/// A rectangle cut by guillotine into `count` pieces and shuffled: the least height is known, and no byte is
/// free.
///   time × bytes:  ┌──────┬─────┐
///                  ├───┬──┤     │
///                  └───┴──┴─────┘
inline std::vector<Buffer> guillotine(uint64_t seed, size_t count, int64_t times, int64_t height) {
  std::mt19937_64 random(seed);
  struct Piece {
    int64_t left, right, low, high;
    [[nodiscard]] int64_t area() const { return (right - left) * (high - low); }
  };
  std::vector<Piece> pieces{{0, times, 0, height}};
  while (pieces.size() < count) {
    size_t largest = random() % pieces.size();
    for (int k = 0; k < 2; ++k) {
      const size_t other = random() % pieces.size();
      if (pieces[other].area() > pieces[largest].area()) largest = other;
    }
    Piece& piece = pieces[largest];
    Piece rest = piece;
    if (random() % 2 == 0 && piece.right - piece.left > 1) {
      piece.right = rest.left = pick(random, piece.left + 1, piece.right - 1);
    } else if (piece.high - piece.low > 1) {
      piece.high = rest.low = pick(random, piece.low + 1, piece.high - 1);
    } else {
      continue;
    }
    pieces.push_back(rest);
  }
  for (size_t i = pieces.size() - 1; i > 0; --i) std::swap(pieces[i], pieces[random() % (i + 1)]);
  std::vector<Buffer> buffers;
  for (const Piece& p : pieces)
    buffers.push_back({.lower = p.left, .upper = p.right, .size = p.high - p.low});
  return buffers;
}

/// A training step of a Llama-like model: activations live from forward to backward, gradients and transients
/// between. `sizes` scale with hidden; 42 buffers a layer.
inline std::vector<Buffer> training_step(int64_t layers, int64_t hidden, bool keep_gradients) {
  std::vector<Buffer> buffers;
  const int64_t forward = 20;
  const int64_t backward = 24;
  const int64_t turn = layers * forward + 4;
  const int64_t end = turn + layers * backward + 1;
  const int64_t tokens = 2048;
  for (int64_t layer = 0; layer < layers; ++layer) {
    const int64_t f = layer * forward;
    const int64_t b = turn + (layers - 1 - layer) * backward;
    const auto add = [&](int64_t lower, int64_t upper, int64_t size) {
      buffers.push_back({.lower = lower, .upper = upper, .size = size});
    };
    for (int64_t k = 0; k < 8; ++k)
      add(f + 2 * k, b + backward - 2 * k, tokens * hidden * (k % 3 == 2 ? 3 : 1));
    for (int64_t k = 0; k < 4; ++k) add(f + 3 * k, b + backward - 3 * k, tokens * 4);  // row statistics
    for (int64_t k = 0; k < 12; ++k) add(f + k, f + k + 2 + k % 3, tokens * hidden / (1 + k % 2));
    for (int64_t k = 0; k < 12; ++k) add(b + 2 * k, b + 2 * k + 3, tokens * hidden * (1 + k % 3));
    for (int64_t k = 0; k < 6; ++k)
      add(b + 4 * k, keep_gradients ? end : b + 4 * k + 1, hidden * hidden * (1 + k % 4));
  }
  buffers.push_back({.lower = turn - 4, .upper = turn + 1, .size = tokens * hidden * 4});
  return buffers;
}

}  // namespace plimsoll::memory
