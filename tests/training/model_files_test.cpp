// What stands beside a trained model's weights follows from what the run used.
#include "training/model_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "io/json.h"
#include "io/temporary_folder.h"
#include "settings/run_config.h"

namespace plimsoll::training {
namespace {

using testing::HasSubstr;

constexpr const char* kTokenizer =
    R"({"version": "1.0", "truncation": null, "padding": null, "added_tokens": [
  {"id": 0, "content": "</s>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
   "special": true},
  {"id": 1, "content": "<end>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
   "special": true}],
  "normalizer": null,
  "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
  "post_processor": null,
  "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
  "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "ignore_merges": false,
            "vocab": {"</s>": 0, "<end>": 1, "a": 2, "b": 3}, "merges": []}})";
constexpr const char* kConfig =
    R"({"model_type": "llama", "vocab_size": 8, "hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1,
        "num_attention_heads": 1, "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "eos_token_id": 2})";
constexpr const char* kTemplate = "{% for m in messages %}{{ m.content }}<end>{% endfor %}";

class ModelFiles : public testing::Test {
 protected:
  ModelFiles() {
    for (const char* name : {"model", "tokenizer"}) std::filesystem::create_directories(folder_.path(name));
    folder_.write("model/config.json", kConfig);
    folder_.write("tokenizer/tokenizer.json", kTokenizer);
    folder_.write("t.jinja", kTemplate);
  }
  std::vector<checkpoints::ModelFile> gather(const std::string& data = "") const {
    auto config = settings::parse_run_config("model: {path: " + folder_.path("model") +
                                                 ", init: random}\ndata: {train: x.jsonl" + data +
                                                 ", sequence_length: 32}\n",
                                             "run.yaml");
    EXPECT_TRUE(config) << (config ? "" : config.error().message());
    const auto model = settings::load_model_config(config->model);
    auto files = model_files(*config, *model);
    EXPECT_TRUE(files) << (files ? "" : files.error().message());
    const auto apart = model_files_apart(*config, *model);
    EXPECT_TRUE(apart && apart->files.size() == files->files.size()) << "in a process of its own";
    pad_token_ = files->pad_token;
    EXPECT_EQ(apart ? apart->pad_token : std::nullopt, pad_token_);
    return std::move(files->files);
  }
  /// A file's content; empty where there is none.
  static std::string text(const std::vector<checkpoints::ModelFile>& files, const std::string& name) {
    const auto found =
        std::find_if(files.begin(), files.end(), [&](const auto& f) { return f.name == name; });
    if (found == files.end()) return "";
    return found->source.empty() ? found->text : io::read_all(found->source);
  }
  /// The template and the tokenizer that a test puts into the run.
  [[nodiscard]] std::string others() const {
    return ", tokenizer: " + folder_.path("tokenizer") + ", chat_template: " + folder_.path("t.jinja");
  }
  const io::TemporaryFolder folder_;
  mutable std::optional<int64_t> pad_token_ = {};  ///< of what was gathered last
};

TEST_F(ModelFiles, OfBytesThereAreNone) { EXPECT_TRUE(gather().empty()); }

TEST_F(ModelFiles, AnotherTokenizerAndTemplateAreTheRuns) {
  folder_.write("model/generation_config.json", R"({"eos_token_id": 7, "temperature": 0.6})");
  folder_.write("model/tokenizer.json", "{}");
  folder_.write("model/chat_template.jinja", "not used");
  const auto files = gather(others());
  EXPECT_EQ(text(files, "tokenizer.json"), kTokenizer);
  EXPECT_EQ(text(files, "chat_template.jinja"), kTemplate);
  const auto config = io::parse_json(text(files, "tokenizer_config.json"));
  ASSERT_TRUE(config);
  EXPECT_EQ(config->find("chat_template")->text, kTemplate);
  EXPECT_EQ(config->find("eos_token")->text, "</s>");
  EXPECT_EQ(text(files, "special_tokens_map.json"), "{\"eos_token\": \"</s>\"}\n");
  EXPECT_EQ(text(files, "generation_config.json"),
            "{\"eos_token_id\": [0, 1], \"temperature\": 0.6, \"pad_token_id\": 0}\n")
      << "the end of a text, the end of a turn; 7 is none of this tokenizer's";
}

