// The registry: every declaration is sound, everything printed from it reads back, the documentation is
// current.
#include "settings/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "io/temporary_folder.h"
#include "io/yaml.h"

namespace plimsoll::settings {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

TEST(Settings, AreDeclaredOnceAndSoundly) {
  std::set<std::string> paths;
  RunConfig run;
  for (const Setting& setting : settings()) {
    EXPECT_TRUE(paths.insert(setting.path).second) << setting.path;
    EXPECT_TRUE(setting.path == "task" || setting.path == "paths" ||
                setting.path.find('.') != std::string::npos)
        << setting.path;
    EXPECT_FALSE(setting.help.empty()) << setting.path;
    EXPECT_LT(setting.help.size(), 90U) << setting.path;
    EXPECT_EQ(setting.help.find('\n'), std::string::npos);
    // The default is a value that the setting takes.
    const std::string text = setting_text(setting, RunConfig{});
    const auto value = io::parse_yaml(text);
    ASSERT_TRUE(value) << setting.path << ": " << text;
    const auto status = assign_setting(setting, *value, run);
    EXPECT_TRUE(status) << setting.path << ": " << (status ? "" : status.error().message());
    EXPECT_EQ(setting_text(setting, run), text) << setting.path;
  }
}

/// Everything under src/ but where settings are declared, printed and parsed.
std::string readers_text() {
  std::string text;
  const std::filesystem::path source = std::string(PLIMSOLL_TEST_DIR) + "/../src";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(source)) {
    const std::string name = entry.path().filename().string();
    const bool declares = name == "settings.cpp" || name == "training_settings.cpp" || name == "run_config.h";
    if (entry.is_regular_file() && !declares) text += io::read_all(entry.path().string());
  }
  return text;
}

/// ".name" or "->name" stands in the text.
bool is_member(const std::string& text, const std::string& name) {
  for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
    const char before = text[at - 1], behind = text[at + name.size()];
    if ((before == '.' || before == '>') && !std::isalnum(behind) && behind != '_') return true;
  }
  return false;
}

/// A setting that nothing reads is marked as such: its field is named nowhere.
TEST(Settings, AreReadOrPlanned) {
  const std::string readers = readers_text();
  for (const Setting& setting : settings()) {
    const std::string name = setting.path.substr(setting.path.rfind('.') + 1);
    const bool is_planned = setting.field == nullptr;
    const bool is_constant = setting.available.size() == 1;
    EXPECT_TRUE(is_planned || is_constant || is_member(readers, name)) << setting.path << " has no reader";
    if (!is_planned) continue;
    EXPECT_FALSE(setting.instead.empty()) << setting.path << " says nothing of what to do instead";
    EXPECT_THAT(settings_markdown(), HasSubstr(name));
    EXPECT_THAT(setting_help(setting), EndsWith("(not available in this version)"));
  }
}

TEST(Settings, CoverTheContract) {
  // The run file of the command line's contract, key by key.
  for (const char* path : {"model.path",
                           "model.preset",
                           "model.init",
                           "data.train",
                           "data.eval",
                           "data.sequence_length",
                           "data.shuffle",
                           "training.global_batch_size",
                           "training.micro_batch_size",
                           "training.max_steps",
                           "training.num_epochs",
                           "training.gradient_accumulation_steps",
                           "training.precision",
                           "training.fp8.recipe",
                           "training.fp8.margin",
                           "training.fp8.fp8_format",
                           "training.fp8.amax_history_len",
                           "training.fp8.amax_compute_algo",
                           "training.loss_scale.init_scale",
                           "training.loss_scale.growth_factor",
                           "training.loss_scale.backoff_factor",
                           "training.loss_scale.growth_interval",
                           "training.optimizer",
                           "training.learning_rate",
                           "training.lr_scheduler",
                           "training.warmup_steps",
                           "training.adam_beta1",
                           "training.adam_beta2",
                           "training.adam_epsilon",
                           "training.weight_decay",
                           "training.weight_decay_scope",
                           "training.max_grad_norm",
                           "training.seed",
                           "memory.budget",
                           "memory.recompute",
                           "memory.offload",
                           "lora.r",
                           "lora.lora_alpha",
                           "lora.lora_dropout",
                           "lora.target_modules",
                           "lora.adapter",
                           "quantization.load_in_4bit",
                           "quantization.bnb_4bit_quant_type",
                           "quantization.bnb_4bit_use_double_quant",
                           "runtime.device",
                           "runtime.profile",
                           "runtime.threads",
                           "output.dir",
                           "output.save_steps",
                           "output.save_total_limit",
                           "output.data_cache_limit",
                           "debug.dump_dir",
                           "debug.dump"})
    EXPECT_NE(find_setting(path), nullptr) << path;
}

