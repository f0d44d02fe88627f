// Folders without a tokenizer.json, by hand; tests/interop/tokenizer_folders_compare.py holds random ones
// against transformers' AutoTokenizer.
#include "tokenizers/older_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "io/temporary_folder.h"
#include "tokenizers/tokenizer.h"
#include "tokenizers/tokenizer_source.h"

namespace plimsoll::tokenizers {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<int32_t> ids_in(const io::TemporaryFolder& folder, std::string_view text, bool special = false) {
  const auto tokenizer = Tokenizer::open(folder.path());
  EXPECT_TRUE(tokenizer) << tokenizer.error().message();
  std::vector<int32_t> ids;
  if (!tokenizer) return ids;
  EXPECT_TRUE((*tokenizer)->encode(text, special, ids));
  return ids;
}

std::string refusal_of(const io::TemporaryFolder& folder) {
  const auto tokenizer = Tokenizer::open(folder.path());
  if (tokenizer) return "accepted";
  EXPECT_EQ(tokenizer.error().code, ErrorCode::kBadData);
  return tokenizer.error().message();
}

void write_vocab(const io::TemporaryFolder& folder) {
  folder.write("vocab.json", R"({"a": 0, "b": 1, "Ġ": 2, "ab": 3, "1": 4, "Ġab": 5})");
  folder.write("merges.txt", "#version: 0.2\na b\n\xC4\xA0 ab\r\n");
}

TEST(OlderFiles, VocabAndMergesAreGpt2s) {
  const io::TemporaryFolder folder;
  write_vocab(folder);
  folder.write("config.json", R"({"model_type": "gpt2"})");
  EXPECT_EQ(tokenizer_file(folder.path()), folder.path("vocab.json"));
  EXPECT_THAT(ids_in(folder, "ab ab11"), ElementsAre(3, 5, 4, 4));
  EXPECT_THAT(ids_in(folder, "a<|endoftext|>"), ElementsAre(0, 6)) << "the class's own special token";
  folder.write("tokenizer_config.json", R"({"add_prefix_space": true, "add_bos_token": true})");
  EXPECT_THAT(ids_in(folder, "ab", true), ElementsAre(6, 5));
}

TEST(OlderFiles, VocabAndMergesAreQwen2sByItsClass) {
  const io::TemporaryFolder folder;
  write_vocab(folder);
  folder.write("tokenizer_config.json", R"({"tokenizer_class": "Qwen2Tokenizer", "eos_token": "<e>"})");
  EXPECT_THAT(ids_in(folder, "<e><|endoftext|>"), ElementsAre(6, 7));
}

TEST(OlderFiles, VocabAndMergesNeedAClass) {
  const io::TemporaryFolder folder;
  write_vocab(folder);
  EXPECT_THAT(refusal_of(folder), HasSubstr("do not say how a text is cut into words"));
  folder.write("config.json", R"({"model_type": "gpt2"})");
  folder.write("merges.txt", "a b c\n");
  EXPECT_THAT(refusal_of(folder), HasSubstr("'a b c' is no merge"));
  folder.write("merges.txt", "a b\n");
  folder.write("vocab.json", "[1]");
  EXPECT_THAT(refusal_of(folder), HasSubstr("no map from tokens to ids"));
}

/// A field of a protocol buffer with a length.
std::string field(char number, const std::string& body) {
  std::string out(1, static_cast<char>(number << 3 | 2));
  size_t size = body.size();
  for (; size >= 0x80; size >>= 7) out += static_cast<char>((size & 0x7F) | 0x80);
  return out + static_cast<char>(size) + body;
}

std::string piece(const std::string& text, char kind) {
  return field(1, field(1, text) + "\x18" + std::string(1, kind));
}

/// <unk> <s> </s>, the 256 bytes from 3 on, then letters from 259 on, BPE with bytes to fall back on.
std::string sentencepiece_model(const std::string& trainer = std::string("\x18\x02\x98\x02\x01", 5)) {
  std::string model = piece("<unk>", 2) + piece("<s>", 3) + piece("</s>", 3);
  for (int byte = 0; byte < 256; ++byte) {
    std::array<char, 8> name = {};
    std::snprintf(name.data(), name.size(), "<0x%02X>", static_cast<unsigned>(byte));
    model += piece(name.data(), 6);
  }
  for (const char* text : {"\u2581a", "ab", "\u2581", "a", "b", "c"}) model += piece(text, 1);
  return model + field(2, trainer) + field(3, std::string("\x20\0", 2));
}

TEST(OlderFiles, TokenizerModelIsLlamas) {
  const io::TemporaryFolder folder;
  folder.write("tokenizer.model", sentencepiece_model());
  folder.write("tokenizer_config.json", R"({"tokenizer_class": "LlamaTokenizer", "add_bos_token": true})");
  EXPECT_THAT(ids_in(folder, "ab", true), ElementsAre(1, 259, 263)) << "the first merge is the first piece's";
  EXPECT_THAT(ids_in(folder, "cab z"), ElementsAre(261, 264, 260, 261, 3 + 'z'));
  EXPECT_THAT(ids_in(folder, "a</s>a"), ElementsAre(259, 2, 262)) << "a blank before the first word alone";
  const auto tokenizer = Tokenizer::open(folder.path());
  ASSERT_TRUE(tokenizer);
  EXPECT_EQ((*tokenizer)->decode(std::vector<int32_t>{1, 259, 263, 261, 264}, true), "ab c");
  folder.write("tokenizer_config.json", R"({"tokenizer_class": "LlamaTokenizer", "legacy": true})");
  EXPECT_THAT(ids_in(folder, "a</s>a"), ElementsAre(259, 2, 259));
  folder.write("tokenizer_config.json",
               R"({"tokenizer_class": "LlamaTokenizer", "add_prefix_space": false})");
  EXPECT_THAT(ids_in(folder, "ab"), ElementsAre(260));
}

TEST(OlderFiles, VocabTxtIsBerts) {
  const io::TemporaryFolder folder;
  folder.write("vocab.txt", "[PAD]\r\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n##b\n\u00e9\n\nA \t\na\u3000\ne");
  EXPECT_EQ(tokenizer_file(folder.path()), folder.path("vocab.txt"));
  EXPECT_THAT(refusal_of(folder), HasSubstr("vocab.txt does not say how a text is cut into words"));
  folder.write("config.json", R"({"model_type": "bert"})");
  EXPECT_THAT(ids_in(folder, "Ab \u00e9 [MASK] c", true), ElementsAre(2, 10, 6, 11, 4, 1, 3))
      << "of a token on two lines the last one counts";
  folder.write("tokenizer_config.json", R"({"tokenizer_class": "DistilBertTokenizerFast",
      "do_lower_case": false, "strip_accents": null})");
  EXPECT_THAT(ids_in(folder, "A \u00e9 a", true), ElementsAre(2, 9, 7, 10, 3));
  const auto tokenizer = Tokenizer::open(folder.path());
  ASSERT_TRUE(tokenizer);
  std::vector<int32_t> ids, types;
  ASSERT_TRUE((*tokenizer)->encode_pair("a", "A", true, ids, &types));
  EXPECT_THAT(ids, ElementsAre(2, 10, 3, 9, 3));
  EXPECT_THAT(types, ElementsAre(0, 0, 0, 1, 1));
  folder.write("tokenizer_config.json", R"({"tokenizer_class": "BertTokenizer", "cls_token": "<c>"})");
  EXPECT_THAT(refusal_of(folder), HasSubstr("'<c>' gets the id 11, which is that of 'e'"))
      << "the package counts on from the number of tokens, and gives one id to both";
  folder.write("vocab.txt", "[UNK]\n[SEP]\na");
  EXPECT_THAT(ids_in(folder, "a", true), ElementsAre(4, 2, 1)) << "tokens that are not there are added";
  folder.write("vocab.txt", "[UNK]\n\xff\n");
  EXPECT_THAT(refusal_of(folder), HasSubstr("vocab.txt: line 2"));
}

TEST(OlderFiles, RefusesOtherModelsByName) {
  const io::TemporaryFolder folder;
  folder.write("tokenizer.model", "\n\x0e");
  EXPECT_THAT(refusal_of(folder), HasSubstr("no sentencepiece model"));
  folder.write("tokenizer.model", sentencepiece_model(std::string("\x98\x02\x01", 3)));
  EXPECT_THAT(refusal_of(folder), HasSubstr("is Unigram, and its pieces alone do not say their ids"));
  folder.write("tokenizer.model", sentencepiece_model(std::string("\x18\x02", 2)));
  EXPECT_THAT(refusal_of(folder), HasSubstr("no bytes to fall back on"));
  const std::string whole = sentencepiece_model();
  folder.write("tokenizer.model", whole + field(3, ""));
  EXPECT_EQ(ids_in(folder, "b").size(), 2U);
  folder.write("tokenizer.model", whole + piece(std::string(300, 'a'), 1));
  EXPECT_THAT(refusal_of(folder), HasSubstr("too long"));
}

}  // namespace
}  // namespace plimsoll::tokenizers
