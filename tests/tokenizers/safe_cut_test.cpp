// A text cut where last_safe_cut says has, piece by piece, the ids of the whole, whatever comes behind.
#include <gmock/gmock.h>

#include <random>

#include "tokenizers/recorded.h"

namespace plimsoll::tokenizers {
namespace {

class SafeCut : public RecordedTest {
 protected:
  std::vector<int32_t> encode_cut(const std::string& text, const std::vector<size_t>& cuts) const {
    std::vector<int32_t> ids;
    size_t begin = 0;
    for (const size_t end : cuts) {
      EXPECT_TRUE(tokenizer_->encode_piece(text.substr(begin, end - begin), begin == 0, end == text.size(),
                                           true, ids));
      begin = end;
    }
    return ids;
  }
  /// As a reader goes through a text: it asks when it has read a little, and reads on where there is no cut.
  std::vector<size_t> cuts_of(const std::string& text, std::mt19937& random) const {
    std::vector<size_t> cuts;
    size_t begin = 0;
    for (size_t end = 0; end < text.size();) {
      end = std::min(text.size(), end + 1 + random() % 60);
      const size_t cut = tokenizer_->last_safe_cut(std::string_view(text).substr(begin, end - begin));
      EXPECT_LT(cut, end - begin);
      if (cut == 0) continue;
      begin += cut;
      cuts.push_back(begin);
    }
    cuts.push_back(text.size());
    return cuts;
  }
};

/// The cases' texts, pieces of them and what goes wrong at a cut, in any order.
std::string random_text(const std::vector<io::Tree>& cases, std::mt19937& random) {
  static const std::vector<std::string> kOdd = {" ",
                                                "  ",
                                                "\n",
                                                "'",
                                                "'l",
                                                "l",
                                                "'s",
                                                "e",
                                                "\xCC\x81",
                                                "1",
                                                "12",
                                                ",",
                                                "ab",
                                                "A",
                                                "\xE4\xBD\xA0",
                                                "\xE1\x84\x80",
                                                "\xE1\x85\xA1",
                                                "\xE2\x96\x81",
                                                "\xC5\xBF",
                                                "\xF0\x9F",
                                                "\x98\x80",
                                                "<|end|>",
                                                "<r>",
                                                "[MASK]",
                                                "<b>",
                                                "word",
                                                "solo",
                                                "Norm",
                                                "\n\n",
                                                "/",
                                                "\t",
                                                ".",
                                                "!!",
                                                "\xE3\x80\x82"};
  std::string text;
  const size_t num_parts = 1 + random() % 12;
  for (size_t i = 0; i < num_parts; ++i) {
    if (random() % 3 != 0) {
      text += kOdd[random() % kOdd.size()];
      continue;
    }
    const std::string part = bytes_of(cases[random() % cases.size()]);
    const size_t begin = part.empty() ? 0 : random() % part.size();
    text += part.substr(begin, random() % 40);
  }
  return text;
}

TEST_P(SafeCut, PiecesHaveTheIdsOfTheWhole) {
  std::mt19937 random(3);
  size_t num_cuts = 0;
  for (int round = 0; round < 1500; ++round) {
    const std::string text = random_text(cases(), random);
    const std::vector<size_t> cuts = cuts_of(text, random);
    num_cuts += cuts.size() - 1;
    ASSERT_EQ(encode_cut(text, cuts), encode(text, true))
        << testing::PrintToString(text) << " at " << testing::PrintToString(cuts);
  }
  EXPECT_GT(num_cuts, 500u);
}

TEST_P(SafeCut, IsNearTheEndOfProse) {
  const std::string text = "The ship's line, said 12 of them, is no more than a mark.\nIt holds (mostly). ";
  std::string whole;
  while (whole.size() < 3000) whole += text;
  EXPECT_GT(tokenizer_->last_safe_cut(whole), whole.size() - 100);
  EXPECT_EQ(tokenizer_->last_safe_cut(""), 0u);
  EXPECT_EQ(tokenizer_->last_safe_cut("a"), 0u);
}

INSTANTIATE_TEST_SUITE_P(Kinds, SafeCut, testing::ValuesIn(recorded_files()), recorded_name);

}  // namespace
}  // namespace plimsoll::tokenizers
