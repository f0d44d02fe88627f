// Labels in a config.json: read as transformers reads them, written as it writes them.
#include "io/label_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace plimsoll::io {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

ConfigJson labelled_config(std::string_view text) { return *parse_config_json(text, "config.json"); }
const std::string kClassifier = R"("architectures": ["LlamaForSequenceClassification"])";

std::vector<std::string> names_of(const std::string& fields) {
  return read_label_fields(labelled_config("{" + fields + "}"))->names;
}

TEST(LabelFields, ReadsNamesById) {
  EXPECT_THAT(names_of(R"("id2label": {"1": "pos", "0": "neg"}, "num_labels": 7)"),
              ElementsAre("neg", "pos"));
  EXPECT_THAT(names_of(R"("label2id": {"pos": 1, "neg": 0})"), ElementsAre("neg", "pos"));
  EXPECT_THAT(names_of(R"("num_labels": 3)"), ElementsAre("LABEL_0", "LABEL_1", "LABEL_2"));
  EXPECT_THAT(names_of(R"("id2label": null)"), IsEmpty());
  EXPECT_THAT(names_of(R"("architectures": ["LlamaForCausalLM"])"), IsEmpty());
  EXPECT_THAT(names_of(kClassifier), ElementsAre("LABEL_0", "LABEL_1"))
      << "transformers leaves out its default";
}

TEST(LabelFields, KnowsClassifiersOfImages) {
  const ConfigJson images = labelled_config(R"({"architectures": ["ViTForImageClassification"]})"),
                   bare = labelled_config(R"({"architectures": ["ViTModel"]})");
  EXPECT_TRUE(is_image_classifier(images));
  EXPECT_FALSE(is_sequence_classifier(images));
  EXPECT_FALSE(is_image_classifier(bare));
  EXPECT_EQ(*num_classifier_labels(images), 2);
  EXPECT_EQ(*num_classifier_labels(bare), 0);
}