/// Assigns a YAML text to a setting; the error's text, or the value printed again.
std::string assigned(const std::string& path, const std::string& yaml) {
  const Setting* setting = find_setting(path);
  const auto value = io::parse_yaml(yaml);
  if (!setting || !value) return "no such setting or value";
  RunConfig run;
  const auto status = assign_setting(*setting, *value, run);
  if (!status) {
    EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
    EXPECT_FALSE(status.error().hint.empty());
    return status.error().what;
  }
  return setting_text(*setting, run);
}

TEST(AssignSetting, TakesAndRefuses) {
  struct Row {
    const char* path;
    const char* yaml;
    const char* result;
  };
  const Row rows[] = {
      {"data.shuffle", "false", "false"},
      {"data.shuffle", "no", "data.shuffle is \"no\", expected true or false"},
      {"data.shuffle", "1", "data.shuffle is 1, expected true or false"},
      {"data.sequence_length", "128", "128"},
      {"data.sequence_length", "1e3", "1000"},
      {"data.sequence_length", "1", "data.sequence_length is 1, expected an integer from 2 to 268435456"},
      {"data.sequence_length", "-5", "data.sequence_length is -5, expected an integer from 2 to 268435456"},
      {"data.sequence_length", "99999999999999999999",
       "data.sequence_length is 99999999999999999999, expected an integer from 2 to 268435456"},
      {"data.sequence_length", "12.5",
       "data.sequence_length is 12.5, expected an integer from 2 to 268435456"},
      {"data.sequence_length", "null",
       "data.sequence_length is null, expected an integer from 2 to 268435456"},
      {"data.sequence_length", "[3]",
       "data.sequence_length is a list, expected an integer from 2 to 268435456"},
      {"data.train", "a.npy", "[a.npy]"},
      {"data.train", "[a.npy, 7]", "[a.npy, \"7\"]"},
      {"data.train", "null", "[]"},
      {"data.train", "{a: 1}", "data.train is a map, expected text or a list"},
      {"data.train", "[[a]]", "data.train is a list, expected text or a list"},
      {"training.learning_rate", "3e-4", "0.0003"},
      {"training.learning_rate", "1", "1"},
      {"training.learning_rate", ".nan",
       "training.learning_rate is .nan, expected a number from 0 to 1000000"},
      {"training.learning_rate", ".inf",
       "training.learning_rate is .inf, expected a number from 0 to 1000000"},
      {"training.learning_rate", "-1e-4",
       "training.learning_rate is -1e-4, expected a number from 0 to 1000000"},
      {"training.learning_rate", "fast",
       "training.learning_rate is \"fast\", expected a number from 0 to 1000000"},
      {"training.num_epochs", "0",
       "training.num_epochs is 0, expected a number above 0 to 1000000000, or null"},
      {"training.num_epochs", "0.5", "0.5"},
      {"training.micro_batch_size", "auto", "auto"},
      {"training.micro_batch_size", "null", "auto"},
      {"training.micro_batch_size", "4", "4"},
      {"training.micro_batch_size", "none",
       "training.micro_batch_size is \"none\", expected an integer from 1 to 16777216, or auto"},
      {"training.max_grad_norm", "null", "null"},
      {"training.max_grad_norm", "0", "0"},
      {"training.weight_decay_scope", "all", "all"},
      {"training.weight_decay_scope", "some",
       "training.weight_decay_scope is \"some\", expected one of matrices, all"},
      {"model.path", "2024", "\"2024\""},
      {"model.path", "null", "null"},
      {"model.path", "[a]", "model.path is a list, expected text"},
      {"memory.budget", "6GiB", "6442450944"},
      {"memory.budget", "80%", "80%"},
      {"memory.budget", "auto", "auto"},
      {"output.data_cache_limit", "10GiB", "10GiB"},
      {"output.data_cache_limit", "1500", "1500"},
      {"output.data_cache_limit", "0", "0"},
      {"output.data_cache_limit", "null", "null"},
      {"output.data_cache_limit", "lots",
       "output.data_cache_limit is \"lots\", expected a size such as 10GiB, or null"},
      {"output.data_cache_limit", "-1",
       "output.data_cache_limit is -1, expected a size such as 10GiB, or null"},
      {"output.data_cache_limit", "[1]",
       "output.data_cache_limit is a list, expected a size such as 10GiB, or null"},
      {"memory.budget", "1000", "1000"},
      {"memory.budget", "0",
       "memory.budget is 0, expected auto, a size such as 6GiB, or a share such as 80%"},
      {"memory.budget", "0%",
       "memory.budget is \"0%\", expected auto, a size such as 6GiB, or a share such as 80%"},
      {"memory.budget", "101%",
       "memory.budget is \"101%\", expected auto, a size such as 6GiB, or a share such as 80%"},
      {"memory.budget", "-1GiB",
       "memory.budget is \"-1GiB\", expected auto, a size such as 6GiB, or a share such as 80%"},
      {"memory.budget", "6 gigs",
       "memory.budget is \"6 gigs\", expected auto, a size such as 6GiB, or a share such as 80%"},
      {"memory.budget", "true",
       "memory.budget is true, expected auto, a size such as 6GiB, or a share such as 80%"},
      {"memory.recompute", "none", "none"},
      {"memory.recompute", "{every: 2}", "{every: 2}"},
      {"memory.recompute", "{segments: 4}", "{segments: 4}"},
      {"memory.recompute", "{segments: null}", "segments"},
      {"memory.recompute", "segments", "segments"},
      {"memory.recompute", "null", "auto"},
      {"memory.recompute", "{layers: [\"*.mlp\"]}", "{layers: [\"*.mlp\"]}"},
      {"memory.recompute", "{every: 0}", "memory.recompute: every is 0, expected a count from 1"},
      {"memory.recompute", "{segments: many}",
       "memory.recompute: segments is \"many\", expected a count from 1"},
      {"memory.recompute", "{layers: []}", "memory.recompute: layers names none"},
      {"memory.recompute", "some",
       "memory.recompute is \"some\", expected auto, none, full, attention, mlp, selective, segments, "
       "{every: n}, {segments: k} or {layers: [patterns]}"},
      {"memory.offload", "{activations: host}", "{activations: host}"},
      {"memory.offload", "all", "memory.offload is \"all\", expected auto, none or a map"},
      {"model.overrides", "{num_hidden_layers: 4}", "{num_hidden_layers: 4}"},
      {"model.overrides", "4", "model.overrides is 4, expected a map"},
      {"training.freeze", "[\"model.layers.[0-3].*\"]", "[\"model.layers.[0-3].*\"]"},
      {"training.freeze", "lm_head.weight", "[lm_head.weight]"},
      {"training.param_groups", "null", "null"},
      {"training.param_groups",
       "[{params: [\"*.bias\"], learning_rate: 1.0e-3, weight_decay: 0, betas: [0.8, 0.9]}, {params: "
       "lm_head.*}]",
       "[{params: [\"*.bias\"], learning_rate: 0.001, weight_decay: 0, betas: [0.8, 0.9]}, {params: "
       "[\"lm_head.*\"]}]"},
      {"training.param_groups", "{params: [a]}", "training.param_groups is a map, expected a list of groups"},
      {"training.param_groups", "[a]", "training.param_groups[0] is \"a\", expected a map"},
      {"training.param_groups", "[{params: [a]}, {lr: 1}]", "training.param_groups[1]: there is no 'lr'"},
      {"training.param_groups", "[{learning_rate: 1}]", "training.param_groups[0] has no params"},
      {"training.param_groups", "[{params: []}]",
       "training.param_groups[0].params is a list, expected patterns of parameters' names"},
      {"training.param_groups", "[{params: [a], weight_decay: -1}]",
       "training.param_groups[0].weight_decay is -1, expected a number from 0 to 1000"},
      {"training.param_groups", "[{params: [a], betas: [0.9]}]",
       "training.param_groups[0].betas is a list, expected two numbers from 0 to below 1"},
      {"training.param_groups", "[{params: [a], betas: [0.9, 1]}]",
       "training.param_groups[0].betas is 1, expected a number from 0 to 0.999999999"},
      {"debug.dump", "[loss, logits]", "[loss, logits]"},
      {"debug.dump", "[loss, weights]",
       "debug.dump is \"weights\", expected a list of loss, gradients, logits, parameters, buffers, "
       "quantized, operands"},
  };
  for (const Row& row : rows)
    EXPECT_EQ(assigned(row.path, row.yaml), row.result) << row.path << "=" << row.yaml;
}

