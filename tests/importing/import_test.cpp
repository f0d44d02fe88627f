// Configurations of other programs as run files: those of configs/, what differs in silence between the
// programs, bad values, hostile files.
#include "importing/import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "imported.h"
#include "importing/table.h"
#include "io/file.h"
#include "io/json.h"
#include "settings/run_config.h"
#include "settings/settings.h"

namespace plimsoll::importing {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::vector<std::string> config_files() {
  std::vector<std::string> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(PLIMSOLL_TEST_DIR) + "/importing/configs"))
    files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  return files;
}

std::string read(const std::string& path) { return *io::read_small_file(path, 1 << 20); }

TEST(ImportConfigs, AreTwelveAtLeast) { EXPECT_GE(config_files().size(), 12U); }

/// Each leaf of the source has one report; what has a setting stands in the run file; the file's dialect is
/// told by its keys.
TEST(ImportConfigs, EachKeyIsAccountedFor) {
  for (const std::string& path : config_files()) {
    const std::string name = std::filesystem::path(path).filename();
    const std::vector<InputFile> files = {{name, read(path)}};
    const auto sources = read_source(files[0].text, name, "");
    ASSERT_TRUE(sources) << name << ": " << sources.error().message();
    EXPECT_EQ(name.substr(0, name.find('_')), name_of(sources->back().dialect));
    const auto imported = import_run(files, "");
    ASSERT_TRUE(imported) << name << ": " << imported.error().message();
    std::vector<std::string> keys, reported;
    for (const Source& source : *sources)
      for (const SourceKey& key : source.keys) keys.push_back(key.name);
    for (const KeyReport& report : imported->keys) {
      reported.push_back(report.key.name);
      EXPECT_THAT(imported->run_file, HasSubstr(report.key.name)) << name;
      EXPECT_TRUE(report.fate == Fate::kMapped || !report.note.empty()) << name << " " << report.key.name;
      if (report.fate != Fate::kMapped) continue;
      EXPECT_THAT(imported->run_file, HasSubstr(report.setting.substr(report.setting.rfind('.') + 1) + ": "))
          << name << " " << report.key.name;
    }
    std::sort(keys.begin(), keys.end());
    std::sort(reported.begin(), reported.end());
    EXPECT_EQ(keys, reported) << name;
    EXPECT_TRUE(settings::parse_run_config(imported->run_file, name)) << name;
  }
}

TEST(ImportConfigs, KnowTheirKeys) {
  std::vector<std::string> unknown;
  for (const std::string& path : config_files()) {
    const std::vector<InputFile> files = {{"file", read(path)}};
    const auto imported = import_run(files, "");
    ASSERT_TRUE(imported);
    for (const KeyReport& report : imported->keys)
      if (report.note.starts_with("unknown;") || report.note.ends_with("known here"))
        unknown.push_back(report.key.name);
  }
  EXPECT_THAT(unknown, testing::ElementsAre("unknown_key", "max_grad_nrom"));
}

/// A row that no piece of code and no setting answers for would leave a key to chance.
TEST(ImportTables, NameSettingsThatThereAre) {
  for (const auto rows :
       {transformers_rows(), trl_rows(), torchtune_rows(), axolotl_rows(), deepspeed_rows()}) {
    std::set<std::string_view> keys;
    for (const Row& row : rows) {
      EXPECT_TRUE(keys.insert(row.key).second) << row.key << " stands twice";
      const bool may_lack = row.rule != Rule::kSame && row.rule != Rule::kWords && row.rule != Rule::kNullToo;
      EXPECT_TRUE((may_lack && row.setting.empty()) || settings::find_setting(row.setting) != nullptr)
          << row.key;
      EXPECT_TRUE(row.rule != Rule::kNoEqual || !row.note.empty()) << row.key;
    }
  }
}

/// data.text_key is of all data: a field of one set among several has no equal.
TEST(Import, AFieldOfOneDataSetAmongSeveral) {
  const std::string one = "base_model: x\ndatasets:\n  - {path: a.jsonl, type: completion, field: body}\n";
  EXPECT_EQ(setting_of(import_text(one), "data.text_key"), "body");
  const auto two = import_text(one + "  - {path: b.jsonl, type: chat_template}\n");
  EXPECT_EQ(setting_of(two, "data.text_key"), "null");
  EXPECT_EQ(fate_of(two, "datasets[0].field"), "no equal");
  EXPECT_EQ(setting_of(import_text(one + "  - {path: b.jsonl, field: body}\n"), "data.text_key"), "body");
}

/// A schedule that the other program has is none of a bad value.
TEST(Import, AScheduleWithoutAnEqual) {
  const auto imported = import_text("base_model: x\nlr_scheduler: rex\n");
  EXPECT_EQ(fate_of(imported, "lr_scheduler"), "no equal");
  EXPECT_FALSE(import_text("base_model: x\nlr_scheduler: cosin\n"));
}

