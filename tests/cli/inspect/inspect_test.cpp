// inspect as its user calls it: files, folders, checkpoints, whole and damaged.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <functional>

#include "cli/float_tensors.h"
#include "cli/run_plimsoll.h"
#include "io/json.h"
#include "io/temporary_folder.h"
#include "models/model.h"

namespace plimsoll::cli {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST(InspectFile, ShowsEachTensorInNaturalOrder) {
  const io::TemporaryFolder folder;
  const std::string path = folder.path("a.safetensors");
  write_file(path,
             {{{"layers.10.w", "F32", {2, 2}}, {1, 2, 3, 4}},
              {{"layers.9.w", "F32", {4}}, {0, 0, std::nanf(""), -8}},
              {{"ids", "I32", {1}}, {0}},
              {{"empty", "F32", {0, 3}}, {}}},
             {{"format", "pt"}});
  const Outcome human = run_plimsoll({"inspect", path});
  ASSERT_EQ(human.code, 0) << human.err;
  EXPECT_THAT(human.out, HasSubstr("metadata  format = pt\n"));
  EXPECT_THAT(human.out, HasSubstr("4 tensors, 9 elements, 36 B\n"));
  EXPECT_LT(human.out.find("layers.9.w"), human.out.find("layers.10.w"));
  EXPECT_THAT(human.out,
              HasSubstr("layers.9.w   F32    [4]     16 B   -8    0  -2.667  3.771  50.0%           1\n"));
  EXPECT_THAT(human.out,
              HasSubstr("layers.10.w  F32    [2, 2]  16 B    1    4     2.5  1.118      0           0\n"));

  const Outcome json = run_plimsoll({"inspect", path, "--json"});
  ASSERT_EQ(json.code, 0) << json.err;
  const auto lines = objects(json.out);
  ASSERT_EQ(lines.size(), 5U);
  EXPECT_EQ(lines[0].find("event")->text, "file");
  EXPECT_EQ(lines[0].find("elements")->integer, 9);
  EXPECT_EQ(lines[0].find("bytes")->integer, static_cast<int64_t>(io::read_all(path).size()));
  EXPECT_EQ(lines[0].find("dtypes")->find("F32")->find("bytes")->integer, 32);
  EXPECT_EQ(lines[0].find("metadata")->find("format")->text, "pt");
  const io::Tree& tensor = lines[3];
  EXPECT_EQ(tensor.find("name")->text, "layers.9.w");
  EXPECT_EQ(io::to_json(*tensor.find("shape")), "[4]");
  EXPECT_EQ(tensor.find("min")->number, -8);
  EXPECT_EQ(tensor.find("zeros")->integer, 2);
  EXPECT_EQ(tensor.find("non_finite")->integer, 1);
  EXPECT_EQ(lines[2].find("name")->text, "ids");
  EXPECT_EQ(lines[2].find("min"), nullptr) << "integers have no statistics";
  EXPECT_TRUE(lines[1].find("min")->is_null()) << "nothing has no least number";
}

TEST(InspectFile, KeepsTheTerminalSafe) {
  const io::TemporaryFolder folder;
  const std::string path = folder.path("a.safetensors");
  write_file(path, {{{"\x1b[31mred\n", "F32", {1}}, {1}}}, {{"\x1b]0;title\x07", "x"}});
  const Outcome outcome = run_plimsoll({"inspect", path});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.out, Not(HasSubstr("\x1b")));
  EXPECT_THAT(outcome.out, HasSubstr("\\x1b[31mred\\x0a"));
}

TEST(InspectFile, RefusesWhatItCannotRead) {
  const io::TemporaryFolder folder;
  const std::pair<std::string, const char*> rows[] = {
      {folder.write("lfs.safetensors", "version https://git-lfs.github.com/spec/v1\n"), "git lfs pull"},
      {folder.write("cut.safetensors", "abc"), "download or write it again"},
      {folder.path("absent.safetensors"), "check the path"},
      {folder.path(), "name a safetensors file, a model's folder"},
  };
  for (const auto& [path, hint] : rows) {
    const bool is_folder = path == folder.path();
    if (is_folder)
      for (const char* name : {"lfs.safetensors", "cut.safetensors"})
        std::filesystem::remove(folder.path(name));
    const Outcome outcome = run_plimsoll({"inspect", path});
    EXPECT_EQ(outcome.code, 65) << path;
    EXPECT_THAT(outcome.out, IsEmpty());
    EXPECT_THAT(outcome.err, HasSubstr(hint));
  }
}

constexpr const char* kConfig =
    R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 37, "hidden_size": 24,
        "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
        "max_position_embeddings": 32, "rms_norm_eps": 1e-5, "tie_word_embeddings": false})";

