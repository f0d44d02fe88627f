// The interface of a tokenizer, long inputs, and broken files.
#include "tokenizers/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "io/temporary_folder.h"
#include "tokenizers/small_tokenizer.h"

namespace plimsoll::tokenizers {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Tokenizer, MergesByRankThenFromTheLeft) {
  const auto tokenizer = tokenizer_of(tokenizer_json({{"model", kGpt2Model}}));
  EXPECT_THAT(encode(*tokenizer, "abc"), ElementsAre(6));  // b c first, then a bc
  EXPECT_THAT(encode(*tokenizer, "abab"), ElementsAre(4, 4));
  EXPECT_THAT(encode(*tokenizer, "aaaaaaa"), ElementsAre(9, 8, 0));
  EXPECT_THAT(encode(*tokenizer, "axb"), ElementsAre(4));  // the package drops what has no token
}

TEST(Tokenizer, OpensAFileOrItsDirectory) {
  const io::TemporaryFolder folder;
  const std::string file =
      folder.write("tokenizer.json", tokenizer_json({{"model", kGpt2Model}, {"added_tokens", kAdded}}));
  for (const std::string& path : {file, std::filesystem::path(file).parent_path().string()}) {
    const auto tokenizer = Tokenizer::open(path);
    ASSERT_TRUE(tokenizer) << tokenizer.error().message();
    EXPECT_EQ((*tokenizer)->vocab_size(), 11);
  }
  EXPECT_EQ(Tokenizer::open(folder.write("empty.json", "")).error().code, ErrorCode::kBadData);
  EXPECT_EQ(Tokenizer::open(file + ".absent").error().code, ErrorCode::kBadData);
}

/// A vocabulary of letters and added tokens with rules: "lr" strips on both sides.
std::string with_blank_tokens(const std::vector<std::pair<std::string, std::string>>& tokens) {
  std::string list;
  int id = 10;
  for (const auto& [content, rules] : tokens) {
    const auto rule = [&rules = rules](char c) { return rules.find(c) != rules.npos ? "true" : "false"; };
    list += (list.empty() ? "" : ", ") + std::string(R"({"id": )") + std::to_string(id++) +
            R"(, "content": ")" + content + R"(", "single_word": false, "lstrip": )" + rule('l') +
            R"(, "rstrip": )" + rule('r') + R"(, "normalized": false, "special": false})";
  }
  return tokenizer_json({{"model", kGpt2Model}, {"added_tokens", "[" + list + "]"}});
}

// By the tokenizers package (0.23.3).
TEST(Tokenizer, TokensOfBlanksThatStripAreOneForAllOfThem) {
  const auto both = tokenizer_of(with_blank_tokens({{" ", "lr"}}));
  EXPECT_THAT(encode(*both, "a  b"), ElementsAre(0, 7, 1));
  EXPECT_THAT(encode(*both, "a   b c "), ElementsAre(0, 7, 1, 7, 2, 7));
  const auto pair = tokenizer_of(with_blank_tokens({{"X", "r"}, {" b", "l"}}));
  EXPECT_THAT(encode(*pair, "aX   b"), ElementsAre(0, 10, 11));
  EXPECT_THAT(encode(*pair, "a  b"), ElementsAre(0, 11));
  const auto plain = tokenizer_of(with_blank_tokens({{"X", "r"}, {" ", ""}}));
  EXPECT_THAT(encode(*plain, "aX  b"), ElementsAre(0, 10, 7, 7, 1)) << "without a strip of its own it stays";
}

TEST(Tokenizer, KnowsItsTokens) {
  const auto tokenizer = tokenizer_of(tokenizer_json({{"model", kGpt2Model}, {"added_tokens", kAdded}}));
  EXPECT_EQ(tokenizer->id_of("abc"), 6);
  EXPECT_EQ(tokenizer->id_of("<s>"), 10);
  EXPECT_EQ(tokenizer->id_of("x"), std::nullopt);
  EXPECT_EQ(tokenizer->token(5), "bc");
  EXPECT_EQ(tokenizer->token(10), "<s>");
  for (const int32_t id : {-1, 11, INT32_MAX, INT32_MIN}) {
    EXPECT_EQ(tokenizer->token(id), "");
    EXPECT_FALSE(tokenizer->is_special(id));
  }
  EXPECT_TRUE(tokenizer->is_special(10));
  EXPECT_FALSE(tokenizer->is_special(6));
  const std::vector<int32_t> ids = {-5, 6, 10, 99, 4};
  EXPECT_EQ(tokenizer->decode(ids, true), "abc ab");  // no decoder: joined by spaces
  EXPECT_EQ(tokenizer->decode(ids, false), "abc <s> ab");
}

