// Tokens that stand outside of tokenizer.json: what transformers 5.23 makes of the same files.
#include "tokenizers/named_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/temporary_folder.h"
#include "tokenizers/tokenizer.h"

namespace plimsoll::tokenizers {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kModel =
    R"({"type": "BPE", "vocab": {"a": 0, "b": 1, "c": 2, "<": 3, ">": 4, " ": 5, "e": 6},
    "merges": []})";
/// A folder with a tokenizer.json of seven tokens and `list`, to which tests add files.
class NamingFolder {
 public:
  explicit NamingFolder(const std::string& list = "[]") {
    write("tokenizer.json",
          std::string(R"({"version": "1.0", "model": )") + kModel + R"(, "added_tokens": )" + list + "}");
  }
  NamingFolder& write(const char* name, std::string_view content) {
    folder_.write(name, content);
    return *this;
  }
  [[nodiscard]] Result<std::unique_ptr<Tokenizer>> open() const { return Tokenizer::open(folder_.path()); }
  [[nodiscard]] std::vector<int32_t> ids(std::string_view text) const {
    const auto tokenizer = open();
    EXPECT_TRUE(tokenizer) << tokenizer.error().message();
    std::vector<int32_t> ids;
    if (!tokenizer) return ids;
    EXPECT_TRUE((*tokenizer)->encode(text, false, ids));
    return ids;
  }
  [[nodiscard]] std::string refusal() const {
    const auto tokenizer = open();
    return tokenizer ? "accepted" : tokenizer.error().message();
  }

 private:
  io::TemporaryFolder folder_;
};

std::string listed_token(const char* content, int id, const char* rules = "") {
  return std::string(R"({"id": )") + std::to_string(id) + R"(, "content": ")" + content + R"(",
      "single_word": false, "lstrip": )" +
         (std::string_view(rules) == "lstrip" ? "true" : "false") +
         R"(, "rstrip": false, "normalized": false, "special": true})";
}

TEST(NamedTokens, AreAddedFromEveryFileThatNamesThem) {
  const char* const configs[] = {
      R"({"added_tokens_decoder": {"7": {"content": "<c>", "special": true}}})",
      R"({"additional_special_tokens": ["<c>"]})",
      R"({"extra_special_tokens": ["<c>"]})",
      R"({"extra_special_tokens": {"tool_token": "<c>"}})",
      R"({"pad_token": "<c>"})",
      R"({"tool_token": "<c>"})",
      R"({"unk_token": {"__type": "AddedToken", "content": "<c>"}})",
  };
  for (const char* config : configs)
    EXPECT_THAT(NamingFolder().write("tokenizer_config.json", config).ids("a<c>b"), ElementsAre(0, 7, 1))
        << config;
  EXPECT_THAT(NamingFolder().write("added_tokens.json", R"({"<c>": 7})").ids("a<c>b"), ElementsAre(0, 7, 1));
  for (const char* map : {R"({"mask_token": "<c>"})", R"({"cls_token": {"content": "<c>", "special": true}})",
                          R"({"additional_special_tokens": ["<c>"]})"})
    EXPECT_THAT(NamingFolder().write("special_tokens_map.json", map).ids("a<c>b"), ElementsAre(0, 7, 1))
        << map;
}

TEST(NamedTokens, GetIdsInTransformersOrder) {
  NamingFolder folder("[" + listed_token("<a>", 7) + "]");
  folder.write("tokenizer_config.json", R"({"extra_special_tokens": ["<b>"], "pad_token": "<c>",
      "bos_token": "<<", "eos_token": "<a>",
      "added_tokens_decoder": {"90": {"content": ">>"}, "12": {"content": "<e>"}}})");
  EXPECT_THAT(folder.ids("<a><e>>><<<c><b>"), ElementsAre(7, 8, 9, 10, 11, 12));
}

TEST(NamedTokens, OfTheVocabularyKeepTheirIdAndAreFoundWhole) {
  NamingFolder folder;
  folder.write("tokenizer_config.json", R"({"eos_token": "e"})");
  EXPECT_THAT(folder.ids("aeb"), ElementsAre(0, 6, 1));
  const auto tokenizer = folder.open();
  ASSERT_TRUE(tokenizer);
  EXPECT_EQ((*tokenizer)->vocab_size(), 7);
  EXPECT_TRUE((*tokenizer)->is_special(6));
}

TEST(NamedTokens, ChangeTheRulesOfListedOnes) {
  NamingFolder folder("[" + listed_token("<a>", 7) + "]");
  EXPECT_THAT(folder.ids("b <a>"), ElementsAre(1, 5, 7));
  folder.write("tokenizer_config.json",
               R"({"added_tokens_decoder": {"7": {"content": "<a>", "lstrip": true}}})");
  EXPECT_THAT(folder.ids("b <a>"), ElementsAre(1, 7));
  // A name alone says nothing of rules.
  NamingFolder named("[" + listed_token("<a>", 7, "lstrip") + "]");
  named.write("tokenizer_config.json", R"({"eos_token": "<a>"})");
  EXPECT_THAT(named.ids("b <a>"), ElementsAre(1, 7));
}

TEST(NamedTokens, TheMapIsReadWhereThereIsNoDecoder) {
  NamingFolder folder;
  folder.write("special_tokens_map.json", R"({"pad_token": "<c>"})");
  folder.write("tokenizer_config.json", R"({"added_tokens_decoder": {}})");
  EXPECT_THAT(folder.ids("<c>"), ElementsAre(3, 2, 4));
}

TEST(NamedTokens, SpecialOnesAreSplitWhereTheConfigSaysSo) {
  NamingFolder folder;
  folder.write("tokenizer_config.json", R"({"split_special_tokens": true, "pad_token": "<c>",
      "added_tokens_decoder": {"7": {"content": "<a>"}}})");
  EXPECT_THAT(folder.ids("<c><a>"), ElementsAre(3, 2, 4, 7));
}

TEST(NamedTokens, PrefixSpaceIsTransformersWhereItsClassMakesIt) {
  NamingFolder folder;
  folder.write("tokenizer.json", R"({"version": "1.0", "model": {"type": "BPE", "merges": [],
      "vocab": {"a": 0, "Ġ": 1}}, "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false,
      "trim_offsets": true, "use_regex": true}})");
  folder.write("tokenizer_config.json", R"({"add_prefix_space": true})");
  EXPECT_THAT(folder.ids("a"), ElementsAre(0));
  folder.write("tokenizer_config.json", R"({"add_prefix_space": true, "tokenizer_class": "GPT2Tokenizer"})");
  EXPECT_THAT(folder.ids("a"), ElementsAre(1, 0));
}

TEST(NamedTokens, RefusesWhatIsMistyped) {
  EXPECT_THAT(NamingFolder().write("tokenizer_config.json", R"({"pad_token": 7})").refusal(),
              HasSubstr("pad_token is 7, expected a token"));
  EXPECT_THAT(
      NamingFolder().write("tokenizer_config.json", R"({"added_tokens_decoder": {"x": {}}})").refusal(),
      HasSubstr("added_tokens_decoder.x is no id"));
  EXPECT_THAT(NamingFolder().write("added_tokens.json", R"({"<c>": "7"})").refusal(),
              HasSubstr("added_tokens.json"));
  EXPECT_THAT(NamingFolder().write("tokenizer_config.json", "{").refusal(),
              HasSubstr("tokenizer_config.json"));
}

}  // namespace
}  // namespace plimsoll::tokenizers