TEST(LabelFields, KnowsMaskedLanguageModels) {
  for (const char* name : {"BertForMaskedLM", "RobertaForMaskedLM", "BertForPreTraining"}) {
    const ConfigJson masked = labelled_config(std::string(R"({"architectures": [")") + name + R"("]})");
    EXPECT_TRUE(is_masked_lm(masked)) << name;
    EXPECT_FALSE(is_sequence_classifier(masked)) << name;
    EXPECT_EQ(*num_classifier_labels(masked), 0) << name;
  }
  for (const char* text :
       {R"({"architectures": ["BertModel"]})", R"({"architectures": ["BertForSequenceClassification"]})",
        R"({"architectures": ["LlamaForCausalLM"]})", R"({"architectures": []})",
        R"({"architectures": null})", "{}"})
    EXPECT_FALSE(is_masked_lm(labelled_config(text))) << text;
}

TEST(LabelFields, KnowsModelsThatAnswerQuestions) {
  for (const char* name : {"BertForQuestionAnswering", "XLMRobertaForQuestionAnswering"}) {
    const ConfigJson asked = labelled_config(std::string(R"({"architectures": [")") + name + R"("]})");
    EXPECT_TRUE(is_question_answering(asked)) << name;
    EXPECT_FALSE(is_masked_lm(asked)) << name;
    EXPECT_FALSE(is_sequence_classifier(asked)) << name;
    EXPECT_EQ(*num_classifier_labels(asked), 0) << name;
  }
  for (const char* text :
       {R"({"architectures": ["BertModel"]})", R"({"architectures": ["BertForSequenceClassification"]})",
        R"({"architectures": ["BertForMaskedLM"]})", R"({"architectures": null})", "{}"})
    EXPECT_FALSE(is_question_answering(labelled_config(text))) << text;
}

TEST(LabelFields, ReadsTheProblem) {
  const auto problem = [](const char* word) {
    return read_label_fields(labelled_config(std::string(R"({"problem_type": )") + word + "}"))->problem;
  };
  EXPECT_EQ(problem("null"), std::nullopt);
  EXPECT_EQ(problem(R"("single_label_classification")"), ProblemType::kSingleLabel);
  EXPECT_EQ(problem(R"("multi_label_classification")"), ProblemType::kMultiLabel);
  EXPECT_EQ(problem(R"("regression")"), ProblemType::kRegression);
}

TEST(LabelFields, NamesTheFieldThatIsWrong) {
  for (const char* text :
       {R"({"id2label": {"0": "a", "2": "b"}})", R"({"id2label": {"0": "a", "1": 3}})", R"({"id2label": {}})",
        R"({"id2label": ["a"]})", R"({"id2label": {"0": "a", "00": "b"}})",
        R"({"id2label": {"0": "a", "1": "a"}})", R"({"id2label": {"-1": "a"}})",
        R"({"id2label": {"9999999999999999999999": "a"}})"}) {
    const auto fields = read_label_fields(labelled_config(text));
    ASSERT_FALSE(fields) << text;
    EXPECT_EQ(fields.error().code, ErrorCode::kBadData);
    EXPECT_THAT(fields.error().message(), HasSubstr("id2label is ")) << text;
  }
  EXPECT_THAT(read_label_fields(labelled_config(R"({"label2id": {"a": 0, "b": 0}})")).error().what,
              HasSubstr("label2id is "));
  EXPECT_THAT(read_label_fields(labelled_config(R"({"num_labels": 0})")).error().what,
              HasSubstr("num_labels is 0"));
  EXPECT_THAT(read_label_fields(labelled_config(R"({"problem_type": "ranking"})")).error().what,
              HasSubstr("single_label_classification, multi_label_classification or regression"));
}

TEST(LabelFields, CountsAClassifiersRows) {
  EXPECT_EQ(*num_classifier_labels(labelled_config("{" + kClassifier + R"(, "num_labels": 5})")), 5);
  const ConfigJson causal =
      labelled_config(R"({"architectures": ["LlamaForCausalLM"], "num_labels": 5, "id2label": {}})");
  EXPECT_EQ(*num_classifier_labels(causal), 0);
  EXPECT_THAT(causal.unread_fields(), ElementsAre("architectures"));
}

TEST(LabelFields, WritesWhatItReads) {
  ConfigJson c =
      labelled_config(R"({"architectures": ["LlamaForCausalLM"], "num_labels": 2, "pad_token_id": -1})");
  const Labels labels{ProblemType::kMultiLabel, {"b", "a", "ü"}};
  set_labels(c, "LlamaForSequenceClassification", labels);
  EXPECT_TRUE(is_sequence_classifier(c));
  EXPECT_EQ(*num_classifier_labels(c), 3);
  EXPECT_EQ(to_json(*c.fields().find("label2id")), R"({"b": 0, "a": 1, "ü": 2})");
  const auto read = read_label_fields(labelled_config(to_json(c.fields())));
  ASSERT_TRUE(read);
  EXPECT_EQ((Labels{*read->problem, read->names}), labels);
  EXPECT_EQ(*c.integer("num_labels", {}), 3) << "transformers would otherwise take the field's word";
  EXPECT_EQ(*read_pad_token(c), -1);
}

TEST(LabelFields, KnowsBothSpellingsOfAProblem) {
  for (const char* word : {"single_label", "multi_label", "regression"})
    EXPECT_THAT(std::string(name(*parse_problem_type(word))), HasSubstr(word));
  EXPECT_EQ(parse_problem_type("multi_label_classification"), ProblemType::kMultiLabel);
  EXPECT_FALSE(parse_problem_type(""));
  EXPECT_EQ((Labels{{}, {"x", "y"}}).id_of("y"), 1);
  EXPECT_FALSE((Labels{{}, {"x", "y"}}).id_of("z"));
}

}  // namespace
}  // namespace plimsoll::io