TEST(Tokenizer, AddedTokensHaveThePackagesIds) {
  std::string added = kAdded;
  added.replace(added.find("10"), 2,
                "50");  // the package counts on from the model's vocabulary, and so do we
  const auto tokenizer = tokenizer_of(tokenizer_json({{"model", kGpt2Model}, {"added_tokens", added}}));
  EXPECT_EQ(tokenizer->id_of("<s>"), 10);
  EXPECT_EQ(tokenizer->vocab_size(), 11);
}

TEST(Tokenizer, AppendsAndLeavesTheRestAlone) {
  const auto tokenizer = tokenizer_of(tokenizer_json({{"model", kGpt2Model}, {"added_tokens", kAdded}}));
  std::vector<int32_t> ids = {77};
  ASSERT_TRUE(tokenizer->encode("ab<s>c", false, ids));
  EXPECT_THAT(ids, ElementsAre(77, 4, 10, 2));
}

TEST(Tokenizer, TheHashIsOfTheTokensAndTheMerges) {
  const auto hash = [](const std::string& vocab, const std::string& merges, const std::string& added = "[]") {
    return tokenizer_of(tokenizer_json({{"model", R"({"vocab": )" + vocab + R"(, "merges": )" + merges + "}"},
                                        {"added_tokens", added}}))
        ->vocabulary_hash();
  };
  const std::string vocab = R"({"a": 0, "b": 1, "ab": 2, "ba": 3})";
  const std::string merges = R"(["a b", "b a"])";
  const uint64_t plain = hash(vocab, merges);
  EXPECT_EQ(hash(R"({"ba": 3, "ab": 2, "b": 1, "a": 0})", R"([["a", "b"], ["b", "a"]])"), plain);
  EXPECT_NE(hash(R"({"a": 1, "b": 0, "ab": 2, "ba": 3})", merges), plain);
  EXPECT_NE(hash(R"({"a": 0, "b": 1, "ab": 2, "ba": 4})", merges), plain);
  EXPECT_NE(hash(vocab, R"(["b a", "a b"])"), plain);
  EXPECT_NE(hash(vocab, R"(["a b"])"), plain);
  std::string added = kAdded;
  added.replace(added.find("10"), 2, "4");
  const uint64_t with_special = hash(vocab, merges, added);
  EXPECT_NE(with_special, plain);
  added.replace(added.rfind("true"), 4, "false");
  EXPECT_NE(hash(vocab, merges, added), with_special);
}

TEST(Tokenizer, EndsOfWhatIsPutInAndWhatVanishes) {
  const auto ends = [](const std::string& json, std::string_view text) {
    std::vector<int32_t> ids;
    std::vector<size_t> found;
    EXPECT_TRUE(tokenizer_of(json)->encode_with_ends(text, true, ids, found));
    EXPECT_EQ(ids.size(), found.size());
    return found;
  };
  EXPECT_THAT(ends(tokenizer_json({{"model", kGpt2Model}}), "axxb c"),
              ElementsAre(4, 5, 6));  // ab, which x leaves
  const std::string around =
      R"({"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
          {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "<s>", "type_id": 0}}],
          "pair": [], "special_tokens": {"<s>": {"id": "<s>", "ids": [10], "tokens": ["<s>"]}}})";
  EXPECT_THAT(
      ends(tokenizer_json({{"model", kGpt2Model}, {"added_tokens", kAdded}, {"post_processor", around}}),
           "ab<s>c"),
      ElementsAre(0, 2, 5, 6, 6));
  const std::string unknown =
      R"("unk_token": "?", "fuse_unk": true, "vocab": {"a": 0, "?": 1}, "merges": [])";
  EXPECT_THAT(ends(with_model(unknown), "a\xFF\xC3\xA9za"), ElementsAre(1, 5, 6));
  EXPECT_THAT(ends(tokenizer_json({{"model", "{" + unknown + "}"}, {"normalizer", R"({"type": "Strip",
      "strip_left": true, "strip_right": true})"}}),
                   "  a a "),
              ElementsAre(3, 4, 5));
}

