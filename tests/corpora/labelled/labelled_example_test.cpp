// Lines of JSON as labelled examples, and labels of every form.
#include "corpora/labelled/labelled_example.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace plimsoll::corpora {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

LabelledExample example_of(const std::string& json, const LabelledFormat& format = {}) {
  LabelledExample example;
  example.file = "x.jsonl";
  example.line = 7;
  const auto bad = parse_labelled_example(json, format, example);
  EXPECT_FALSE(bad) << json << ": " << (bad ? bad->error.message() : "");
  return example;
}

std::string example_refusal(const std::string& json, const LabelledFormat& format = {}) {
  LabelledExample example;
  example.file = "x.jsonl";
  example.line = 7;
  const auto bad = parse_labelled_example(json, format, example);
  if (!bad) return "accepted: " + json;
  EXPECT_EQ(bad->error.code, ErrorCode::kBadData);
  EXPECT_EQ(bad->error.where, "x.jsonl: line 7");
  return bad->error.what;
}

TEST(LabelledExample, ReadsTextsPairsAndTokens) {
  const LabelledExample text = example_of(R"({"text": "a\nb", "label": 1, "other": [NaN]})");
  EXPECT_EQ(text.text, "a\nb");
  EXPECT_FALSE(text.has_pair || text.has_ids);
  const LabelledExample pair = example_of(R"({"text_pair": "", "label": 1, "text": "a"})");
  EXPECT_TRUE(pair.has_pair);
  EXPECT_EQ(pair.text_pair, "");
  EXPECT_FALSE(example_of(R"({"text_pair": null, "label": 1, "text": "a"})").has_pair);
  const LabelledExample ids = example_of(R"({"input_ids": [3, 0, 2147483647], "text": 5, "label": 1})");
  EXPECT_TRUE(ids.has_ids);
  EXPECT_THAT(ids.ids, ElementsAre(3, 0, 2147483647));
  EXPECT_EQ(example_of(R"({"sentence": "x", "text": "y", "label": 1})", {.text_key = "sentence"}).text, "x");
}

