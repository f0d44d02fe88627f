// What fits a terminal, by columns and not by bytes.
#include "base/text_layout.h"

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

TEST(Wrapped, UnderTheLastFieldWhereThereIsRoom) {
  EXPECT_EQ(wrapped("  --json    one object a line on stdout", 34),
            "  --json    one object a line on\n            stdout");
  EXPECT_EQ(wrapped("  kernels  avx2\n  --json    one object a line", 24),
            "  kernels  avx2\n  --json  one object a\n    line")
      << "twelve columns are too few to read";
}

TEST(Wrapped, AnIndentGivesWayToo) {
  EXPECT_EQ(wrapped("                     of a line above", 30), "    of a line above");
  EXPECT_EQ(wrapped("  choice    training.early_stopping_patience", 40),
            "  choice\n    training.early_stopping_patience");
  EXPECT_EQ(wrapped("  choice    only with what was asked for by training.early_stopping_patience today", 40),
            "  choice    only with what was asked for\n            by\n    training.early_stopping_patience\n"
            "            today");
}

TEST(Wrapped, ATableThatIsTooWideGivesItsBlanksUp) {
  EXPECT_EQ(wrapped("  parameters         10,233,600 B      9.76 MiB", 40),
            "  parameters  10,233,600 B  9.76 MiB");
  EXPECT_EQ(wrapped("  llama-2-7b       6,738,415,616      Llama 2 Community    meta-llama/Llama-2-7b", 40),
            "  llama-2-7b  6,738,415,616  Llama 2\n    Community  meta-llama/Llama-2-7b");
  EXPECT_EQ(wrapped("name      ", 6), "name") << "blanks at the end are no reason for a line";
}

TEST(Harmless, SpellsControlsOut) {
  EXPECT_EQ(harmless("a\tb\n\x1b[31mred\x1b[0m\r\x7f"), "a\tb\n\\x1b[31mred\\x1b[0m\\x0d\\x7f");
  EXPECT_EQ(harmless("\xc2\x9b"
                     "2J \xc3\xa9\xc2\xa0"),
            "\\x9b"
            "2J \xc3\xa9\xc2\xa0");
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
  EXPECT_EQ(columns_of("\xe2\x96\x88\xe2\x80\xa6"), 2) << "a box and an ellipsis";
  EXPECT_EQ(fitted({{"\xe8\x88\xb9\xe8\x88\xb9", 0}}, 3), "\xe8\x88\xb9");
}

}  // namespace
}  // namespace plimsoll
