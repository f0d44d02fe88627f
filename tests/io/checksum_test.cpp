// Checksums: the same in pieces as at once, known values, and their text.
#include "io/checksum.h"

#include <gtest/gtest.h>

namespace plimsoll::io {
namespace {

TEST(ChecksumTest, IsXxh3) {
  // From the reference implementation: XXH3_64bits of nothing, and of "abc".
  EXPECT_EQ(checksum(std::string_view("")), 0x2d06800538d394c2ULL);
  EXPECT_EQ(checksum(std::string_view("abc")), 0x78af5f94892f3950ULL);
}

TEST(ChecksumTest, OfPiecesIsThatOfTheWhole) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += static_cast<char>(i * 7);
  Checksum sum;
  for (const size_t piece : {1U, 3U, 64U, 1000U, 5000U}) {
    sum.reset();
    for (size_t at = 0; at < text.size(); at += piece) sum.add(std::string_view(text).substr(at, piece));
    EXPECT_EQ(sum.value(), checksum(text)) << piece;
  }
}

TEST(ChecksumTest, ReadsItsTextBack) {
  EXPECT_EQ(checksum_text(0x0123456789abcdefULL), "0123456789abcdef");
  EXPECT_EQ(parse_checksum("0123456789abcdef"), 0x0123456789abcdefULL);
  for (const char* wrong :
       {"", "0123456789abcde", "0123456789abcdefg", "0123456789ABCDEF", " 123456789abcdef"})
    EXPECT_FALSE(parse_checksum(wrong)) << wrong;
}

}  // namespace
}  // namespace plimsoll::io