TEST(Import, ZerosOffload) {
  const auto offload = [](const std::string& parts) {
    return import_text("{\"train_batch_size\": 8, \"zero_optimization\": {\"stage\": 3, " + parts + "}}");
  };
  const auto host = offload("\"offload_optimizer\": {\"device\": \"cpu\", \"pin_memory\": true}");
  EXPECT_EQ(setting_of(host, "memory.offload"), "{optimizer: host}");
  EXPECT_EQ(fate_of(host, "zero_optimization.offload_optimizer.device"), "mapped");
  const auto disk = offload(
      "\"offload_optimizer\": {\"device\": \"nvme\", \"nvme_path\": \"/fast\"}, "
      "\"offload_param\": {\"device\": \"cpu\"}");
  EXPECT_EQ(setting_of(disk, "memory.offload"), "{optimizer: disk, parameters: host}");
  EXPECT_EQ(setting_of(disk, "memory.offload_dir"), "/fast");
  EXPECT_EQ(
      fate_of(offload("\"offload_param\": {\"device\": \"none\"}"), "zero_optimization.offload_param.device"),
      "harmless");
}

TEST(Import, WritesTransformersDefaults) {
  const auto imported = import_text("output_dir: x\n");
  const std::pair<const char*, const char*> rows[] = {{"training.learning_rate", "5e-05"},
                                                      {"training.lr_scheduler", "linear"},
                                                      {"training.weight_decay", "0"},
                                                      {"training.global_batch_size", "8"},
                                                      {"training.num_epochs", "3"},
                                                      {"training.precision", "fp32"},
                                                      {"training.adam_epsilon", "1e-08"},
                                                      {"training.max_grad_norm", "1"},
                                                      {"training.seed", "42"},
                                                      {"output.save_steps", "500"},
                                                      {"training.logging_steps", "500"},
                                                      {"data.packing", "pad"},
                                                      {"training.weight_decay_scope", "matrices"}};
  for (const auto& [path, value] : rows) EXPECT_EQ(setting_of(imported, path), value) << path;
}

TEST(Import, WritesTrlsDefaults) {
  const auto imported = import_text("max_length: 99\n");
  const std::pair<const char*, const char*> rows[] = {{"data.loss", "trl"},
                                                      {"data.append_eos", "trl"},
                                                      {"data.long_documents", "truncate"},
                                                      {"data.add_special_tokens", "true"},
                                                      {"data.sequence_length", "99"},
                                                      {"training.precision", "bf16"},
                                                      {"data.packing", "pad"},
                                                      {"training.logging_steps", "10"},
                                                      {"training.learning_rate", "2e-05"},
                                                      {"training.state.weights", "fp32"}};
  for (const auto& [path, value] : rows) EXPECT_EQ(setting_of(imported, path), value) << path;
  EXPECT_EQ(setting_of(import_text("packing: false\n"), "data.sequence_length"), "1024");
  EXPECT_EQ(setting_of(import_text("packing: false\nfp16: true\n"), "training.precision"), "fp16");
  EXPECT_EQ(setting_of(import_text("packing: true\n"), "data.packing"), "best_fit");
  EXPECT_EQ(setting_of(import_text("packing: true\npacking_strategy: wrapped\n"), "data.packing"), "stream");
  EXPECT_EQ(setting_of(import_text("completion_only_loss: false\n"), "data.loss"), "all");
  EXPECT_EQ(setting_of(import_text("assistant_only_loss: true\n"), "data.loss"), "assistant");
  EXPECT_EQ(setting_of(import_text("assistant_only_loss: true\ncompletion_only_loss: true\n"), "data.loss"),
            "assistant");
  EXPECT_EQ(setting_of(import_text("assistant_only_loss: true\ncompletion_only_loss: false\n"), "data.loss"),
            "all_assistant");
}

