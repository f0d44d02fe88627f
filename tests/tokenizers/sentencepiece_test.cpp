#include "tokenizers/sentencepiece.h"

#include <gtest/gtest.h>

namespace plimsoll::tokenizers {
namespace {

/// A piece with text, score and, where it is not the first kind, a kind.
std::string piece(const std::string& text, const std::string& score, char kind = 0) {
  std::string body = "\x0a" + std::string(1, static_cast<char>(text.size())) + text + "\x15" + score;
  if (kind != 0) body += std::string("\x18") + kind;
  return "\x0a" + std::string(1, static_cast<char>(body.size())) + body;
}

const std::string kMinusTwo = std::string("\0\0\0\xc0", 4), kZero(4, '\0');

TEST(ParsePieces, ReadsTextScoreAndKind) {
  // A field 9 of three bytes, and one with eight, are passed over.
  const std::string model = piece("<unk>", kZero, 2) +
                            std::string(
                                "\x4a\x03"
                                "abc") +
                            piece("\xe2\x96\x81t", kMinusTwo) + std::string("\x19") + std::string(8, 'x');
  const auto read = parse_sentencepiece(model);
  ASSERT_TRUE(read);
  const auto* pieces = &read->pieces;
  ASSERT_EQ(pieces->size(), 2U);
  EXPECT_EQ((*pieces)[0].text, "<unk>");
  EXPECT_EQ((*pieces)[0].kind, 2);
  EXPECT_EQ((*pieces)[1].text, "\xe2\x96\x81t");
  EXPECT_EQ((*pieces)[1].score, -2);
  EXPECT_EQ((*pieces)[1].kind, 1);
}

TEST(ParsePieces, ReadsHowItWasTrainedAndHowTextIsNormalized) {
  const std::string plain = piece("a", kZero);
  const auto usual = parse_sentencepiece(plain);
  ASSERT_TRUE(usual);
  EXPECT_EQ(usual->model_type, 1);
  EXPECT_FALSE(usual->byte_fallback);
  EXPECT_TRUE(usual->adds_dummy_prefix && usual->removes_extra_whitespaces);
  const std::string trainer = std::string("\x12\x05\x18\x02\x98\x02\x01", 7),
                    normalizer = std::string("\x1a\x07\x12\x01x\x18\0\x20\0", 9);
  const auto other = parse_sentencepiece(plain + trainer + normalizer);
  ASSERT_TRUE(other);
  EXPECT_EQ(other->model_type, 2);
  EXPECT_TRUE(other->byte_fallback);
  EXPECT_FALSE(other->charsmap.empty());
  EXPECT_FALSE(other->adds_dummy_prefix || other->removes_extra_whitespaces);
}

TEST(ParsePieces, RefusesWhatEndsTooEarly) {
  const std::string model = piece("ab", kMinusTwo, 3);
  EXPECT_TRUE(parse_sentencepiece(model));
  for (size_t size = 0; size < model.size(); ++size)
    EXPECT_FALSE(parse_sentencepiece(model.substr(0, size))) << size;
  EXPECT_FALSE(parse_sentencepiece(std::string(20, '\xff')));
}

}  // namespace
}  // namespace plimsoll::tokenizers
