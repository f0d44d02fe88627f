// A model card says what a model of each task is, to its reader and to the hub.
#include "training/model_card.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/model.h"
#include "tasks/image_classification.h"
#include "tasks/task_list.h"

namespace plimsoll::training {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr const char* kCardLlama =
    "{model_type: llama, vocab_size: 40, hidden_size: 8, intermediate_size: 8, num_hidden_layers: 1, "
    "num_attention_heads: 1, max_position_embeddings: 16, rms_norm_eps: 1.0e-5}";
constexpr const char* kCardBert =
    "{model_type: bert, vocab_size: 40, hidden_size: 8, intermediate_size: 8, num_hidden_layers: 1, "
    "num_attention_heads: 1, max_position_embeddings: 16}";
constexpr const char* kCardVit =
    "{model_type: vit, image_size: 8, patch_size: 4, hidden_size: 8, num_hidden_layers: 1, "
    "num_attention_heads: 1, intermediate_size: 8}";

/// The card of a run of that task with that model, made as prepare_model makes it.
std::string card_of(const std::string& task, const std::string& model, const std::string& more = "") {
  auto config = settings::parse_run_config("task: " + task + "\nmodel: {config: " + model +
                                               ", init: random}\ndata: {train: a.jsonl}\n" + more +
                                               "output: {dir: runs/one}\n",
                                           "run.yaml");
  EXPECT_TRUE(config) << (config ? "" : config.error().message());
  io::ConfigJson fields = *settings::load_model_config(config->model);
  const tasks::TaskDef* def = *tasks::choose_task(task, fields);
  const io::Labels labels{io::ProblemType::kSingleLabel, {"a", "b"}};
  if (def->adapt != nullptr) fields = *def->adapt(fields, labels);
  auto made = models::make_model(fields);
  EXPECT_TRUE(made) << (made ? "" : made.error().message());
  tasks::ImageInputs images;
  images.processor.height = images.processor.width = 8;
  auto task_of = def->make(
      {.model = **made, .model_config = fields, .sequence_length = 16, .labels = &labels, .images = &images});
  EXPECT_TRUE(task_of) << (task_of ? "" : task_of.error().message());
  strategy::Prepared prepared{.model_config = fields,
                              .model = std::move(*made),
                              .task = std::move(*task_of),
                              .loader = {},
                              .buckets = {}};
  if (def->preparation == tasks::Preparation::kLabelled || def->preparation == tasks::Preparation::kImages)
    prepared.labels = labels;
  return model_card(*config, prepared, {.steps = 3, .units = 48, .loss = 1.25});
}

std::string tagged(const std::string& library, const std::string& pipeline) {
  return "---\nlibrary_name: " + library + "\npipeline_tag: " + pipeline +
         "\ntags: [plimsoll]\n---\n\n# one\n\n";
}

TEST(ModelCard, SaysWhatModelsOfEachTaskAre) {
  struct Row {
    const char *task, *model, *pipeline, *first;
  };
  for (const Row& row :
       {Row{"causal_lm", kCardLlama, "text-generation", "A language model of the llama family with "},
        Row{"masked_lm", kCardBert, "fill-mask", "A masked language model of the bert family with "},
        Row{"sequence_classification", kCardBert, "text-classification",
            "A classifier of sequences of the bert family with "},
        Row{"sequence_classification", kCardLlama, "text-classification",
            "A classifier of sequences of the llama family with "},
        Row{"image_classification", kCardVit, "image-classification",
            "A classifier of images of the vit family with "}})
    EXPECT_THAT(card_of(row.task, row.model), StartsWith(tagged("transformers", row.pipeline) + row.first));
}

TEST(ModelCard, KnowsTheTaskThatAutoCameTo) {
  const std::string masked = std::string(kCardBert).insert(1, "architectures: [BertForMaskedLM], ");
  EXPECT_THAT(card_of("auto", masked), HasSubstr("pipeline_tag: fill-mask"));
  EXPECT_THAT(card_of("auto", kCardVit), HasSubstr("pipeline_tag: image-classification"));
  EXPECT_THAT(card_of("auto", kCardLlama), HasSubstr("pipeline_tag: text-generation"));
}

TEST(ModelCard, AnAdapterIsOneOfSuchAModel) {
  const std::string card = card_of("masked_lm", kCardBert, "lora: {r: 2}\n");
  EXPECT_THAT(card, StartsWith(tagged("peft", "fill-mask") +
                               "A LoRA adapter of a masked language model of the bert family: "));
}

TEST(ModelCard, CountsInTheTasksUnit) {
  EXPECT_THAT(
      card_of("masked_lm", kCardBert),
      AllOf(HasSubstr("| steps | 3 of "), HasSubstr(" sequences of up to 512 tokens, 48 tokens in all |"),
            HasSubstr("| training loss | 1.2500 in the last step |"), HasSubstr("```yaml\n"),
            HasSubstr("task: masked_lm\n")));
  EXPECT_THAT(card_of("image_classification", kCardVit),
              AllOf(HasSubstr(" images, 48 images in all |"), Not(HasSubstr("tokens"))));
}

}  // namespace
}  // namespace plimsoll::training