TEST(LabelledExample, UnderstandsTheColumnsOfPublicPairs) {
  for (const auto& [text, pair] : {std::pair("sentence1", "sentence2"), std::pair("premise", "hypothesis"),
                                   std::pair("question1", "question2"), std::pair("question", "answer"),
                                   std::pair("question", "sentence")}) {
    const LabelledExample example =
        example_of(std::string(R"({")") + text + R"(": "a", ")" + pair + R"(": "b", "idx": 3, "label": 1})");
    EXPECT_EQ(example.text, "a") << text;
    EXPECT_TRUE(example.has_pair);
    EXPECT_EQ(example.text_pair, "b") << pair;
  }
  EXPECT_EQ(example_of(R"({"sentence": "a", "label": 1})").text, "a");
  EXPECT_EQ(example_of(R"({"text": "t", "premise": "a", "hypothesis": "b", "label": 1})").text, "t")
      << "what has its name counts";
  EXPECT_EQ(
      example_refusal(R"({"premise": "a", "hypothesis": "b", "question": "c", "answer": "d", "label": 1})"),
      "the line has no \"text\", and both \"premise\" and \"question\" may be it");
  EXPECT_EQ(example_refusal(R"({"premise": "a", "label": 1})"),
            "the line has no \"text\", nor \"input_ids\"");
}

TEST(LabelledExample, LabelsAndAttentionMasks) {
  EXPECT_THAT(example_of(R"({"text": "a", "labels": 2})").label.values, ElementsAre(2));
  EXPECT_EQ(example_refusal(R"({"text": "a", "labels": 2, "label": 1})"),
            "the line's \"label\" and \"labels\" differ");
  EXPECT_THAT(example_of(R"({"input_ids": [0, 5, 6, 0], "attention_mask": [0, 1, 1, 0], "label": 1})").ids,
              ElementsAre(5, 6));
  EXPECT_EQ(example_refusal(R"({"input_ids": [5, 6], "attention_mask": [1], "label": 1})"),
            "\"attention_mask\" has 1 values, \"input_ids\" 2");
}

TEST(LabelledExample, TokenTypesOfModelsThatHaveSome) {
  const std::string line = R"({"input_ids": [5, 6, 7, 0], "token_type_ids": [0, 1, 1, 0], "label": 1})";
  EXPECT_TRUE(example_of(line).types.empty()) << "the model has none";
  EXPECT_THAT(example_of(line, {.num_token_types = 2}).types, ElementsAre(0, 1, 1, 0));
  const LabelledExample masked = example_of(
      R"({"input_ids": [5, 6, 7, 0], "token_type_ids": [0, 0, 1, 0], "attention_mask": [1, 0, 1, 0], "label": 1})",
      {.num_token_types = 2});
  EXPECT_THAT(masked.ids, ElementsAre(5, 7));
  EXPECT_THAT(masked.types, ElementsAre(0, 1));
  EXPECT_TRUE(example_of(R"({"input_ids": [5], "label": 1})", {.num_token_types = 2}).types.empty());
  EXPECT_EQ(example_refusal(line, {.num_token_types = 1}),
            "\"token_type_ids\" holds 1, expected types below 1");
  EXPECT_EQ(
      example_refusal(R"({"input_ids": [5, 6], "token_type_ids": [0], "label": 1})", {.num_token_types = 2}),
      "\"token_type_ids\" has 1 values, \"input_ids\" 2");
  EXPECT_EQ(example_refusal(R"({"input_ids": [5], "token_type_ids": 0, "label": 1})", {.num_token_types = 2}),
            "\"token_type_ids\" is a number, expected a list");
  for (const char* type : {"-1", "0.5", "2", "4294967296"})
    EXPECT_THAT(
        example_refusal("{\"input_ids\": [5], \"token_type_ids\": [" + std::string(type) + "], \"label\": 1}",
                        {.num_token_types = 2}),
        HasSubstr("\"token_type_ids\" holds " + std::string(type)));
}

TEST(LabelledExample, ReadsLabelsAsTheyStand) {
  const auto label = [](const std::string& json) {
    return example_of("{\"text\": \"a\", \"label\": " + json + "}").label;
  };
  EXPECT_EQ(label("2").kind, RawLabelKind::kInteger);
  EXPECT_THAT(label("-1").values, ElementsAre(-1));
  EXPECT_EQ(label("2.0").kind, RawLabelKind::kNumber);
  EXPECT_THAT(label("0.7").values, ElementsAre(0.7F));
  EXPECT_THAT(label("1e-400").values, ElementsAre(0));
  EXPECT_EQ(label(R"("p\u00f6s")").name, "pös");
  EXPECT_EQ(label("\"\xff\"").name, "\xEF\xBF\xBD") << "names stand in config.json, which is UTF-8";
  EXPECT_EQ(label("[0, 1.5]").kind, RawLabelKind::kList);
  EXPECT_THAT(label("[0, 1.5]").values, ElementsAre(0, 1.5F));
  for (const char* line : {R"({"text": "a"})", R"({"text": "a", "label": {}})"})
    EXPECT_EQ(example_of(line, {.with_label = false}).label.kind, RawLabelKind::kAbsent);
}

TEST(LabelledExample, SaysWhatIsWrongWithALabel) {
  const auto wrong = [](const std::string& json) {
    return example_refusal("{\"text\": \"a\", \"label\": " + json + "}");
  };
  for (const char* json : {"true", "NaN", "-Infinity", "1e39"})
    EXPECT_EQ(wrong(json),
              "label is " + std::string(json) + ", expected a number, a name or a list of numbers");
  EXPECT_THAT(wrong("{}"), HasSubstr("label is an object"));
  EXPECT_EQ(wrong("[]"), "label is an empty list");
  EXPECT_EQ(wrong(R"([0, "a"])"), R"(label holds "a", expected a list of numbers)");
  EXPECT_THAT(wrong("[0, [1]]"), HasSubstr("label holds [1]"));
  EXPECT_EQ(wrong("\"\""), "label is an empty name");
  EXPECT_THAT(wrong("\"" + std::string(201, 'x') + "\""), HasSubstr("label is a text of 201 bytes"));
  for (const char* line : {R"({"text": "a"})", R"({"text": "a", "label": null})"})
    EXPECT_EQ(example_refusal(line), "the line has no \"label\"");
}

TEST(LabelledExample, SaysWhatIsWrongWithALine) {
  const LabelledFormat small{.vocab_size = 4};
  EXPECT_THAT(example_refusal("{\"text\": \"a\", \"label\": 1"), HasSubstr("the line is no JSON"));
  EXPECT_EQ(example_refusal("[1]"), "the line is a list, expected an object");
  EXPECT_EQ(example_refusal(R"({"label": 1})"), R"(the line has no "text", nor "input_ids")");
  EXPECT_EQ(example_refusal(R"({"text": 3, "label": 1})"), R"("text" is a number, expected a string)");
  EXPECT_EQ(example_refusal(R"({"text": "a", "text_pair": [], "label": 1})"),
            R"("text_pair" is a list, expected a string)");
  EXPECT_EQ(example_refusal(R"({"text": "a", "label": 1, "label": 2})"), R"(the line has "label" twice)");
  EXPECT_EQ(example_refusal(R"({"input_ids": "a", "label": 1})"),
            R"("input_ids" is a string, expected a list)");
  EXPECT_EQ(example_refusal(R"({"input_ids": [3, 4], "label": 1})", small),
            R"("input_ids" holds 4, expected ids below 4)");
  for (const char* id : {"-1", "1.5", "\"1\"", "[1]", "2147483648"})
    EXPECT_THAT(example_refusal("{\"input_ids\": [" + std::string(id) + "], \"label\": 1}"),
                HasSubstr("\"input_ids\" holds " + std::string(id)));
}

}  // namespace
}  // namespace plimsoll::corpora
