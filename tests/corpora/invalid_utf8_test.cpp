#include "corpora/invalid_utf8.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace plimsoll::corpora {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(InvalidUtf8, CountsBytesAndNamesTheFirst) {
  InvalidUtf8 found;
  found.look_at("all is well: \xC3\xA4", "a.jsonl", {1, 1});
  EXPECT_THAT(found.lines(), IsEmpty());
  found.look_at("f\xE4hrt \xFC", "a.jsonl", {7, 1});
  found.look_at("x\xE4", "a.jsonl", {3, 1});
  found.look_at("\xF0\x9F\x98", "b.txt", {0, 11});
  EXPECT_EQ(found.num_bytes(), 6);
  EXPECT_THAT(
      found.lines(),
      ElementsAre(HasSubstr("a.jsonl: 3 bytes in 2 examples are not valid UTF-8 (the first: line 3, byte 2)"),
                  HasSubstr("b.txt: 3 bytes are not valid UTF-8 (the first: byte 11)")));
}

TEST(InvalidUtf8, AddsUpInAnyOrder) {
  InvalidUtf8 early, late;
  early.look_at("\xE4", "a.csv", {2, 0});
  late.look_at("\xE4\xE4", "a.csv", {9, 0});
  for (const auto& [one, other] : {std::pair(early, late), std::pair(late, early)}) {
    InvalidUtf8 both = one;
    both.add(other);
    EXPECT_THAT(both.lines(),
                ElementsAre(HasSubstr("3 bytes in 2 examples are not valid UTF-8 (the first: line 2)")));
  }
}

}  // namespace
}  // namespace plimsoll::corpora
