// The bytes before the tensors, written out by hand from the format's description.
#include "gguf/gguf_file.h"

#include <gtest/gtest.h>

namespace plimsoll::gguf {
namespace {

std::string u32(uint32_t n) {
  std::string s;
  for (int i = 0; i < 4; ++i) s += static_cast<char>(n >> (8 * i));
  return s;
}
std::string u64(uint64_t n) { return u32(static_cast<uint32_t>(n)) + u32(static_cast<uint32_t>(n >> 32)); }
std::string text(const std::string& t) { return u64(t.size()) + t; }

TEST(LayOut, IsTheFormatsOwn) {
  Metadata metadata;
  metadata.add_text("a", "bc");
  metadata.add_u32("n", 7);
  metadata.add_f32("x", 0.5);
  metadata.add_bool("b", true);
  metadata.add_i32s("k", {1, -1});
  metadata.add_texts("t", {"", "é"});
  const std::vector<TensorInfo> tensors = {{"w", {3, 64}, TensorType::kQ8_0}, {"v", {5}, TensorType::kF32}};
  const Layout layout = lay_out(metadata, tensors);
  std::string expected = "GGUF" + u32(3) + u64(2) + u64(6);
  expected += text("a") + u32(8) + text("bc") + text("n") + u32(4) + u32(7);
  expected += text("x") + u32(6) + u32(0x3f000000) + text("b") + u32(7) + '\1';
  expected += text("k") + u32(9) + u32(5) + u64(2) + u32(1) + u32(0xffffffff);
  expected += text("t") + u32(9) + u32(8) + u64(2) + text("") + text("é");
  expected += text("w") + u32(2) + u64(64) + u64(3) + u32(8) + u64(0);
  expected += text("v") + u32(1) + u64(5) + u32(0) + u64(224);  // 3 * 2 * 34 = 204, rounded up to 32
  EXPECT_EQ(layout.header.substr(0, expected.size()), expected);
  EXPECT_EQ(layout.header.size() % 32, 0U);
  EXPECT_LT(layout.header.size() - expected.size(), 32U);
  const auto begin = static_cast<int64_t>(layout.header.size());
  EXPECT_EQ(layout.offsets, (std::vector<int64_t>{begin, begin + 224}));
  EXPECT_EQ(layout.file_bytes, begin + 224 + 32);
}

TEST(TensorBytes, OfEachType) {
  EXPECT_EQ(tensor_bytes(TensorType::kF32, 64), 256);
  EXPECT_EQ(tensor_bytes(TensorType::kF16, 64), 128);
  EXPECT_EQ(tensor_bytes(TensorType::kBf16, 64), 128);
  EXPECT_EQ(tensor_bytes(TensorType::kQ8_0, 64), 68);
}

}  // namespace
}  // namespace plimsoll::gguf