/// A model's folder, whose tensors may be changed before they are written.
void write_model(const io::TemporaryFolder& folder,
                 const std::function<void(std::vector<Numbers>&)>& change = {}) {
  folder.write("config.json", kConfig);
  folder.write("tokenizer.json", "{}");
  const auto model = models::make_model(*io::parse_config_json(kConfig, "config.json"));
  ASSERT_TRUE(model) << model.error().message();
  std::vector<Numbers> tensors;
  for (const auto& parameter : (*model)->parameters())
    for (const auto& view : parameter.views)
      tensors.push_back({{view.name, "F32", {view.shape.dims().begin(), view.shape.dims().end()}},
                         std::vector<float>(static_cast<size_t>(view.shape.num_elements()), 0.5F)});
  if (change) change(tensors);
  write_file(folder.path("model.safetensors"), tensors);
}

TEST(InspectModel, HoldsWeightsAgainstTheConfig) {
  const io::TemporaryFolder folder;
  write_model(folder);
  const Outcome human = run_plimsoll({"inspect", folder.path()});
  ASSERT_EQ(human.code, 0) << human.err;
  for (const char* text :
       {"family      llama (LlamaForCausalLM)\n", "hidden_size 24", "tokenizer   tokenizer.json\n",
        "weights     model.safetensors: 21 tensors", "the tensors are those of the config"})
    EXPECT_THAT(human.out, HasSubstr(text));
  EXPECT_THAT(human.out, Not(HasSubstr("std"))) << "the table is for --tensors";
  const Outcome json = run_plimsoll({"inspect", folder.path(), "--json", "--tensors"});
  const auto lines = objects(json.out);
  ASSERT_EQ(lines.size(), 22U);
  EXPECT_EQ(lines[0].find("event")->text, "model");
  EXPECT_EQ(lines[0].find("parameters")->integer, lines[0].find("elements")->integer);
  EXPECT_TRUE(lines[0].find("match")->find("fits")->boolean);
  EXPECT_EQ(lines[0].find("config")->find("vocab_size")->integer, 37);
}

TEST(InspectModel, ListsAllThatDoesNotFit) {
  const io::TemporaryFolder folder;
  write_model(folder, [](std::vector<Numbers>& tensors) {
    tensors[0].entry.shape = {24, 37};
    tensors[1].entry.name += ".other";
  });
  const Outcome outcome = run_plimsoll({"inspect", folder.path()});
  EXPECT_EQ(outcome.code, 65);
  EXPECT_THAT(outcome.out, HasSubstr("the tensors are not those of the config:"));
  EXPECT_THAT(outcome.out,
              HasSubstr("\nmisshaped   model.embed_tokens.weight F32 [24, 37], expected [37, 24]\n"));
  EXPECT_THAT(outcome.out, HasSubstr("\nmissing     model.layers.0."));
  EXPECT_THAT(outcome.out, HasSubstr("\nextra       model.layers.0."));
  EXPECT_THAT(outcome.err, HasSubstr("hint: "));
  const auto lines = objects(run_plimsoll({"inspect", folder.path(), "--json"}).out);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0].find("match")->find("missing")->items.size(), 1U);
  EXPECT_EQ(io::to_json(*lines[0].find("match")->find("misshaped")->items.at(0).find("expected")),
            "[37, 24]");
}

/// What no other command would load is not called whole.
TEST(InspectModel, NamesAHeadThatTheConfigTies) {
  const io::TemporaryFolder folder;
  write_model(folder, [](std::vector<Numbers>& tensors) {
    for (Numbers& tensor : tensors)
      if (tensor.entry.name == "lm_head.weight") tensor.values.back() = 2;
  });
  std::string tied = kConfig;
  tied.replace(tied.find("false"), 5, "true");
  folder.write("config.json", tied);
  const Outcome outcome = run_plimsoll({"inspect", folder.path()});
  EXPECT_EQ(outcome.code, 65);
  EXPECT_THAT(outcome.out, HasSubstr("the tensors are not those of the config:"));
  EXPECT_THAT(outcome.err, HasSubstr("lm_head.weight differs from it"));
  EXPECT_THAT(outcome.err, HasSubstr("hint: set tie_word_embeddings to false"));
  const auto lines = objects(run_plimsoll({"inspect", folder.path(), "--json"}).out);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_FALSE(lines[0].find("match")->find("fits")->boolean);
}

TEST(InspectModel, TellsOfOtherFamilies) {
  const io::TemporaryFolder folder;
  write_model(folder);
  folder.write("config.json", R"({"model_type": "t5", "vocab_size": 37, "hidden_size": 24})");
  const Outcome outcome = run_plimsoll({"inspect", folder.path()});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("problem    not a model of this program: "));
  EXPECT_THAT(outcome.out, HasSubstr("21 tensors"));
}

