// What fits a terminal, by columns and not by bytes.
#include "base/terminal.h"

#include <gtest/gtest.h>

namespace plimsoll {
namespace {

TEST(Wrapped, BreaksAtBlanks) {
  EXPECT_EQ(wrapped("a note of some words", 0), "a note of some words");
  EXPECT_EQ(wrapped("a note of some words", 20), "a note of some words");
  EXPECT_EQ(wrapped("a note of some words", 10), "a note of\n  some\n  words");
  EXPECT_EQ(wrapped("a  table  row", 40), "a  table  row");
  EXPECT_EQ(wrapped("\n  a row of 12", 40), "\n  a row of 12");
  EXPECT_EQ(wrapped("one\ntwo three", 7), "one\ntwo\n  three");
  EXPECT_EQ(wrapped("see /a/path/that/has/no/blank now", 10), "see\n  /a/path/that/has/no/blank\n  now");
  EXPECT_EQ(wrapped("", 10), "");
}

TEST(Fitted, LeavesOutWhatMattersLeast) {
  const std::vector<StatusPart> parts = {
      {"step 3/9", 0}, {"loss 1.2", 1}, {"norm 7", 3}, {"", 0}, {"ETA 4s", 2}};
  EXPECT_EQ(fitted(parts, 0), "step 3/9  loss 1.2  norm 7  ETA 4s");
  EXPECT_EQ(fitted(parts, 34), "step 3/9  loss 1.2  norm 7  ETA 4s");
  EXPECT_EQ(fitted(parts, 33), "step 3/9  loss 1.2  ETA 4s");
  EXPECT_EQ(fitted(parts, 18), "step 3/9  loss 1.2");
  EXPECT_EQ(fitted(parts, 4), "step");
}

TEST(ColumnsOf, CountsCharactersAndWideOnesTwice) {
  EXPECT_EQ(columns_of("abc"), 3);
  EXPECT_EQ(columns_of("\xc3\xa9t\xc3\xa9"), 3);
  EXPECT_EQ(columns_of("\xe8\x88\xb9"), 2);
  EXPECT_EQ(fitted({{"\xe8\x88\xb9\xe8\x88\xb9", 0}}, 3), "\xe8\x88\xb9");
}

}  // namespace
}  // namespace plimsoll