/// What means something else than its name here, or than a reader would think.
TEST(Import, MindsWhatDiffersInSilence) {
  const auto says = [](const char* text, const char* path) { return setting_of(import_text(text), path); };
  EXPECT_EQ(says("output_dir: x\nwarmup_steps: 0.3\n", "training.warmup_ratio"), "0.3");
  EXPECT_EQ(says("output_dir: x\nwarmup_steps: 3\n", "training.warmup_steps"), "3");
  EXPECT_EQ(says("output_dir: x\nmax_steps: -1\nnum_train_epochs: 2\n", "training.num_epochs"), "2");
  EXPECT_EQ(says("output_dir: x\nmax_steps: 7\nnum_train_epochs: 2\n", "training.max_steps"), "7");
  EXPECT_EQ(says("output_dir: x\nmax_grad_norm: null\n", "training.max_grad_norm"), "null");
  EXPECT_EQ(says("output_dir: x\nlearning_rate: '2e-5'\n", "training.learning_rate"), "2e-05");
  EXPECT_EQ(says("output_dir: x\nmax_steps: 50\nsave_steps: 0.1\n", "output.save_steps"), "5");
  EXPECT_EQ(says("output_dir: x\nper_device_train_batch_size: 2\ngradient_accumulation_steps: 8\n",
                 "training.global_batch_size"),
            "16");
  EXPECT_EQ(says("output_dir: x\nlr_scheduler_type: SchedulerType.COSINE\n", "training.lr_scheduler"),
            "cosine");
  EXPECT_EQ(says("model: {_component_: m}\nclip_grad_norm: null\n", "training.max_grad_norm"), "null");
  EXPECT_EQ(says("model: {_component_: m}\n", "training.max_grad_norm"), "null");
  EXPECT_EQ(says("model: {_component_: m}\n", "training.weight_decay_scope"), "all");
  EXPECT_EQ(says("model: {_component_: m}\n", "training.lr_scheduler"), "constant");
  EXPECT_EQ(says("model: {_component_: m}\ndtype: bf16\n", "training.state.moments"), "bf16");
  EXPECT_EQ(
      says("model: {_component_: m}\noutput_dir: a/b\ncheckpointer: {checkpoint_dir: '${output_dir}/c'}\n",
           "model.path"),
      "a/b/c");
  EXPECT_EQ(says("base_model: x\nmicro_batch_size: 3\n", "training.global_batch_size"), "3");
  EXPECT_EQ(says("base_model: x\n", "training.lr_scheduler"), "cosine");
}

TEST(Import, MindsDeepspeedsAdamAndItsWarmUp) {
  const auto adam = import_text(R"({"train_batch_size": 8, "optimizer": {"type": "Adam", "params": {"lr": 0.1,
      "weight_decay": 0.2}}, "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 5}}})");
  EXPECT_EQ(setting_of(adam, "training.optimizer"), "adamw");
  EXPECT_EQ(setting_of(adam, "training.weight_decay_scope"), "all");
  EXPECT_EQ(setting_of(adam, "training.lr_scheduler"), "constant_with_warmup");
  EXPECT_EQ(fate_of(adam, "optimizer.type"), "mapped");
  EXPECT_EQ(fate_of(adam, "scheduler.type"), "no equal") << "by the logarithm";
  const auto linear = import_text(R"({"train_batch_size": 8, "scheduler": {"type": "WarmupLR",
      "params": {"warmup_type": "linear", "warmup_max_lr": 0.5}}, "optimizer": {"type": "Adam", "params":
      {"lr": 0.1, "weight_decay": 0.2, "adam_w_mode": false}}})");
  EXPECT_EQ(fate_of(linear, "scheduler.type"), "mapped");
  EXPECT_EQ(setting_of(linear, "training.learning_rate"), "0.5");
  EXPECT_EQ(fate_of(linear, "optimizer.type"), "no equal") << "its decay goes through the moments";
}

TEST(Import, JoinsDeepspeedWithTheArgumentsOfItsAuto) {
  const std::string folder = std::string(PLIMSOLL_TEST_DIR) + "/importing/configs/";
  const std::vector<InputFile> files = {{"args.yaml", read(folder + "transformers_script.yaml")},
                                        {"ds.json", read(folder + "deepspeed_auto.json")}};
  const auto imported = import_run(files, "");
  EXPECT_EQ(setting_of(imported, "training.learning_rate"), "0.002");
  EXPECT_EQ(setting_of(imported, "training.lr_scheduler"), "linear") << "DeepSpeed's scheduler";
  EXPECT_EQ(setting_of(imported, "training.weight_decay_scope"), "all");
  EXPECT_EQ(setting_of(imported, "training.global_batch_size"), "4");
  EXPECT_EQ(imported->count(Fate::kNoEqual), 0);
  EXPECT_EQ(fate_of(imported, "optimizer.params.lr"), "mapped");
  const auto nested = import_text(
      "output_dir: x\nlearning_rate: 0.25\ndeepspeed: {zero_optimization: {stage: 2}, "
      "gradient_clipping: 0.5, train_micro_batch_size_per_gpu: auto}\n");
  EXPECT_EQ(setting_of(nested, "training.max_grad_norm"), "0.5");
  EXPECT_EQ(fate_of(nested, "deepspeed.zero_optimization.stage"), "harmless");
  const std::vector<InputFile> two = {{"a", "output_dir: x\n"}, {"b", "packing: true\n"}};
  EXPECT_THAT(import_run(two, "").error().what, HasSubstr("two runs"));
}