TEST(InspectModel, ShowsTheConfigOfAFolderWithoutWeights) {
  const io::TemporaryFolder folder;
  folder.write("config.json", kConfig);
  const Outcome outcome = run_plimsoll({"inspect", folder.path()});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("hidden_size 24"));
  EXPECT_THAT(outcome.out, HasSubstr("weights     there are no weights"));
  folder.write("model.safetensors", "PK\x03\x04 and more");
  const Outcome broken = run_plimsoll({"inspect", folder.path()});
  EXPECT_EQ(broken.code, 65);
  EXPECT_THAT(broken.out, HasSubstr("zip archive"));
}

TEST(InspectFolder, TakesFilesWithoutAConfig) {
  const io::TemporaryFolder folder;
  write_file(folder.path("b.safetensors"), {{{"x", "F32", {1}}, {1}}});
  write_file(folder.path("a.safetensors"), {{{"y", "F32", {1}}, {1}}});
  const auto lines = objects(run_plimsoll({"inspect", folder.path(), "--json", "--tensors"}).out);
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_THAT(lines[0].find("path")->text, HasSubstr("/a.safetensors"));
  EXPECT_EQ(lines[3].find("name")->text, "x");
}

class InspectCheckpoint : public testing::Test {
 protected:
  void SetUp() override {
    folder_.write("train.txt", std::string(3000, 'a'));
    const std::string run = folder_.write(
        "run.yaml",
        "model: {config: {model_type: llama, vocab_size: 256, hidden_size: 24, intermediate_size: 40, "
        "num_hidden_layers: 1, num_attention_heads: 2, num_key_value_heads: 1, max_position_embeddings: 64, "
        "rms_norm_eps: 1.0e-5}, init: random}\n"
        "data: {train: " +
            folder_.path("train.txt") +
            ", sequence_length: 32}\n"
            "training: {global_batch_size: 2, max_steps: 4, learning_rate: 2.0e-3}\n"
            "output: {dir: " +
            folder_.path("out") + ", save_steps: 2}\nmemory: {budget: 8GiB}\n");
    const Outcome trained = run_plimsoll({"train", run});
    ASSERT_EQ(trained.code, 0) << trained.err;
    checkpoint_ = folder_.path("out/checkpoint-2");
  }
  io::TemporaryFolder folder_;
  std::string checkpoint_;
};

TEST_F(InspectCheckpoint, SaysWhereTheRunStood) {
  const Outcome human = run_plimsoll({"inspect", checkpoint_});
  ASSERT_EQ(human.code, 0) << human.err;
  for (const char* text : {"step        2 of 4\n", "tokens      128\n", "training.learning_rate: 0.002\n",
                           "adamw.m: ", "adamw.v: ", "parameters: ", "checksums   all are right\n"})
    EXPECT_THAT(human.out, HasSubstr(text));
  const auto lines = objects(run_plimsoll({"inspect", checkpoint_, "--json", "--tensors"}).out);
  ASSERT_GT(lines.size(), 1U);
  EXPECT_EQ(lines[0].find("event")->text, "checkpoint");
  EXPECT_EQ(lines[0].find("step")->integer, 2);
  EXPECT_TRUE(lines[0].find("intact")->boolean);
  EXPECT_EQ(lines[0].find("settings")->find("training.learning_rate")->text, "0.002");
  const io::Tree& classes = *lines[0].find("classes");
  EXPECT_EQ(classes.find("adamw.m")->find("bytes")->integer,
            classes.find("parameters")->find("bytes")->integer);
  EXPECT_EQ(static_cast<int64_t>(lines.size()) - 1, 3 * classes.find("parameters")->find("tensors")->integer);
}

TEST_F(InspectCheckpoint, FindsADamagedByte) {
  const std::string path = checkpoint_ + "/optimizer.safetensors";
  std::string content = io::read_all(path);
  content[content.size() - 100] = static_cast<char>(content[content.size() - 100] ^ 1);
  std::ofstream(path, std::ios::binary) << content;
  const Outcome outcome = run_plimsoll({"inspect", checkpoint_});
  EXPECT_EQ(outcome.code, 65);
  EXPECT_THAT(outcome.out, HasSubstr("DAMAGED"));
  EXPECT_THAT(outcome.err, HasSubstr("optimizer.safetensors"));
}

TEST_F(InspectCheckpoint, ARunsFolderMeansItsFinalModelOrNamesItsLastCheckpoint) {
  const Outcome outcome = run_plimsoll({"inspect", folder_.path("out")});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, run_plimsoll({"inspect", folder_.path("out/final")}).out);
  std::filesystem::rename(folder_.path("out/final"), folder_.path("elsewhere"));
  const Outcome stopped = run_plimsoll({"inspect", folder_.path("out")});
  EXPECT_EQ(stopped.code, 65);
  EXPECT_THAT(stopped.err, HasSubstr("checkpoint-4"));
}

}  // namespace
}  // namespace plimsoll::cli
