// What masking is told of a vocabulary: which ids go on with a word, which are special, which one masks.
#include "preprocessing/token_kinds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "corpora/tiny_tokenizer.h"
#include "io/temporary_folder.h"
#include "settings/settings.h"

namespace plimsoll::preprocessing {
namespace {

using datasets::TokenKinds;
using testing::HasSubstr;

class TokenKindsTest : public testing::Test {
 protected:
  [[nodiscard]] settings::RunConfig config(const std::vector<std::string>& overrides = {},
                                           const std::string& data = "a.npy") const {
    auto run = settings::parse_run_config(
        "task: masked_lm\nmodel: {config: {model_type: bert, vocab_size: 300, pad_token_id: 2, bos_token_id: "
        "null, cls_token_id: 7, sep_token_id: 299, eos_token_id: 9}, init: random}\ndata: {train: " +
            data + "}\n",
        "run.yaml", overrides);
    EXPECT_TRUE(run) << (run ? "" : run.error().message());
    return std::move(*run);
  }
  /// By a tokenizer of this document.
  [[nodiscard]] Result<TokenKinds> kinds_by(const std::string& tokenizer, int64_t vocab_size,
                                            const std::vector<std::string>& overrides = {}) const {
    folder_.write("tokenizer.json", tokenizer);
    const auto files = corpora::EncoderFiles::open(folder_.path());
    EXPECT_TRUE(files) << (files ? "" : files.error().message());
    return token_kinds(config(overrides), &*files, vocab_size);
  }
  /// The document of a tokenizer with these tokens by id; those in brackets are special.
  static std::string document(const char* type, const std::vector<std::string>& tokens) {
    std::string vocab, added;
    for (size_t id = 0; id < tokens.size(); ++id) {
      vocab += fmt::format("{}\"{}\": {}", id > 0 ? ", " : "", tokens[id], id);
      const bool special =
          (tokens[id].starts_with('[') || tokens[id].starts_with('<')) && tokens[id].size() > 1;
      if (special)
        added += fmt::format(R"({}{{"id": {}, "content": "{}", "single_word": false, "lstrip": false,
          "rstrip": false, "normalized": false, "special": true}})",
                             added.empty() ? "" : ", ", id, tokens[id]);
    }
    const bool word_piece = std::string(type) == "WordPiece";
    return R"({"version": "1.0", "added_tokens": [)" + added + R"(], "model": {"type": ")" + type + "\", " +
           (word_piece ? R"("unk_token": "[UNK]", "continuing_subword_prefix": "##",
                            "max_input_chars_per_word": 100)"
                       : R"("unk_token": "<unk>", "merges": [])") +
           ", \"vocab\": {" + vocab + "}}}";
  }
  const io::TemporaryFolder folder_;
};

TEST_F(TokenKindsTest, WordPieceGoesOnWithItsPrefix) {
  const auto found = kinds_by(
      document("WordPiece", {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "ship", "##s", "#", "##", "a##"}),
      10);
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_EQ(found->mask_token, 4);
  EXPECT_EQ(found->kinds, "ssssswcwcw");
}

/// The multilingual vocabulary has "Ġ" and words that begin with it: a letter there, and no mark.
TEST_F(TokenKindsTest, ALetterOfAWordPieceVocabularyIsNoMark) {
  const auto found =
      kinds_by(document("WordPiece", {"[UNK]", "[MASK]", "Ġ", "Ġor", "##ġ", "ship", "##s", "sea"}), 8);
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_EQ(found->kinds, "sswwcwcw");
}

TEST_F(TokenKindsTest, MarkedVocabulariesGoOnWithoutTheMark) {
  // Byte-level: a space, which is the mark, and words that follow one; "##" is a token as others are.
  const auto bytes =
      kinds_by(document("BPE", {"<unk>", "<mask>", "Ġ", "Ġship", "s", "##", "##s", "Ġ##", "sea"}), 9);
  ASSERT_TRUE(bytes) << bytes.error().message();
  EXPECT_EQ(bytes->mask_token, 1);
  EXPECT_EQ(bytes->kinds, "sswwcccwc");
  const auto metaspace = kinds_by(document("BPE", {"<unk>", "▁", "▁ship", "s", "<mask>", "##s"}), 6);
  ASSERT_TRUE(metaspace) << metaspace.error().message();
  EXPECT_EQ(metaspace->mask_token, 4);
  EXPECT_EQ(metaspace->kinds, "swwcsc");
}