TEST(RunConfigYaml, ReadsBackToTheSameRun) {
  const std::vector<std::string> overrides = {
      "model.preset=smollm-135m",
      "model.overrides={num_hidden_layers: 4, hidden_act: silu}",
      "data.train=[a.npy, 'b c.txt']",
      "training.micro_batch_size=4",
      "training.learning_rate=1.5e-7",
      "memory.budget=80%",
      "training.max_steps=3",
      "training.freeze=['*.bias', a.b]",
      "training.param_groups=[{params: ['[!a]*'], weight_decay: 0.5, betas: [0.1, 0.2]}]"};
  const auto run = parse_run_config("", "run.yaml", overrides);
  ASSERT_TRUE(run) << run.error().message();
  const std::string yaml = run_config_yaml(*run);
  EXPECT_THAT(yaml, HasSubstr("\nlora: null\n"));
  EXPECT_THAT(yaml, Not(HasSubstr("fp8:"))) << "what has no effect is not recorded";
  EXPECT_THAT(yaml, Not(HasSubstr("momentum:")));
  EXPECT_THAT(yaml, HasSubstr("  overrides: {num_hidden_layers: 4, hidden_act: silu}\n"));
  const auto again = parse_run_config(yaml, "recorded.yaml");
  ASSERT_TRUE(again) << again.error().message() << "\n" << yaml;
  EXPECT_EQ(run_config_yaml(*again), yaml);
  EXPECT_TRUE(changed_what(*run, *again).empty());
}

