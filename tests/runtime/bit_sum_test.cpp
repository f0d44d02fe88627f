#include "runtime/bit_sum.h"

#include <gtest/gtest.h>

#include <vector>

namespace plimsoll::runtime {
namespace {

BitSum::Value sum_of(std::span<const std::byte> bytes) {
  BitSum sum;
  sum.add(bytes);
  return sum.value();
}

TEST(BitSum, EveryBitCounts) {
  for (const size_t size : {1U, 7U, 8U, 64U, 93U, 128U}) {
    std::vector<std::byte> bytes(size, std::byte{0x5a});
    const BitSum::Value plain = sum_of(bytes);
    EXPECT_EQ(sum_of(bytes), plain);
    for (size_t bit = 0; bit < 8 * size; ++bit) {
      bytes[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
      EXPECT_NE(sum_of(bytes), plain) << size << " bytes, bit " << bit;
      bytes[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    }
  }
}

TEST(BitSum, WordsThatChangePlacesCount) {
  std::vector<std::byte> bytes(256);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i);
  const BitSum::Value plain = sum_of(bytes);
  std::swap_ranges(bytes.begin(), bytes.begin() + 8, bytes.begin() + 64);
  EXPECT_NE(sum_of(bytes), plain);
}

}  // namespace
}  // namespace plimsoll::runtime
