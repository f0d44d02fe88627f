#include "tokenizers/class_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/temporary_folder.h"
#include "tokenizers/tokenizer.h"

namespace plimsoll::tokenizers {
namespace {

using ::testing::ElementsAre;

constexpr const char* kByteLevel = R"({"version": "1.0", "pre_tokenizer": {"type": "ByteLevel",
  "add_prefix_space": false, "use_regex": true}, "decoder": {"type": "ByteLevel"},
  "added_tokens": [{"id": 6, "content": "<s>", "special": true, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false}, {"id": 7, "content": "<|endoftext|>", "special": true, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false}],
  "post_processor": {"type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}], "pair": [],
    "special_tokens": {"<s>": {"id": "<s>", "ids": [6], "tokens": ["<s>"]}}},
  "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "Ġ": 2, "ab": 3, "1": 4, "11": 5}, "merges": ["a b", "1 1"]}})";

std::vector<int32_t> ids_of_text(const io::TemporaryFolder& folder, std::string_view text) {
  const auto tokenizer = Tokenizer::open(folder.path());
  EXPECT_TRUE(tokenizer) << tokenizer.error().message();
  std::vector<int32_t> ids;
  if (!tokenizer) return ids;
  EXPECT_TRUE((*tokenizer)->encode(text, true, ids));
  return ids;
}

TEST(ClassParts, Qwen2sFoldersAreCutByQwen2sPattern) {
  const io::TemporaryFolder folder;
  folder.write("tokenizer.json", kByteLevel);
  EXPECT_THAT(ids_of_text(folder, "11"), ElementsAre(6, 5)) << "the file's own pattern keeps digits together";
  folder.write("config.json", R"({"model_type": "qwen2"})");
  folder.write("tokenizer_config.json", R"({"tokenizer_class": "LlamaTokenizerFast"})");
  EXPECT_THAT(ids_of_text(folder, "11"), ElementsAre(6, 4, 4)) << "each digit is a word";
  folder.write("config.json", R"({"model_type": "llama"})");
  EXPECT_THAT(ids_of_text(folder, "11"), ElementsAre(6, 5))
      << "LlamaTokenizer leaves byte-level files as they are";
}

TEST(ClassParts, ATextsEndsAreTheFiles) {
  const io::TemporaryFolder folder;
  folder.write("tokenizer.json", kByteLevel);
  folder.write("tokenizer_config.json", R"({"tokenizer_class": "GPT2Tokenizer", "bos_token": "<s>",
    "eos_token": "<|endoftext|>", "add_bos_token": false, "add_eos_token": true})");
  EXPECT_THAT(ids_of_text(folder, "ab"), ElementsAre(6, 3));
}

TEST(ClassParts, LlamasBlankStandsBeforeTheFirstWordAlone) {
  const io::TemporaryFolder folder;
  folder.write("tokenizer.json", R"({"version": "1.0", "normalizer": {"type": "Sequence", "normalizers": [
    {"type": "Prepend", "prepend": "▁"}, {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]},
    "added_tokens": [{"id": 1, "content": "<s>", "special": true, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false}, {"id": 2, "content": "</s>", "special": true, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false}],
    "model": {"type": "BPE", "unk_token": "<unk>", "vocab": {"<unk>": 0, "<s>": 1, "</s>": 2, "a": 3, "▁": 4, "▁a": 5},
      "merges": ["▁ a"]}})");
  EXPECT_THAT(ids_of_text(folder, "a</s>a"), ElementsAre(5, 2, 5));
  folder.write("tokenizer_config.json", R"({"tokenizer_class": "LlamaTokenizerFast", "legacy": false})");
  EXPECT_THAT(ids_of_text(folder, "a</s>a"), ElementsAre(5, 2, 3));
}

TEST(ClassParts, BertsCaseIsTheConfigurations) {
  const io::TemporaryFolder folder;
  folder.write("tokenizer.json",
               R"({"version": "1.0", "normalizer": {"type": "BertNormalizer", "clean_text": true,
    "handle_chinese_chars": true, "strip_accents": null, "lowercase": false},
    "pre_tokenizer": {"type": "BertPreTokenizer"},
    "model": {"type": "WordPiece", "unk_token": "?", "continuing_subword_prefix": "##",
      "max_input_chars_per_word": 2, "vocab": {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "abc": 3, "Abc": 4, "?": 5}}})");
  EXPECT_THAT(ids_of_text(folder, "Abc"), ElementsAre(5)) << "without a class the file says all";
  folder.write("config.json", R"({"model_type": "bert"})");
  EXPECT_THAT(ids_of_text(folder, "Abc x"), ElementsAre(1, 3, 0, 2)) << "as transformers' BertTokenizer";
  folder.write("tokenizer_config.json", R"({"tokenizer_class": "BertTokenizer", "do_lower_case": false})");
  EXPECT_THAT(ids_of_text(folder, "Abc"), ElementsAre(1, 4, 2));
}

}  // namespace
}  // namespace plimsoll::tokenizers