TEST_F(ModelFiles, OfTheModelsOwnFolderAreCopies) {
  folder_.write("model/tokenizer.json", kTokenizer);
  folder_.write("model/tokenizer_config.json",
                R"({"chat_template":   "{{ messages }}", "pad_token": "<end>"})");
  folder_.write("model/special_tokens_map.json", R"({"eos_token": {"content": "</s>"}})");
  folder_.write("model/generation_config.json", R"({"eos_token_id":   3})");
  for (const checkpoints::ModelFile& file : gather()) EXPECT_FALSE(file.source.empty()) << file.name;
  std::filesystem::remove(folder_.path("model/generation_config.json"));
  EXPECT_EQ(text(gather(), "generation_config.json"), "{\"pad_token_id\": 1, \"eos_token_id\": [0, 2]}\n")
      << "config.json's eos too, where the tokenizer is the model's";
}

TEST_F(ModelFiles, ATemplateOfItsOwnFileIsAMemberToo) {
  folder_.write("model/tokenizer.json", kTokenizer);
  folder_.write("model/tokenizer_config.json", R"({"eos_token": "</s>"})");
  folder_.write("model/chat_template.jinja", kTemplate);
  const auto files = gather();
  EXPECT_THAT(text(files, "tokenizer_config.json"), HasSubstr("\"chat_template\": \"{% for m"));
  EXPECT_EQ(text(files, "chat_template.jinja"), kTemplate);
}

TEST_F(ModelFiles, ATokenizerThatIsNotReadIsCopiedAllTheSame) {
  folder_.write("model/tokenizer.json", R"({"model": {"type": "WordLevel"}})");
  folder_.write("model/tokenizer_config.json", "broken");
  folder_.write("model/generation_config.json", R"({"eos_token_id": 3})");
  const auto files = gather();
  EXPECT_THAT(text(files, "tokenizer.json"), HasSubstr("WordLevel"));
  EXPECT_EQ(text(files, "tokenizer_config.json"), "broken");
  EXPECT_THAT(text(files, "generation_config.json"), HasSubstr("3"));
}

/// transformers runs no batch of a classifier without a pad token: its config and its tokenizer get one.
TEST_F(ModelFiles, AClassifierLeavesWithAPadToken) {
  folder_.write("model/tokenizer.json", kTokenizer);
  folder_.write("model/tokenizer_config.json", R"({"eos_token": "</s>"})");
  gather();
  EXPECT_FALSE(pad_token_) << "a language model";
  std::string config = kConfig;
  config.insert(1, R"("architectures": ["LlamaForSequenceClassification"], )");
  folder_.write("model/config.json", config);
  const auto files = gather();
  EXPECT_EQ(pad_token_, 0) << "what ends a text";
  EXPECT_EQ(io::parse_json(text(files, "tokenizer_config.json"))->find("pad_token")->text, "</s>");
  EXPECT_EQ(io::parse_json(text(files, "special_tokens_map.json"))->find("pad_token")->text, "</s>");
  folder_.write("model/tokenizer_config.json", R"({"eos_token": "</s>", "pad_token": "<end>"})");
  EXPECT_FALSE(text(gather(), "tokenizer_config.json").empty());
  EXPECT_EQ(pad_token_, 1) << "the tokenizer's own";
  std::filesystem::remove(folder_.path("model/tokenizer.json"));
  gather();
  EXPECT_FALSE(pad_token_) << "without a tokenizer it is for others to say";
  config.insert(1, R"("pad_token_id": 5, )");
  folder_.write("model/config.json", config);
  gather();
  EXPECT_FALSE(pad_token_) << "the config names one";
}