TEST(ChangedWhat, LeavesHowAside) {
  const std::vector<std::string> one = {"model.preset=gpt2"};
  const std::vector<std::string> how = {"model.preset=gpt2", "training.micro_batch_size=2",
                                        "runtime.threads=3", "output.dir=x"};
  const std::vector<std::string> what = {"model.preset=gpt2", "training.seed=7", "data.shuffle=false"};
  const auto a = parse_run_config("", "a", one);
  ASSERT_TRUE(a);
  EXPECT_TRUE(changed_what(*a, *parse_run_config("", "b", how)).empty());
  EXPECT_THAT(changed_what(*a, *parse_run_config("", "c", what)),
              ElementsAre("data.shuffle", "training.seed"));
}

TEST(SettingsMarkdown, IsWhatTheDocumentationHolds) {
  const std::string path = std::string(PLIMSOLL_TEST_DIR) + "/../docs/settings.md";
  if (std::getenv("PLIMSOLL_UPDATE_DOCS")) std::ofstream(path) << settings_markdown();
  EXPECT_EQ(io::read_all(path), settings_markdown())
      << "run this test with PLIMSOLL_UPDATE_DOCS=1 to write docs/settings.md";
}

TEST(SettingsHelp, HasALineForEach) {
  const std::string help = settings_help();
  EXPECT_THAT(help, HasSubstr("one of fp32, tf32, bf16, fp16, fp8"));
  EXPECT_THAT(help,
              HasSubstr("adapters of parameters that are not linear layers (not available in this version)"));
  EXPECT_THAT(help, HasSubstr("only with training.optimizer: adamw, adam"));
  for (const Setting& setting : settings()) {
    if (setting.is_for_tests) continue;
    EXPECT_THAT(help, HasSubstr("  " + setting.path + " "));
  }
}

TEST(SettingsHelp, LeavesOutWhatIsForTestsAndTakesItNevertheless) {
  EXPECT_THAT(settings_help(), HasSubstr("runtime.discrete.memory"));
  for (const char* path : {"runtime.discrete.seed", "runtime.discrete.check"}) {
    EXPECT_TRUE(find_setting(path)->is_for_tests);
    EXPECT_THAT(settings_help(), testing::Not(HasSubstr(path)));
    EXPECT_THAT(settings_markdown(), testing::Not(HasSubstr(path)));
  }
  const std::vector<std::string> given = {"model.preset=gpt2", "runtime.device=discrete",
                                          "runtime.discrete.seed=7", "runtime.discrete.check=true"};
  const auto run = parse_run_config("", "run.yaml", given);
  ASSERT_TRUE(run) << run.error().message();
  EXPECT_EQ(run->runtime.discrete.seed, 7U);
  EXPECT_TRUE(run->runtime.discrete.check);
}

}  // namespace
}  // namespace plimsoll::settings
