#include "gguf/q8_0.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstring>

namespace plimsoll::gguf {
namespace {

struct Block {
  uint16_t scale;
  std::array<int8_t, 32> codes;
};
Block encode(const std::array<float, 32>& x) {
  std::array<std::byte, 34> bytes;
  encode_q8_0(x, bytes);
  Block block;
  std::memcpy(&block.scale, bytes.data(), 2);
  std::memcpy(block.codes.data(), bytes.data() + 2, 32);
  return block;
}

TEST(Q8, HalvesGoAwayFromZero) {
  std::array<float, 32> x{};
  x[0] = -127, x[1] = 0.5F, x[2] = -0.5F, x[3] = 1.5F, x[4] = 0.49999997F, x[5] = 2.5F, x[6] = 126.5F;
  const Block block = encode(x);
  EXPECT_EQ(block.scale, 0x3c00);  // 1 in fp16
  const std::array<int8_t, 7> expected = {-127, 1, -1, 2, 0, 3, 127};
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(block.codes[i], expected[i]) << i;
}

/// Codes come from the scale in fp32, not from what fp16 keeps of it.
TEST(Q8, TheScaleIsRoundedAfterwards) {
  std::array<float, 32> x{};
  x[0] = 0.1F, x[1] = 0.05F, x[2] = -0.0333F;
  const Block block = encode(x);
  EXPECT_EQ(block.codes[0], 127);
  EXPECT_EQ(block.codes[1], 64);  // 63.5, half away from zero
  EXPECT_EQ(block.codes[2], -42);
  EXPECT_EQ(block.scale, 0x1273);  // 0.1 / 127 to the nearest fp16
}

TEST(Q8, ZerosHaveNoScale) {
  const Block block = encode({});
  EXPECT_EQ(block.scale, 0);
  for (const int8_t code : block.codes) EXPECT_EQ(code, 0);
}

}  // namespace
}  // namespace plimsoll::gguf