/// Rows end with what the tokenizer puts behind each text: as padding it would not be read.
TEST_F(ModelFiles, APadTokenIsNotWhatEndsEachRow) {
  std::string tokenizer = kTokenizer, config = kConfig;
  const std::string none = R"("post_processor": null)";
  tokenizer.replace(tokenizer.find(none), none.size(),
                    R"("post_processor": {"type": "TemplateProcessing", "single": [{"Sequence": {"id": "A",
  "type_id": 0}}, {"SpecialToken": {"id": "</s>", "type_id": 0}}], "pair": [{"Sequence": {"id": "A", "type_id": 0}},
  {"Sequence": {"id": "B", "type_id": 0}}], "special_tokens": {"</s>": {"id": "</s>", "ids": [0],
  "tokens": ["</s>"]}}})");
  folder_.write("model/tokenizer.json", tokenizer);
  folder_.write("model/tokenizer_config.json", R"({"eos_token": "</s>", "unk_token": "<end>"})");
  config.insert(1, R"("architectures": ["LlamaForSequenceClassification"], )");
  folder_.write("model/config.json", config);
  gather();
  EXPECT_EQ(pad_token_, 2) << "the config's end of a text, behind which no row ends";
}

TEST_F(ModelFiles, BytesByNameTakeNoTokenizerAlong) {
  folder_.write("model/tokenizer.json", kTokenizer);
  EXPECT_TRUE(gather(", tokenizer: bytes").empty());
}

TEST_F(ModelFiles, AnotherVocabularyThanThePretrainedModelsIsTold) {
  const auto notes_of = [&](const std::string& init, const std::string& own) {
    folder_.write("model/tokenizer.json", own);
    const auto config = settings::parse_run_config(
        "model: {path: " + folder_.path("model") + ", init: " + init +
            "}\ndata: {train: x.jsonl, tokenizer: " + folder_.path("tokenizer") + ", sequence_length: 32}\n",
        "run.yaml");
    EXPECT_TRUE(config);
    const auto files = model_files_apart(*config, *settings::load_model_config(config->model));
    EXPECT_TRUE(files);
    return files->notes;
  };
  std::string larger = kTokenizer;
  larger.replace(larger.find("\"b\": 3"), 6, "\"c\": 3, \"b\": 4");
  const auto notes = notes_of("pretrained", larger);
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_THAT(notes.front(), HasSubstr("another vocabulary (4 ids)"));
  EXPECT_THAT(notes.front(), HasSubstr("(5 ids)"));
  EXPECT_TRUE(notes_of("random", larger).empty());
  EXPECT_TRUE(notes_of("pretrained", std::string(kTokenizer) + "\n").empty());
}

// What the disk does not give is no smaller set of files.
TEST_F(ModelFiles, AFileThatCannotBeReadEndsTheGathering) {
  for (const char* name : {"tokenizer_config.json", "special_tokens_map.json", "chat_template.jinja"}) {
    const std::string path = folder_.path("tokenizer/" + std::string(name));
    std::filesystem::create_symlink(path, path);  // to itself: it is there, and no reader gets anywhere
    const auto config = settings::parse_run_config("model: {path: " + folder_.path("model") +
                                                       ", init: random}\ndata: {train: x.jsonl, tokenizer: " +
                                                       folder_.path("tokenizer") + ", sequence_length: 32}\n",
                                                   "run.yaml");
    ASSERT_TRUE(config);
    const auto files = model_files(*config, *settings::load_model_config(config->model));
    ASSERT_FALSE(files) << name;
    EXPECT_EQ(files.error().code, ErrorCode::kIo) << files.error().message();
    EXPECT_THAT(files.error().message(), HasSubstr(name));
    std::filesystem::remove(path);
  }
}

TEST_F(ModelFiles, ATemplateThatIsNotThereIsNamed) {
  folder_.write("model/tokenizer.json", kTokenizer);
  const auto config =
      settings::parse_run_config("model: {path: " + folder_.path("model") +
                                     ", init: random}\ndata: {train: x.jsonl, chat_template: none.jinja}\n",
                                 "run.yaml");
  const auto files = model_files(*config, *settings::load_model_config(config->model));
  ASSERT_FALSE(files);
  EXPECT_EQ(files.error().code, ErrorCode::kBadData);
  EXPECT_THAT(files.error().message(), HasSubstr("none.jinja"));
}

}  // namespace
}  // namespace plimsoll::training
