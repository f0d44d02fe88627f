// Folders of the classes over Unigram; tests/interop/tokenizer_folders_compare.py holds them against
// transformers.
#include "tokenizers/unigram_classes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <limits>

#include "io/temporary_folder.h"
#include "tokenizers/tokenizer.h"

namespace plimsoll::tokenizers {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// A field of a protocol buffer with a length.
std::string field(char number, const std::string& body) {
  std::string out(1, static_cast<char>(number << 3 | 2));
  size_t size = body.size();
  for (; size >= 0x80; size >>= 7) out += static_cast<char>((size & 0x7F) | 0x80);
  return out + static_cast<char>(size) + body;
}

std::string piece(const std::string& text, char kind, float score = 0) {
  const auto bits = std::bit_cast<uint32_t>(score);
  std::string number;
  for (int shift = 0; shift < 32; shift += 8)
    number += static_cast<char>(static_cast<unsigned char>(bits >> shift & 0xFF));
  return field(1, field(1, text) + "\x15" + number + "\x18" + std::string(1, kind));
}

/// Special pieces, then "▁a" "b" "▁" "a" from 3 on.
std::string unigram_model(const std::string& special) {
  return special + piece("\u2581a", 1, -1) + piece("b", 1, -2) + piece("\u2581", 1, -3) +
         piece("a", 1, -3.5f) + field(2, std::string("\x18\x01", 2));
}
const std::string kFairseq = piece("<unk>", 2) + piece("<s>", 3) + piece("</s>", 3);
const std::string kT5 = piece("<pad>", 3) + piece("</s>", 3) + piece("<unk>", 2);

std::vector<int32_t> ids_in(const io::TemporaryFolder& folder, std::string_view text) {
  const auto tokenizer = Tokenizer::open(folder.path());
  EXPECT_TRUE(tokenizer) << tokenizer.error().message();
  std::vector<int32_t> ids;
  if (!tokenizer) return ids;
  EXPECT_TRUE((*tokenizer)->encode(text, true, ids));
  return ids;
}

std::string refusal_of(const io::TemporaryFolder& folder) {
  const auto tokenizer = Tokenizer::open(folder.path());
  return tokenizer ? "accepted" : tokenizer.error().message();
}

void name_class(const io::TemporaryFolder& folder, const std::string& name, const std::string& more = "") {
  folder.write("tokenizer_config.json", R"({"tokenizer_class": ")" + name + "\"" + more + "}");
}

// By transformers (5.23).
TEST(UnigramClasses, XlmRobertaMovesItsPiecesByOne) {
  const io::TemporaryFolder folder;
  folder.write("sentencepiece.bpe.model", unigram_model(kFairseq));
  folder.write("config.json", R"({"model_type": "xlm-roberta"})");
  EXPECT_THAT(ids_in(folder, "ab  a\tz"), ElementsAre(0, 4, 5, 4, 6, 3, 2));
  EXPECT_THAT(ids_in(folder, "a<mask>a</s>"), ElementsAre(0, 4, 8, 4, 2, 2));
  const auto tokenizer = Tokenizer::open(folder.path());
  ASSERT_TRUE(tokenizer);
  std::vector<int32_t> ids, types;
  ASSERT_TRUE((*tokenizer)->encode_pair("a", "b", true, ids, &types));
  EXPECT_THAT(ids, ElementsAre(0, 4, 2, 2, 6, 5, 2));
  EXPECT_THAT(types, testing::Each(0));
  EXPECT_EQ((*tokenizer)->vocab_size(), 9);
  EXPECT_EQ((*tokenizer)->decode(std::vector<int32_t>{0, 4, 5, 4, 2}, true), "ab a");
  name_class(folder, "XLMRobertaTokenizerFast", R"(, "add_prefix_space": false)");
  EXPECT_THAT(ids_in(folder, "ab"), ElementsAre(0, 7, 5, 2));
}

