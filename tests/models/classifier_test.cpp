// Sequence classifiers of every family: their parameters, and the head on one row of each sequence.
#include "models/classifier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "changed_config.h"
#include "forward.h"
#include "models/families.h"
#include "models/presets.h"

namespace plimsoll::models {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

/// The family's sample, tied.
io::ConfigJson config_of(const Family& family) {
  return changed(family.sample, R"({"architectures": null, "tie_word_embeddings": true})");
}

std::unique_ptr<LanguageModel> classifier_of(const Family& family, std::vector<std::string> names) {
  const auto config = as_classifier(config_of(family), {io::ProblemType::kSingleLabel, std::move(names)});
  PLIMSOLL_CHECK(config.ok(), config ? "" : config.error().message());
  return *make_language_model(*config);
}

TEST(Classifier, HasAHeadOfLabels) {
  for (const auto each : kLanguageFamilies) {
    const std::string_view family = each().model_type;
    const auto causal = make_model(config_of(each()));
    ASSERT_TRUE(causal) << family;
    const auto model = classifier_of(each(), {"a", "b", "c"});
    EXPECT_THAT(tensor_list(*model), Contains("score.weight [3,60]")) << family;
    EXPECT_THAT(tensor_list(*model), Not(Contains(HasSubstr("lm_head")))) << family;
    EXPECT_EQ(model->parameters().size(), (*causal)->parameters().size() + 1) << family;
    EXPECT_EQ(model->num_parameters(), (*causal)->num_parameters() + 3 * 60) << family;
    EXPECT_EQ(model->num_labels(), 3) << family;
    EXPECT_EQ((*causal)->num_labels(), 0) << family;
    EXPECT_FALSE(model->tied_head()) << family;
    EXPECT_TRUE(model->ignores_tensor("lm_head.weight")) << family;
    EXPECT_FALSE((*causal)->ignores_tensor("lm_head.weight")) << family;
    expect_views_cover(*model);
  }
}

TEST(Classifier, IsTransformersClassOfTheFamily) {
  const auto classed = [](const char* family) {
    return as_classifier(config_of(*find_family(family)), {})->fields().find("architectures")->items[0].text;
  };
  EXPECT_EQ(classed("llama"), "LlamaForSequenceClassification");
  EXPECT_EQ(classed("smollm3"), "SmolLM3ForSequenceClassification");
  EXPECT_EQ(classed("gpt2"), "GPT2ForSequenceClassification");
  EXPECT_EQ(classed("bert"), "BertForSequenceClassification");
  const auto unknown = as_classifier(*io::parse_config_json(R"({"model_type": "mamba"})", "config.json"), {});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::kBadData);
}

TEST(Classifier, MaskedLanguageModelsAreEncoders) {
  const io::Labels none;
  for (const auto each : kEncoderFamilies) {
    const auto masked = as_masked_lm(changed(each().sample, R"({"num_labels": 5})"), none);
    ASSERT_TRUE(masked) << masked.error().message();
    EXPECT_EQ(io::to_json(*masked->fields().find("architectures")),
              "[\"" + std::string(each().class_name) + "ForMaskedLM\"]");
    EXPECT_TRUE(io::is_masked_lm(*masked));
    const auto classifier = as_classifier(*masked, {io::ProblemType::kSingleLabel, {"a", "b"}});
    ASSERT_TRUE(classifier) << "and back";
    EXPECT_FALSE(io::is_masked_lm(*classifier));
  }
  for (const char* model : {"gpt2", "llama", "vit", "mamba"}) {
    const auto refused = as_masked_lm(
        *io::parse_config_json(std::string(R"({"model_type": ")") + model + "\"}", "c.json"), none);
    ASSERT_FALSE(refused) << model;
    EXPECT_EQ(refused.error().code, ErrorCode::kBadData);
    EXPECT_THAT(refused.error().hint, HasSubstr("task=causal_lm")) << model;
  }
}

