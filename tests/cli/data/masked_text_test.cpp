#include "cli/data/masked_text.h"

#include <gtest/gtest.h>

namespace plimsoll::cli {
namespace {

TEST(MaskedText, MarksWhatIsNotInTheLoss) {
  MaskedText text(MaskStyle::kMarks, 80);
  text.add("system: be kind\nuser: hi", false);
  text.add("\nhello", true);
  text.add("", false);
  text.add("!", true);
  EXPECT_EQ(text.finish(), "  │ [system: be kind\n  │ user: hi]\n  │ hello!\n");
  EXPECT_EQ(text.finish(), "  │ \n") << "nothing is left over";
}

TEST(MaskedText, DimsLineByLine) {
  MaskedText text(MaskStyle::kDim, 80);
  text.add("a\nb", false);
  text.add("c", true);
  EXPECT_EQ(text.finish(), "  │ \x1b[2ma\x1b[0m\n  │ \x1b[2mb\x1b[0mc\n");
}

TEST(MaskedText, BreaksLinesAtBlanks) {
  MaskedText text(MaskStyle::kMarks, 15);  // 10 columns of text
  text.add("one two three", true);
  EXPECT_EQ(text.finish(), "  │ one two \n  │ three\n");
  text.add("0123456789abc", true);
  EXPECT_EQ(text.finish(), "  │ 0123456789\n  │ abc\n");
  text.add("日本語日本語", true);  // two columns each
  EXPECT_EQ(text.finish(), "  │ 日本語日本\n  │ 語\n");
  MaskedText dim(MaskStyle::kDim, 15);
  dim.add("one two", false);
  dim.add(" th", true);
  dim.add("ree", false);
  EXPECT_EQ(dim.finish(), "  │ \x1b[2mone two\x1b[0m \n  │ th\x1b[2mree\x1b[0m\n");
}

TEST(MaskedText, SpellsOutWhatCouldSteerATerminal) {
  MaskedText text(MaskStyle::kMarks, 80);
  text.add("a\x1b[31mb\r\xc2\x9b\xff\tü", true);
  EXPECT_EQ(text.finish(), "  │ a\\x1b[31mb\\x0d\\x9b\\xff    ü\n");
}

}  // namespace
}  // namespace plimsoll::cli