TEST(Tokenizer, NeedsItsUnknownTokenOnlyWhenItIsUsed) {
  const auto tokenizer = tokenizer_of(with_model(R"("unk_token": "<unk>", "vocab": {"a": 0}, "merges": [])"));
  std::vector<int32_t> ids = {5};
  EXPECT_TRUE(tokenizer->encode("aa", false, ids));
  const auto status = tokenizer->encode("ab", false, ids);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kBadData);
  EXPECT_THAT(status.error().message(), HasSubstr("unk_token '<unk>'"));
  EXPECT_THAT(ids, ElementsAre(5, 0, 0));
  EXPECT_TRUE(tokenizer->encode("a", false, ids));
}

TEST(Tokenizer, AddedTokensAreNoWordsOfTheModel) {
  const auto tokenizer = tokenizer_of(tokenizer_json(
      {{"model", R"({"vocab": {"a": 0, "b": 1, "_": 2, "ab": 3}, "merges": [], "ignore_merges": true})"},
       {"pre_tokenizer",
        R"({"type": "Split", "pattern": {"String": "_"}, "behavior": "Isolated", "invert": false})"},
       {"added_tokens", R"([{"id": 4, "content": "ba", "single_word": true, "lstrip": false, "rstrip": false,
          "normalized": false, "special": false}])"}}));
  EXPECT_THAT(encode(*tokenizer, "ab_ ba"),
              ElementsAre(3, 2, 4));  // "ab" has a token, though no merge makes it
  EXPECT_THAT(encode(*tokenizer, "ba_"),
              ElementsAre(1, 0, 2));  // no single word, and then none of the model's
}

TEST(Tokenizer, HolesInTheVocabularyAreLegitimate) {
  const auto tokenizer = tokenizer_of(with_model(R"("vocab": {"a": 0, "b": 9}, "merges": [])"));
  EXPECT_EQ(tokenizer->vocab_size(), 10);
  EXPECT_EQ(tokenizer->token(5), "");
  EXPECT_THAT(encode(*tokenizer, "ab"), ElementsAre(0, 9));
}

TEST(Tokenizer, LongRunsTakeTimeInProportion) {
  const auto tokenizer = tokenizer_of(tokenizer_json({{"model", kGpt2Model}}));
  const std::string letters(1 << 20, 'a');
  const std::string pairs = [] {
    std::string text;
    for (int i = 0; i < (1 << 18); ++i) text += "abca";
    return text;
  }();
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(encode(*tokenizer, letters), std::vector<int32_t>((1 << 20) / 4, 9));
  EXPECT_EQ(encode(*tokenizer, pairs).size(), 1u << 19);
  EXPECT_EQ(encode(*tokenizer, std::string(1 << 20, 'b')).size(), 1u << 20);
  // A quadratic loop would take minutes.
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST(DecodeStream, KeepsUnfinishedCharactersUntilTheEnd) {
  const auto tokenizer = tokenizer_of(tokenizer_json(
      {{"model", R"({"vocab": {"<0xE4>": 0, "<0xBD>": 1, "<0xA0>": 2, "a": 3}, "merges": []})"},
       {"decoder", R"({"type": "ByteFallback"})"}}));
  DecodeStream stream(*tokenizer, false);
  EXPECT_EQ(stream.push(3), "a");
  EXPECT_EQ(stream.push(0), "");
  EXPECT_EQ(stream.push(1), "");
  EXPECT_EQ(stream.push(2), "\xE4\xBD\xA0");
  EXPECT_EQ(stream.push(0), "");
  EXPECT_EQ(stream.finish(), "\xEF\xBF\xBD");
  EXPECT_EQ(stream.push(3), "a");
  EXPECT_EQ(stream.finish(), "");
}

TEST(BrokenTokenizer, IsRefusedWithTheFieldNamed) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "broken JSON"},
      {"[]", "expected a map"},
      {"{\"model\": ", "broken JSON"},
      {"{}", "model is missing"},
      {R"({"version": "2.0"})", "version is '2.0'"},
      {R"({"model": {"type": "WordPiece", "vocab": {"a": 0}}})", "model.unk_token is missing"},
      {R"({"model": {"type": "WordLevel", "vocab": {"a": 0}}})", "model.type is 'WordLevel'"},
      {R"({"model": {"vocab": {"a": 0}}})", "model.type is missing"},
      {with_model(R"("vocab": {"a": 0})"), "model.merges"},
      {with_model(R"("vocab": ["a"], "merges": [])"), "model.vocab"},
      {with_model(R"("vocab": {"a": "x"}, "merges": [])"), "model.vocab['a'] is a string"},
      {with_model(R"("vocab": {"a": 1.5}, "merges": [])"), "model.vocab['a'] is a fraction"},
      {with_model(R"("vocab": {"a": {"b": 1}}, "merges": [])"), "model.vocab['a'] is a map"},
      {with_model(R"("vocab": {"a": -1}, "merges": [])"), "model.vocab['a'] is -1"},
      {with_model(R"("vocab": {"a": 18446744073709551615}, "merges": [])"), "model.vocab['a']"},
      {with_model(R"("vocab": {"a": 4000000}, "merges": [])"), "model.vocab['a'] is 4000000"},
      {with_model(R"("vocab": {"a": 1, "b": 1}, "merges": [])"), "the id of 'a' as well"},
      {with_model(R"("vocab": {"a": 1, "a": 2}, "merges": [])"), "stands twice"},
      {with_model(R"("vocab": {"a": 0, "b": 1}, "merges": ["a c"])"), "model.merges[0] names 'c'"},
      {with_model(R"("vocab": {"a": 0, "b": 1}, "merges": ["a b"])"), "model.merges[0] names 'ab'"},
      {with_model(R"("vocab": {"a": 0, "": 1}, "merges": ["a "])"), "model.merges[0] has an empty token"},
      {with_model(R"("vocab": {"a": 0}, "merges": ["a"])"), "model.merges[0] is 'a'"},
      {with_model(R"("vocab": {"a": 0}, "merges": ["a a a"])"), "model.merges[0] is 'a a a'"},
      {with_model(R"("vocab": {"a": 0}, "merges": [["a"]])"), "model.merges[0] has 1 tokens"},
      {with_model(R"("vocab": {"a": 0}, "merges": [["a", 1]])"), "model.merges[0] holds a number"},
      {with_model(R"("vocab": {"a": 0}, "merges": [{"a": "a"}])"), "model.merges[0] holds a map"},
      {with_model(R"("vocab": {"a": 0}, "merges": [], "dropout": 0.1)"), "model.dropout is 0.1"},
      {with_model(R"("vocab": {"a": 0}, "merges": [], "end_of_word_suffix": "</w>")"),
       "model.end_of_word_suffix is '</w>'"},
      {with_model(R"("vocab": {"a": 0}, "merges": [], "continuing_subword_prefix": "##")"),
       "continuing_subword_prefix"},
      {with_model(R"("vocab": {"a": 0}, "merges": [], "fuse_unk": 1)"), "model.fuse_unk is 1"},
      {with_model(R"("vocab": {"a": 0}, "merges": [], "unk_token": 1)"), "model.unk_token"},
      {with("normalizer", R"({"type": "Nmu"})"), "normalizer.type is 'Nmu'"},
      {with("normalizer", R"({"type": "Precompiled"})"), "normalizer.precompiled_charsmap is missing"},
      {with("normalizer", R"({"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Nmu"}]})"),
       "normalizer.normalizers[1].type is 'Nmu'"},
      {with("normalizer", R"({"type": "Replace", "pattern": {"Regex": " +"}, "content": ""})"),
       "normalizer.pattern.Regex"},
      {with("normalizer", R"({"type": "Replace", "pattern": {"String": ""}, "content": ""})"),
       "normalizer.pattern.String is empty"},
      {with("normalizer", "7"), "normalizer is 7"},
      {with("pre_tokenizer", R"({"type": "Whitespace"})"), "pre_tokenizer.type is 'Whitespace'"},
      {with("normalizer", R"({"type": "BertNormalizer", "clean_text": true})"),
       "normalizer.handle_chinese_chars is missing"},
      {with("pre_tokenizer",
            R"({"type": "Split", "pattern": {"Regex": "\\d+"}, "behavior": "Isolated", "invert": false})"),
       "pre_tokenizer.pattern.Regex is no regular expression that is read: '\\d+'"},
      {with("pre_tokenizer",
            R"({"type": "Split", "pattern": {"String": "x"}, "behavior": "Sideways", "invert": false})"),
       "pre_tokenizer.behavior is \"Sideways\""},
      {with(
           "pre_tokenizer",
           R"({"type": "Sequence", "pretokenizers": [{"type": "ByteLevel", "add_prefix_space": false}, {"type": "Digits", "individual_digits": true}]})"),
       "pre_tokenizer.pretokenizers[1] stands after ByteLevel"},
      {with("pre_tokenizer", R"({"type": "Metaspace", "replacement": "ab"})"),
       "pre_tokenizer.replacement is \"ab\""},
      {with(
           "pre_tokenizer",
           R"({"type": "Metaspace", "replacement": "_", "prepend_scheme": "first", "add_prefix_space": false})"),
       "pre_tokenizer.add_prefix_space contradicts"},
      {with("decoder", R"({"type": "CTC"})"), "decoder.type is 'CTC'"},
      {with("decoder", R"({"type": "WordPiece"})"), "decoder.prefix is missing"},
      {with("decoder", R"({"type": "Strip", "content": " ", "start": -1, "stop": 0})"),
       "decoder.start is -1"},
      {with("post_processor", R"({"type": "X"})"), "post_processor.type is 'X'"},
      {with(
           "post_processor",
           R"({"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}], "pair": [], "special_tokens": {}})"),
       "post_processor.single[0].SpecialToken.id names '<s>'"},
      {with(
           "post_processor",
           R"({"type": "TemplateProcessing", "single": [{"Sequence": {"id": "B", "type_id": 0}}], "pair": [], "special_tokens": {}})"),
       "post_processor.single[0].Sequence.id"},
      {with("post_processor", R"({"type": "RobertaProcessing", "cls": ["<s>", 0], "sep": ["</s>", 99]})"),
       "post_processor adds the id 99"},
      {with("added_tokens", "{}"), "added_tokens is"},
      {with("added_tokens", R"([{"id": 10, "content": "<s>"}])"), "added_tokens[0].single_word is missing"},
      {with("added_tokens", "[" + kAdded.substr(1, kAdded.size() - 2) + "," + kAdded.substr(1)),
       "added_tokens[1] adds '<s>' a second time"},
  };
  for (const auto& [json, message] : cases) EXPECT_THAT(tokenizer_refusal(json), HasSubstr(message)) << json;
}