TEST(UnigramClasses, CamembertKeepsItsOwnOrder) {
  const io::TemporaryFolder folder;
  folder.write("sentencepiece.bpe.model", unigram_model(kFairseq));
  name_class(folder, "CamembertTokenizer");
  EXPECT_THAT(ids_in(folder, "ab z <mask>"), ElementsAre(5, 7, 8, 9, 3, 11, 6))
      << "the mask takes the blank before it";
}

TEST(UnigramClasses, T5HasSentinels) {
  const io::TemporaryFolder folder;
  folder.write("spiece.model", unigram_model(kT5));
  name_class(folder, "T5Tokenizer");
  EXPECT_THAT(ids_in(folder, "ab<extra_id_0>b<extra_id_99>"), ElementsAre(3, 4, 106, 5, 4, 7, 1));
  name_class(folder, "T5Tokenizer", R"(, "extra_ids": 2)");
  EXPECT_THAT(ids_in(folder, "a<extra_id_1>z"), ElementsAre(3, 7, 5, 2, 1));
}

TEST(UnigramClasses, AlbertLowersAndStripsAccents) {
  const io::TemporaryFolder folder;
  folder.write("spiece.model", unigram_model(piece("<pad>", 3) + piece("<unk>", 2) + piece("[CLS]", 3)) +
                                   piece("[SEP]", 3) + piece("[MASK]", 3) + piece("\"", 1, -4));
  name_class(folder, "AlbertTokenizer");
  EXPECT_THAT(ids_in(folder, "\u00c1B ``"), ElementsAre(2, 3, 4, 5, 9, 7));
  name_class(folder, "AlbertTokenizer", R"(, "do_lower_case": false, "keep_accents": true)");
  EXPECT_THAT(ids_in(folder, "\u00e1b"), ElementsAre(2, 5, 1, 4, 7));
}

TEST(UnigramClasses, RebuildTheirPartsOfATokenizerJson) {
  const io::TemporaryFolder folder;
  folder.write("tokenizer.json", R"({"version": "1.0", "normalizer": {"type": "Lowercase"},
    "model": {"type": "Unigram", "unk_id": 0, "vocab": [["<s>", 0], ["<pad>", 0], ["</s>", 0], ["<unk>", 0],
      ["\u2581a", -1.0], ["a", -2.0], ["<mask>", 0]]}})");
  EXPECT_THAT(ids_in(folder, "A a"), ElementsAre(5, 0, 5)) << "as the file says";
  name_class(folder, "XLMRobertaTokenizer");
  EXPECT_THAT(ids_in(folder, "A a"), ElementsAre(0, 3, 4, 2)) << "no lower case, a blank before each word";
  folder.write("config.json", R"({"model_type": "umt5"})");
  EXPECT_THAT(ids_in(folder, "a a"), ElementsAre(5, 0, 5)) << "a family that is opened by its files";
}

TEST(UnigramClasses, RefuseWhatTheyCannotRead) {
  const io::TemporaryFolder folder;
  folder.write("spiece.model", unigram_model(kT5));
  EXPECT_THAT(refusal_of(folder), HasSubstr("the sentencepiece model is Unigram"));
  name_class(folder, "PegasusTokenizer");
  EXPECT_THAT(refusal_of(folder), HasSubstr("spiece.model"));
  name_class(folder, "T5Tokenizer");
  for (const float score :
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    folder.write("spiece.model", unigram_model(kT5 + piece("c", 1, score)));
    EXPECT_THAT(refusal_of(folder), HasSubstr("piece 3 has a score that is no finite number"));
  }
  folder.write("spiece.model", unigram_model(kT5) + field(3, field(2, "abcdefgh")));
  EXPECT_THAT(refusal_of(folder), HasSubstr("normalizer.precompiled_charsmap has 8 bytes"));
  folder.write("spiece.model", unigram_model(kT5) + field(2, std::string("\x18\x02", 2)));
  EXPECT_THAT(refusal_of(folder), HasSubstr("is no Unigram"));
}

}  // namespace
}  // namespace plimsoll::tokenizers
