// Work on long arrays in pieces, on a few threads that live no longer than the call.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/thread.h"

namespace plimsoll::numerics {

/// Elements of a piece; even, so that 4-bit codes begin on a byte. 2^18 floats are a mebibyte: a thread that
/// is started for less costs more than it brings.
inline constexpr int64_t kPieceElements = int64_t{1} << 18;

/// work(begin, end) over [0, n), each piece once, on this thread and up to num_threads - 1 others; where the
/// system gives fewer, on those that there are.
template <class Work>
void for_pieces(int64_t n, int num_threads, const Work& work) {
  const int64_t pieces = (n + kPieceElements - 1) / kPieceElements;
  std::atomic<int64_t> next = 0;
  const auto run = [&] {
    for (int64_t i = next++; i < pieces; i = next++)
      work(i * kPieceElements, std::min(n, (i + 1) * kPieceElements));
  };
  std::vector<Thread> others;
  for (int64_t i = 1; i < std::min<int64_t>(num_threads, pieces); ++i) {
    auto other = Thread::start("converting numbers", run);
    if (!other) break;
    others.push_back(std::move(*other));
  }
  run();
}

}  // namespace plimsoll::numerics