TEST(BrokenTokenizer, DeepAndHugeThingsAreRefused) {
  const std::string deep(100000, '[');
  EXPECT_THAT(tokenizer_refusal("{\"model\": " + deep), HasSubstr("t.json"));
  std::string nested = R"({"type": "NFC"})";
  for (int i = 0; i < 40; ++i) nested = R"({"type": "Sequence", "normalizers": [)" + nested + "]}";
  EXPECT_THAT(tokenizer_refusal(with("normalizer", nested)), HasSubstr("nested deeper"));
  const std::string regex(1 << 20, 'a');
  const std::string error =
      tokenizer_refusal(with("pre_tokenizer", R"({"type": "Split", "pattern": {"Regex": ")" + regex +
                                                  R"("}, "behavior": "Isolated", "invert": false})"));
  EXPECT_THAT(error, HasSubstr("pre_tokenizer.pattern.Regex"));
  EXPECT_LT(error.size(), 1000u);
  EXPECT_THAT(tokenizer_refusal(with("added_tokens", R"([{"id": 10, "content": ")" + regex +
                                                         R"(", "single_word": false, "lstrip": false,
    "rstrip": false, "normalized": false, "special": true}])")),
              HasSubstr("added_tokens[0].content has 1048576 bytes"));
}

}  // namespace
}  // namespace plimsoll::tokenizers