TEST(Classifier, ModelsThatAnswerQuestionsAreEncoders) {
  const io::Labels none;
  for (const auto each : kEncoderFamilies) {
    const auto asked = as_question_answering(changed(each().sample, R"({"num_labels": 5})"), none);
    ASSERT_TRUE(asked) << asked.error().message();
    EXPECT_EQ(io::to_json(*asked->fields().find("architectures")),
              "[\"" + std::string(each().class_name) + "ForQuestionAnswering\"]");
    EXPECT_TRUE(io::is_question_answering(*asked));
    const auto masked = as_masked_lm(*asked, none);
    ASSERT_TRUE(masked) << "and back";
    EXPECT_FALSE(io::is_question_answering(*masked));
  }
  for (const char* model : {"gpt2", "llama", "vit", "mamba"}) {
    const auto refused = as_question_answering(
        *io::parse_config_json(std::string(R"({"model_type": ")") + model + "\"}", "c.json"), none);
    ASSERT_FALSE(refused) << model;
    EXPECT_EQ(refused.error().code, ErrorCode::kBadData);
    EXPECT_THAT(refused.error().hint, HasSubstr("name a BERT")) << model;
  }
}

TEST(Classifier, KnowsTheClassesOfEveryFamily) {
  for (const std::string& preset : preset_names()) {
    const io::ConfigJson named = with_class(*preset_config(preset));
    EXPECT_TRUE(named.has("architectures")) << preset;
    EXPECT_EQ(as_classifier(named, {}).ok(), !is_image_model(named)) << preset;
    EXPECT_EQ(as_image_classifier(named, {}).ok(), is_image_model(named)) << preset;
  }
}

/// Logits of every row, or with `last` of the pooled ones.
std::vector<double> logits_of(const LanguageModel& model, const std::vector<int32_t>& tokens, int64_t batch,
                              const std::vector<int32_t>& last) {
  ir::Graph graph;
  ir::Builder b(graph, ops::find_op);
  reference::Interpreter interpreter;
  const auto length = static_cast<int64_t>(tokens.size()) / batch;
  const auto input = [&](const char* name, ir::Shape shape, const std::vector<int32_t>& data) {
    interpreter.set(name, reference::tensor({ir::DType::kI32, shape}, {data.begin(), data.end()}));
    return b.state({name, {ir::DType::kI32, shape}, ir::StateClass::kInput});
  };
  const Forward forward{.tokens = input("tokens", {batch, length}, tokens)};
  const ir::ValueId values =
      last.empty() ? model.logits(b, forward) : model.pooled_logits(b, forward, input("last", {batch}, last));
  graph.declare_state({"logits", b.type(values), ir::StateClass::kOutput});
  b.assign("logits", values);
  for (const Parameter& p : model.parameters()) {
    const std::vector<float> w = weights_of(p);
    interpreter.set(p.name, reference::tensor({ir::DType::kF32, p.shape}, {w.begin(), w.end()}));
  }
  for (const Constant& c : model.constants())
    interpreter.set(c.name, reference::tensor({ir::DType::kF32, c.shape}, {c.data.begin(), c.data.end()}));
  for (const Status& status : {b.status(), interpreter.run(graph)})
    PLIMSOLL_CHECK(status.ok(), status ? "" : status.error().message());
  return interpreter.find("logits")->data;
}

TEST(Classifier, PoolsTheRowThatTheDataNames) {
  constexpr int64_t kBatch = 3, kLength = 7;
  const std::vector<int32_t> last = {6, 0, 3};
  for (const auto each : kLanguageFamilies) {
    const std::string_view family = each().model_type;
    const auto model = classifier_of(each(), {"a", "b", "c", "d", "e"});
    const std::vector<int32_t> tokens = some_tokens(*model, kBatch, kLength);
    const std::vector<double> all = logits_of(*model, tokens, kBatch, {}),
                              pooled = logits_of(*model, tokens, kBatch, last);
    ASSERT_EQ(pooled.size(), 15U) << family;
    for (size_t i = 0; i < pooled.size(); ++i) {
      const size_t sequence = i / 5, row = sequence * kLength + static_cast<size_t>(last[sequence]);
      EXPECT_EQ(pooled[i], all[row * 5 + i % 5]) << family;
    }
  }
}

}  // namespace
}  // namespace plimsoll::models
