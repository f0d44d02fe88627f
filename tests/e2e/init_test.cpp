// From a model and data to a run file that trains: what `init` writes, and what it refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "corpora/images/image_files.h"
#include "models/families.h"
#include "program.h"

namespace plimsoll::e2e {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kConfig =
    R"({"model_type": "llama", "vocab_size": 300, "hidden_size": 24, "intermediate_size": 36, "num_hidden_layers": 2,
        "num_attention_heads": 2, "max_position_embeddings": 256, "eos_token_id": 0})";

/// Rows of that form, the number in place of `#`.
std::string rows(int count, const std::string& form) {
  std::string lines;
  for (int i = 0; i < count; ++i) {
    std::string line = form;
    line.replace(line.find('#'), 1, std::to_string(i % 10));
    lines += line + "\n";
  }
  return lines;
}

/// A folder with a config and a tokenizer, without weights.
class Init : public testing::Test {
 protected:
  void SetUp() override {
    folder_.write("corpus.txt", rows(200, "what is # and what is not, said again and again"));
    const Outcome made = folder_.run(
        "data tokenizer --input corpus.txt --vocab-size 290 --special-token '<|end|>' --output model");
    ASSERT_EQ(made.exit_code, 0) << made.err;
    folder_.write("model/config.json", kConfig);
  }
  Folder folder_;
};

TEST_F(Init, WritesARunFileThatIsPlannedAndTrains) {
  folder_.write("rows.jsonl", rows(60, R"({"prompt": "what is #? ", "completion": "and what is not"})"));
  const Outcome outcome = folder_.run("init --model model --data rows.jsonl");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("Fits: peak"), HasSubstr("plimsoll train run.yaml")));
  const std::string yaml = folder_.read("run.yaml");
  EXPECT_THAT(yaml, AllOf(HasSubstr("# Fits: peak"), HasSubstr("60 prompts with completions"),
                          HasSubstr("eval_fraction"), HasSubstr("sequence_length: 64"),
                          HasSubstr("dir: runs/model-rows")));
  const Outcome trained = folder_.run("train run.yaml model.init=random training.max_steps=2");
  EXPECT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_TRUE(std::filesystem::exists(folder_.path("runs/model-rows/final/tokenizer.json")));

  const Outcome again = folder_.run("init --model model --data rows.jsonl");
  EXPECT_EQ(again.exit_code, 2);
  EXPECT_THAT(again.err, HasSubstr("--force"));
  EXPECT_EQ(folder_.read("run.yaml"), yaml);
}

