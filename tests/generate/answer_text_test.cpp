// Stop texts: found wherever pieces break, never printed, and nothing else is held back longer than needed.
#include "generate/answer_text.h"

#include <gtest/gtest.h>

#include <random>

#include "io/temporary_folder.h"

namespace plimsoll::generate {
namespace {

using Texts = std::vector<std::string>;

/// All that comes out, piece by piece, the last one at the end.
Texts pushed(const Texts& stops, const Texts& pieces) {
  StopTexts matcher(stops);
  Texts out;
  for (const std::string& piece : pieces) out.push_back(matcher.push(piece));
  out.push_back(matcher.finish());
  return out;
}

TEST(StopTexts, AreFoundAcrossPieces) {
  EXPECT_EQ(pushed({"END"}, {"one", " E", "N", "D two", "x"}), (Texts{"one", " ", "", "", "", ""}));
  EXPECT_EQ(pushed({"END"}, {"one EN", "ough"}), (Texts{"one ", "ENough", ""}));
  EXPECT_EQ(pushed({"END"}, {"EN"}), (Texts{"", "EN"}));
  EXPECT_EQ(pushed({"aab"}, {"aa", "ab"}), (Texts{"", "a", ""}));
  EXPECT_EQ(pushed({}, {"one", "two"}), (Texts{"one", "two", ""}));
}

TEST(StopTexts, TheFirstOneInTheTextCounts) {
  EXPECT_EQ(pushed({"two", "one"}, {"zero one two"}), (Texts{"zero ", ""}));
  EXPECT_EQ(pushed({"\n\n", "."}, {"a\n", "\nb."}), (Texts{"a", "", ""}));
}

/// Whatever the pieces: all before the first stop text, or all.
TEST(StopTexts, DoNotDependOnThePieces) {
  std::mt19937 random(3);
  for (int round = 0; round < 500; ++round) {
    std::string text;
    for (int i = 0; i < 40; ++i) text += static_cast<char>('a' + random() % 3);
    const Texts stops{"abca", "bb", "cacac"};
    size_t end = text.size();
    for (const std::string& stop : stops) end = std::min(end, text.find(stop));
    Texts pieces;
    for (size_t at = 0; at < text.size();) {
      const size_t size = 1 + random() % 5;
      pieces.push_back(text.substr(at, size));
      at += size;
    }
    std::string whole;
    for (const std::string& piece : pushed(stops, pieces)) whole += piece;
    EXPECT_EQ(whole, text.substr(0, end));
  }
}

TEST(AnswerText, StopsWithinCharactersOfSeveralBytes) {
  const io::TemporaryFolder folder;
  const auto codec = TextCodec::open(folder.path(), 300);
  ASSERT_TRUE(codec.ok());
  const Texts stops{"é!"};
  AnswerText answer(*codec, stops);
  std::string out;
  for (const char c : std::string("né ")) out += answer.push(static_cast<unsigned char>(c));
  EXPECT_EQ(out, "né ");
  EXPECT_FALSE(answer.stopped());
  for (const char c : std::string("é!?")) out += answer.push(static_cast<unsigned char>(c));
  EXPECT_TRUE(answer.stopped());
  EXPECT_EQ(out + answer.finish(), "né ");
  EXPECT_EQ(answer.text(), "né ");
}

}  // namespace
}  // namespace plimsoll::generate
