#include "gguf/sentencepiece.h"

#include <gtest/gtest.h>

namespace plimsoll::gguf {
namespace {

/// A piece with text, score and, where it is not the first kind, a kind.
std::string piece(const std::string& text, const std::string& score, char kind = 0) {
  std::string body = "\x0a" + std::string(1, static_cast<char>(text.size())) + text + "\x15" + score;
  if (kind != 0) body += std::string("\x18") + kind;
  return "\x0a" + std::string(1, static_cast<char>(body.size())) + body;
}

const std::string kMinusTwo = std::string("\0\0\0\xc0", 4), kZero(4, '\0');

TEST(ParsePieces, ReadsTextScoreAndKind) {
  // Field 2, the trainer's settings, and a field with eight bytes are passed over.
  const std::string model = piece("<unk>", kZero, 2) +
                            std::string(
                                "\x12\x03"
                                "abc") +
                            piece("\xe2\x96\x81t", kMinusTwo) + std::string("\x19") + std::string(8, 'x');
  const auto pieces = parse_pieces(model);
  ASSERT_TRUE(pieces);
  ASSERT_EQ(pieces->size(), 2U);
  EXPECT_EQ((*pieces)[0].text, "<unk>");
  EXPECT_EQ((*pieces)[0].kind, 2);
  EXPECT_EQ((*pieces)[1].text, "\xe2\x96\x81t");
  EXPECT_EQ((*pieces)[1].score, -2);
  EXPECT_EQ((*pieces)[1].kind, 1);
}

TEST(ParsePieces, RefusesWhatEndsTooEarly) {
  const std::string model = piece("ab", kMinusTwo, 3);
  EXPECT_TRUE(parse_pieces(model));
  for (size_t size = 0; size < model.size(); ++size)
    EXPECT_FALSE(parse_pieces(model.substr(0, size))) << size;
  EXPECT_FALSE(parse_pieces(std::string(20, '\xff')));
}

}  // namespace
}  // namespace plimsoll::gguf
