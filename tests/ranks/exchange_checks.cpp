// Compiled with optimization: millions of words are made and compared.
#include "ranks/exchange_checks.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace plimsoll::ranks::fixtures {
namespace {

/// Word i of rank r.
uint32_t word(int rank, size_t i) {
  return static_cast<uint32_t>(rank) * 1'000'003U + static_cast<uint32_t>(i);
}

Words words_of(int rank, size_t count) {
  Words words(count);
  for (size_t i = 0; i < count; ++i) words[i] = word(rank, i);
  return words;
}

constexpr size_t kNone = ~size_t{0};
size_t first_difference(const Words& a, const Words& b) {
  const auto found = std::ranges::mismatch(a, b).in1;
  return found == a.end() ? kNone : static_cast<size_t>(found - a.begin());
}

}  // namespace

void check_exchange(runtime::Communicator& ranks, size_t count, size_t piece) {
  const auto all = static_cast<size_t>(ranks.ranks()), rank = static_cast<size_t>(ranks.rank());
  const Words own = words_of(ranks.rank(), count);
  Words received(all * piece, 0xffffffffU);
  ASSERT_TRUE(ranks.exchange(bytes(own), static_cast<int64_t>(piece * 4), bytes(received)));
  Words expected(all * piece);
  for (size_t from = 0; from < all; ++from)
    for (size_t at = rank * piece; at < std::min(count, (rank + 1) * piece); ++at)
      expected[from * piece + at - rank * piece] = word(static_cast<int>(from), at);
  ASSERT_EQ(first_difference(received, expected), kNone)
      << count << " words, piece " << piece << ", rank " << rank;
}

void check_exchange_with_first(runtime::Communicator& ranks, size_t count) {
  const Words own = words_of(ranks.rank(), count);
  Words received(ranks.rank() == 0 ? static_cast<size_t>(ranks.ranks()) * count : 0);
  ASSERT_TRUE(ranks.exchange(bytes(own), static_cast<int64_t>(count * 4), bytes(received)));
  for (size_t i = 0; i < received.size(); ++i)
    ASSERT_EQ(received[i], word(static_cast<int>(i / count), i % count)) << "at " << i;
}

void check_gather(runtime::Communicator& ranks, size_t piece, size_t whole) {
  const Words own = words_of(ranks.rank(), piece);
  Words all(whole);
  ASSERT_TRUE(ranks.gather(bytes(own), bytes(all)));
  Words expected(whole);
  for (size_t i = 0; i < whole; ++i) expected[i] = word(static_cast<int>(i / piece), i % piece);
  ASSERT_EQ(first_difference(all, expected), kNone) << piece << " words of " << whole;
}

void check_broadcast(runtime::Communicator& ranks, size_t count) {
  for (const bool by_default : {false, true}) {
    const int root = ranks.ranks() - 1;
    Words words = words_of(ranks.rank(), count);
    ASSERT_TRUE(by_default ? ranks.runtime::Communicator::broadcast(root, bytes(words))
                           : ranks.broadcast(root, bytes(words)));
    ASSERT_EQ(first_difference(words, words_of(root, count)), kNone) << count << " words";
  }
}

void check_exchanges(runtime::Communicator& ranks) {
  const auto r = static_cast<size_t>(ranks.ranks());
  for (const size_t count : {size_t{1}, size_t{7}, size_t{1000}, size_t{300'001}}) {
    check_exchange(ranks, count, (count + r - 1) / r);
    check_exchange(ranks, count, count);  // all of it is rank 0's
    check_exchange_with_first(ranks, count);
    check_broadcast(ranks, count);
    check_gather(ranks, count, count * r);
    check_gather(ranks, count, count * (r - 1) + (count + 1) / 2);  // the last one is cut
    check_gather(ranks, count, std::max<size_t>(1, count / 2));     // only rank 0's counts
  }
}

}  // namespace plimsoll::ranks::fixtures