TEST(Import, SaysAllBadValuesAtOnceWithTheirLines) {
  const auto imported = import_text(
      "output_dir: x\nlearning_rate: fast\nper_device_train_batch_size: 0\nlr_scheduler_type: cosin\nbf16: "
      "maybe\n"
      "seed: -1\nsave_strategy: often\n");
  ASSERT_FALSE(imported);
  std::set<std::string> said = {imported.error().message()};
  for (const Error& other : imported.error().more) said.insert(other.message());
  EXPECT_EQ(said.size(), 6U);
  EXPECT_TRUE(
      said.contains("learning_rate is \"fast\", expected a number from 0 to 1000000: args.yaml line 2"));
  EXPECT_TRUE(said.contains("lr_scheduler_type is \"cosin\", expected another word: args.yaml line 4"));
  EXPECT_TRUE(said.contains("bf16 is \"maybe\", expected true or false: args.yaml line 5"));
  EXPECT_THAT(import_text("output_dir: x\nbf16: true\nfp16: true\n").error().what,
              HasSubstr("one of bf16 and fp16"));
}

TEST(Import, HasNoSecretInWhatItWrites) {
  const auto imported = import_text("output_dir: x\nhub_token: hf_abcdef\n");
  ASSERT_TRUE(imported);
  EXPECT_THAT(imported->run_file, Not(HasSubstr("hf_abcdef")));
  EXPECT_THAT(io::to_json(import_event(*imported)), Not(HasSubstr("hf_abcdef")));
}

TEST(Import, TellsInItsEventWhatBecameOfEachKey) {
  const auto imported = import_text("output_dir: x\ndatasets: [{path: a.jsonl}]\npacking: true\nnoise: 3\n");
  ASSERT_TRUE(imported) << imported.error().message();
  const auto event = io::parse_json(io::to_json(import_event(*imported)));
  ASSERT_TRUE(event);
  EXPECT_EQ(event->find("event")->text, "import");
  const io::Tree& path = event->find("keys")->items[1];
  EXPECT_EQ(path.find("key")->text, "datasets[0].path");
  EXPECT_EQ(path.find("value")->text, "a.jsonl");
  EXPECT_EQ(path.find("status")->text, "mapped");
  EXPECT_EQ(path.find("setting")->text, "data.train");
  EXPECT_EQ(event->find("keys")->items[3].find("status")->text, "no equal");
  EXPECT_TRUE(event->find("keys")->items[3].find("setting")->is_null());
  EXPECT_EQ(event->find("mapped")->integer, 3);
}

TEST(Import, RefusesHostileFiles) {
  std::string many = "output_dir: x\n";
  for (int i = 0; i < 6000; ++i) many += "k" + std::to_string(i) + ": 1\n";
  const std::pair<std::string, const char*> rows[] = {
      {"", "a map of settings"},
      {"[1]", "a map of settings"},
      {"output_dir: \xff\xfe", "not UTF-8"},
      {std::string(100'000, '['), "broken YAML"},
      {"a: " + std::string(100'000, '[') + std::string(100'000, ']'), "nested deeper"},
      {"{\"a\":" + std::string(100'000, '['), ""},
      {"output_dir: a\noutput_dir: b\n", "stands twice"},
      {"{\"output_dir\": 1, \"output_dir\": 2}", "twice"},
      {"{\"output_dir\": \"x\", \"learning_rate\": NaN}", ""},
      {"output_dir: x\nlearning_rate: .nan\n", "learning_rate is"},
      {"output_dir: x\nlearning_rate: .inf\n", "learning_rate is"},
      {"output_dir: x\nper_device_train_batch_size: 1e30\n", "per_device_train_batch_size is"},
      {"output_dir: x\nlogging_steps: .nan\n", "logging_steps is"},
      {"output_dir: [a, b]\n", "output_dir is a list"},
      {"model: {path: x}\ndata: {train: y}\n", "needs no import"},
      {"something: else\n", "whose configuration"},
      {many, "more than 5000 keys"}};
  for (const auto& [text, what] : rows) {
    const auto imported = import_text(text);
    ASSERT_FALSE(imported) << text.substr(0, 60);
    EXPECT_EQ(imported.error().code, ErrorCode::kInvalidArgument) << text.substr(0, 60);
    EXPECT_THAT(imported.error().what, HasSubstr(what)) << text.substr(0, 60);
  }
  EXPECT_THAT(import_text("x: 1\n", "torch").error().hint, HasSubstr("torchtune"));
  // Nothing in a key or a value ends its comment.
  const auto broken = import_text("output_dir: x\n\"a\\nmodel: {preset: gpt2}\\n\": \"b\\nseed: 1\"\n");
  ASSERT_TRUE(broken) << broken.error().message();
  EXPECT_EQ(setting_of(broken, "model.preset"), "null");
}

}  // namespace
}  // namespace plimsoll::importing