TEST_F(Init, HoldsOutSomeOfAnyData) {
  for (const char* form :
       {R"({"prompt": "what is #? ", "completion": "again"})", R"({"prompt": "# is ", "completion": "said"})",
        R"({"prompt": "again # and ", "completion": "not"})",
        R"({"prompt": "not # ", "completion": "what"})"}) {
    folder_.write("few.jsonl", rows(60, form));
    ASSERT_EQ(folder_.run("init --model model --data few.jsonl --force").exit_code, 0);
    const Outcome trained =
        folder_.run("train run.yaml model.init=random training.max_steps=1 --resume never");
    EXPECT_EQ(trained.exit_code, 0) << form << trained.err;
  }
}

TEST_F(Init, SeesWhatTheDataIsFor) {
  folder_.write("labels.jsonl", rows(60, R"({"text": "what is #", "label": "even"})"));
  const Outcome labels = folder_.run("init --model model --data labels.jsonl --output -");
  EXPECT_EQ(labels.exit_code, 0) << labels.err;
  EXPECT_THAT(labels.out,
              AllOf(HasSubstr("task: sequence_classification"), HasSubstr("60 examples with labels")));
  EXPECT_FALSE(std::filesystem::exists(folder_.path("run.yaml")));

  const Outcome preset =
      folder_.run("init --model HuggingFaceTB/SmolLM-135M --tokenizer model --data corpus.txt --output -");
  EXPECT_EQ(preset.exit_code, 0) << preset.err;
  EXPECT_THAT(preset.out, AllOf(HasSubstr("preset: smollm-135m"), HasSubstr("tokenizer: model")));
}

/// Examples with labels are measured, and some are held out, none of them the last of its class.
TEST_F(Init, MeasuresExamplesWithLabels) {
  std::string lines = rows(30, R"({"text": "what is #", "text_pair": "and what is not", "label": "even"})") +
                      rows(30, R"({"text": "# again and again", "text_pair": "said", "label": "odd"})");
  folder_.write("labels.jsonl", lines);
  const Outcome outcome = folder_.run("init --model model --data labels.jsonl");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::string yaml = folder_.read("run.yaml");
  EXPECT_THAT(yaml, AllOf(HasSubstr("task: sequence_classification"), HasSubstr("60 examples with labels"),
                          HasSubstr("single_label, 2 labels seen: even, odd"), HasSubstr("eval_fraction: "),
                          HasSubstr("99 of 100 examples are within")));
  const size_t at = yaml.find("sequence_length: ");
  ASSERT_NE(at, std::string::npos);
  EXPECT_LT(std::strtol(yaml.c_str() + at + 17, nullptr, 10), 64) << yaml;
  ASSERT_EQ(folder_.run("plan run.yaml").exit_code, 0);
  const std::string train = "train run.yaml model.init=random ";
  const Outcome trained = folder_.run(train + "training.max_steps=2 output.save_steps=2");
  EXPECT_EQ(trained.exit_code, 0) << trained.err;
  // The base names no pad token: what leaves does, so that transformers runs batches of it; the run goes on.
  for (const char* file : {"final/config.json", "checkpoint-2/config.json"})
    EXPECT_THAT(folder_.read("runs/model-labels/" + std::string(file)), HasSubstr("\"pad_token_id\": 0"))
        << file;
  EXPECT_THAT(folder_.read("runs/model-labels/final/tokenizer_config.json"),
              HasSubstr("\"pad_token\": \"<|end|>\""));
  std::filesystem::remove_all(folder_.path("runs/model-labels/final"));
  const Outcome rest = folder_.run(train + "training.max_steps=4 output.save_steps=2");
  EXPECT_EQ(rest.exit_code, 0) << rest.err;
  EXPECT_TRUE(std::filesystem::exists(folder_.path("runs/model-labels/checkpoint-4")));
}

/// An encoder is trained for what its data are: labels, questions about texts, texts.
TEST_F(Init, ChoosesAnEncodersTaskByItsData) {
  std::filesystem::create_directory(folder_.path("bert"));
  folder_.write("bert/vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nwhat\nis\nnot\nagain\n");
  folder_.write("bert/config.json",
                R"({"model_type": "bert", "vocab_size": 9, "hidden_size": 16, "num_attention_heads": 2,
    "num_hidden_layers": 1, "intermediate_size": 16, "max_position_embeddings": 64, "pad_token_id": 0})");
  const auto trained = [&](const std::string& lines, const std::string& task, const std::string& found) {
    folder_.write("rows.jsonl", lines);
    const Outcome outcome = folder_.run("init --model bert --data rows.jsonl --force");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_THAT(folder_.read("run.yaml"), AllOf(HasSubstr("task: " + task), HasSubstr(found)));
    const Outcome run = folder_.run("train run.yaml model.init=random training.max_steps=2 --resume never");
    EXPECT_EQ(run.exit_code, 0) << task << run.err;
  };
  trained(rows(30, R"({"text": "what is #", "label": "even"})") +
              rows(30, R"({"text": "# again", "label": "odd"})"),
          "sequence_classification", "60 examples");
  trained(rows(60, R"({"text": "what is # not again"})"), "masked_lm", "60 documents");
  trained(
      rows(
          60,
          R"({"question": "what is #", "context": "not again what is not", "answers": {"text": ["again"], "answer_start": [4]}})"),
      "question_answering", "60 questions");
  const Outcome refused = folder_.run("init --model model --data rows.jsonl --force");
  EXPECT_EQ(refused.exit_code, 65);
  EXPECT_THAT(refused.err, HasSubstr("questions about texts, whose answers encoders find"));
}

/// --lora and settings behind the data are the run file's; what it says trains.
TEST_F(Init, TakesAdaptersAndSettings) {
  folder_.write("rows.jsonl", rows(60, R"({"prompt": "what is #? ", "completion": "and what is not"})"));
  const Outcome outcome = folder_.run(
      "init --model model --data rows.jsonl training.max_steps=2 model.init=random "
      "'memory.recompute={segments: 2}' --lora 4");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::string yaml = folder_.read("run.yaml");
  EXPECT_THAT(yaml, AllOf(HasSubstr("lora:\n  r: 4 "), HasSubstr("target_modules: all-linear"),
                          HasSubstr("max_steps: 2"), HasSubstr("recompute: {segments: 2}"),
                          HasSubstr("learning_rate: 2.0e-4"), testing::Not(HasSubstr("num_epochs"))));
  const Outcome trained = folder_.run("train run.yaml");
  EXPECT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_TRUE(std::filesystem::exists(folder_.path("runs/model-rows/final/adapter_config.json")));
  for (const char* arguments : {"--lora model.init=random --output -", "model.init=random --lora --output -",
                                "model.init=random --output - --lora"}) {
    const Outcome plain = folder_.run(std::string("init --model model --data rows.jsonl ") + arguments);
    EXPECT_EQ(plain.exit_code, 0) << plain.err;
    EXPECT_THAT(plain.out, AllOf(HasSubstr("  r: 16 "), HasSubstr("init: random"))) << arguments;
  }
  for (const auto& [arguments, says] : {std::pair{"--lora many", "--lora takes a rank"},
                                        std::pair{"training.max_stps=2", "training.max_steps"},
                                        std::pair{"--lora runtime.profile=rtx409", "rtx4090"}}) {
    const Outcome bad =
        folder_.run("init --model model --data rows.jsonl --output - " + std::string(arguments));
    EXPECT_EQ(bad.exit_code, 2) << bad.err;
    EXPECT_THAT(bad.err, HasSubstr(says));
  }
}

/// The first command of who has a card and a model of seven billion parameters.
TEST_F(Init, WritesRunsOfEveryFamilyOfImageModels) {
  for (const char* label : {"images/red", "images/blue"})
    std::filesystem::create_directories(folder_.path(label));
  for (const bool red : {false, true})
    for (uint32_t i = 0; i < 30; ++i) {
      const auto shade = static_cast<uint8_t>(100 + i * 5);
      const std::string name = std::string(red ? "images/red/" : "images/blue/") + std::to_string(i) + ".png";
      folder_.write(name, corpora::png_of(20 + i, 24, red ? shade : 0, 0, red ? 0 : shade));
    }
  for (const models::FamilyFile family : models::kImageFamilies) {
    const std::string type(family().model_type), run = type + ".yaml";
    std::filesystem::create_directories(folder_.path(type));
    folder_.write(type + "/config.json", std::string(family().sample));
    const Outcome outcome = folder_.run("init --model " + type + " --data images --output " + run);
    ASSERT_EQ(outcome.exit_code, 0) << type << outcome.err;
    EXPECT_THAT(folder_.read(run),
                AllOf(HasSubstr("task: image_classification"), HasSubstr("2 classes: blue, red"),
                      HasSubstr("60 images"), HasSubstr("eval_fraction")))
        << type;
    const Outcome trained =
        folder_.run("train " + run + " model.init=random training.max_steps=1 data.images.size=35");
    ASSERT_EQ(trained.exit_code, 0) << type << trained.err;
    EXPECT_TRUE(
        std::filesystem::exists(folder_.path("runs/" + type + "-images/final/preprocessor_config.json")));
  }
}

TEST_F(Init, PlansALargeModelForACard) {
  folder_.write("rows.jsonl", rows(60, R"({"prompt": "what is #? ", "completion": "and what is not"})"));
  const Outcome outcome = folder_.run(
      "init --model qwen2.5-7b --tokenizer model --data rows.jsonl --lora runtime.profile=rtx4090 --output "
      "-");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("planned for rtx4090"), HasSubstr("precision: bf16"),
                                 HasSubstr("training.state.weights: bf16"), HasSubstr("profile: rtx4090"),
                                 HasSubstr("r: 16")));
}

TEST_F(Init, NamesWhatIsWrongAndWritesNothing) {
  folder_.write(
      "chats.jsonl",
      rows(3, R"({"messages": [{"role": "user", "content": "#"}, {"role": "assistant", "content": "a"}]})"));
  struct BadStart {
    const char *arguments, *says;
    int exit_code;
  };
  for (const BadStart& c : {BadStart{"--model nowhere --data corpus.txt", "nowhere", 65},
                            BadStart{"--model model --data missing.jsonl", "missing.jsonl", 65},
                            BadStart{"--model model --data chats.jsonl", "template", 65},
                            BadStart{"--model gpt2 --data chats.jsonl", "data.tokenizer", 65},
                            BadStart{"--model HuggingFaceTB/SmolLM2-135M --data chats.jsonl",
                                     "hf download HuggingFaceTB/SmolLM2-135M fetches both", 65},
                            BadStart{"--model model", "--data", 2}}) {
    const Outcome outcome = folder_.run("init " + std::string(c.arguments));
    EXPECT_EQ(outcome.exit_code, c.exit_code) << c.arguments << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(c.says));
    EXPECT_FALSE(std::filesystem::exists(folder_.path("run.yaml")));
  }
}

}  // namespace
}  // namespace plimsoll::e2e