TEST_F(TokenKindsTest, TheMaskTokenIsTheFilesTheVocabularysOrTheRuns) {
  const std::string tokenizer = corpora::tiny_tokenizer_json();
  const auto none = kinds_by(tokenizer, 264);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kBadData);
  EXPECT_THAT(none.error().message(), HasSubstr("nothing says which token masks others"));
  EXPECT_THAT(none.error().hint, HasSubstr("mlm.mask_token"));
  const auto given = kinds_by(tokenizer, 264, {"mlm.mask_token=5"});
  ASSERT_TRUE(given) << given.error().message();
  EXPECT_EQ(given->mask_token, 5);
  EXPECT_EQ(given->of(5), TokenKinds::kSpecial);
  EXPECT_EQ(given->of(corpora::kTinyEnd), TokenKinds::kSpecial);
  EXPECT_EQ(given->of(260), TokenKinds::kWordStart) << "Ġw";
  EXPECT_EQ(given->of(256), TokenKinds::kContinues) << "he";
  folder_.write("tokenizer_config.json", R"({"mask_token": "<|im_start|>"})");
  const auto configured = kinds_by(tokenizer, 264);
  ASSERT_TRUE(configured) << configured.error().message();
  EXPECT_EQ(configured->mask_token, 262);
  EXPECT_EQ(kinds_by(tokenizer, 264, {"mlm.mask_token=263"})->mask_token, 263) << "the run's comes first";
}

/// A token of a few words' text that is not special, named as the one that masks.
TEST_F(TokenKindsTest, TheMaskTokenIsSpecialWhateverItIs) {
  folder_.write("tokenizer_config.json", R"({"mask_token": "ship"})");
  const auto found = kinds_by(document("WordPiece", {"[UNK]", "ship", "sea", "##s"}), 4);
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_EQ(found->mask_token, 1);
  EXPECT_EQ(found->kinds, "sswc");
}

TEST_F(TokenKindsTest, IdsThatNoTokenHasAreSpecial) {
  const std::string holes = R"({"version": "1.0", "added_tokens": [], "model": {"type": "WordPiece",
    "unk_token": "a", "continuing_subword_prefix": "##", "max_input_chars_per_word": 9,
    "vocab": {"a": 0, "b": 3, "[MASK]": 4}}})";
  const auto found = kinds_by(holes, 9);
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_EQ(found->kinds, "wssws");
  for (const int32_t beyond : {5, 8, 9, 1 << 20, -1})
    EXPECT_EQ(found->of(beyond), TokenKinds::kSpecial) << beyond;
}

TEST_F(TokenKindsTest, AModelWithFewerRowsHasFewerKinds) {
  const std::string tokenizer = document("WordPiece", {"[UNK]", "[MASK]", "ship", "##s", "sea", "sail"});
  const auto found = kinds_by(tokenizer, 4);
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_EQ(found->kinds, "sswc") << "nothing behind the model's rows is drawn";
}

/// Nothing would be read from the table of words but what lies behind it.
TEST_F(TokenKindsTest, AMaskTokenThatTheModelDoesNotHaveIsRefused) {
  const auto given = token_kinds(config({"mlm.mask_token=300"}), nullptr, 300);
  ASSERT_FALSE(given);
  EXPECT_EQ(given.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(given.error().message(), HasSubstr("mlm.mask_token is 300, and the model has 300 tokens"));
  EXPECT_TRUE(token_kinds(config({"mlm.mask_token=299"}), nullptr, 300));
  const auto of_files = kinds_by(document("WordPiece", {"[UNK]", "ship", "##s", "[MASK]"}), 3);
  ASSERT_FALSE(of_files) << "the tokenizer's is id 3";
  EXPECT_THAT(of_files.error().message(), HasSubstr("mask"));
}

TEST_F(TokenKindsTest, IdsWithoutATokenizerHaveTheModelsSpecials) {
  const auto none = token_kinds(config(), nullptr, 300);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(none.error().message(), HasSubstr("without a tokenizer nothing says which token masks others"));
  EXPECT_THAT(none.error().hint, HasSubstr("data.tokenizer"));
  const auto found = token_kinds(config({"mlm.mask_token=4"}), nullptr, 300);
  ASSERT_TRUE(found) << found.error().message();
  ASSERT_EQ(found->kinds.size(), 300U);
  for (int32_t id = 0; id < 300; ++id) {
    const bool special = id == 2 || id == 4 || id == 7 || id == 9 || id == 299;
    EXPECT_EQ(found->of(id), special ? TokenKinds::kSpecial : TokenKinds::kWordStart) << id;
  }
}

TEST_F(TokenKindsTest, OfTextsAsBytesTheBytesAreWords) {
  const std::string text = folder_.write("a.txt", "a text");
  const auto found = token_kinds(config({"mlm.mask_token=258"}, text), nullptr, 300);
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_EQ(found->mask_token, 258);
  EXPECT_EQ(found->kinds, std::string(256, TokenKinds::kWordStart)) << "a byte may be any id, a pad's too";
  EXPECT_EQ(found->of(258), TokenKinds::kSpecial);
  EXPECT_EQ(token_kinds(config({"mlm.mask_token=0"}, text), nullptr, 300)->of(0), TokenKinds::kSpecial);
}

/// Only what is evaluated is there: an evaluation draws no token that the data cannot have either.
TEST_F(TokenKindsTest, OfAnEvaluationsTextsAsBytesTheBytesAreWords) {
  const std::string text = folder_.write("a.txt", "a text");
  settings::RunConfig run = config({"mlm.mask_token=258", "data.eval=" + text});
  run.data.train.clear();
  const auto found = token_kinds(run, nullptr, 300);
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_EQ(found->kinds.size(), 256U);
}

}  // namespace
}  // namespace plimsoll::preprocessing
