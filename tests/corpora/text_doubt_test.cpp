// What is no text is doubted, whatever its name; what is one is not.
#include "corpora/text_doubt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "io/temporary_folder.h"

namespace plimsoll::corpora {
namespace {

using testing::HasSubstr;

std::string random_bytes(size_t count) {
  std::mt19937 random(3);
  std::string bytes;
  for (size_t i = 0; i < count; ++i) bytes += static_cast<char>(random());
  return bytes;
}
std::string repeated(std::string_view text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

TEST(TextDoubt, OfBytesThatAreNoText) {
  EXPECT_THAT(doubt_of(random_bytes(3'000'000)),
              HasSubstr("of the first 65536 bytes are control characters"));
  EXPECT_THAT(doubt_of(repeated(std::string_view("h\0i\0\n\0", 6), 100)), HasSubstr("50.0 %")) << "UTF-16";
  EXPECT_THAT(doubt_of(repeated("\xcf\xf0\xe8\xe2\xe5\xf2 ", 100)), HasSubstr("no UTF-8")) << "windows-1251";
}

TEST(TextDoubt, NotOfText) {
  for (const char* text :
       {"", "a", "The ship is loaded.\r\n\tTo her line.\f\n",
        "\xd0\x9f\xd1\x80\xd0\xb8\xd0\xb2\xd0\xb5\xd1\x82 ",
        "\xe8\x88\xb9\xe8\xa2\xab\xe8\xa3\x85\xe6\xbb\xa1", "\x1b[1mbold\x1b[0m ",
        "one broken \xff byte in a line of text", "caf\xe9 in an 8-bit code of long ago, now and then"})
    EXPECT_EQ(doubt_of(repeated(text, 4000)), "") << text;
  const std::string cut = repeated("\xe8\x88\xb9", 30'000);  // 64 KiB end within a character
  EXPECT_EQ(doubt_of(cut), "");
}

TEST(TextDoubt, OfAFile) {
  const io::TemporaryFolder folder;
  folder.write("a.txt", random_bytes(2000));
  EXPECT_THAT(doubt_of_file(folder.path("a.txt")), HasSubstr("of the first 2000 bytes"));
  EXPECT_EQ(doubt_of_file(folder.path("none.txt")), "");
}

}  // namespace
}  // namespace plimsoll::corpora
