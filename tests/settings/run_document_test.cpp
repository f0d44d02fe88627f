// What a mistyped or foreign key is taken to have meant.
#include "settings/run_document.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "settings/run_text.h"

namespace plimsoll::settings {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string hint_for(const std::string& key) {
  const std::vector<std::string> overrides = {key + "=x"};
  const auto run = parse_run_config("{model: {preset: gpt2}}", "run.yaml", overrides);
  return run ? "it is taken" : run.error().hint;
}

TEST(RunDocument, NamesTheSettingThatWasMeant) {
  const std::pair<const char*, const char*> rows[] = {{"lora.rank", "lora.r"},
                                                      {"lora.lora_r", "lora.r"},
                                                      {"lora.alpha", "lora.lora_alpha"},
                                                      {"lora.dropout", "lora.lora_dropout"},
                                                      {"lora_target_modules", "lora.target_modules"},
                                                      {"model.name", "model.path"},
                                                      {"model.model_name", "model.path"},
                                                      {"data.path", "data.train"},
                                                      {"data.val", "data.eval"},
                                                      {"output.path", "output.dir"},
                                                      {"training.device", "runtime.device"},
                                                      {"training.lr", "training.learning_rate"},
                                                      {"training.learning_rte", "training.learning_rate"}};
  for (const auto& [key, meant] : rows)
    EXPECT_EQ(hint_for(key), std::string("did you mean ") + meant + "?") << key;
}

/// use_gpu is no more like training.fp8.recipe than like anything else.
TEST(RunDocument, NamesNoSettingThatIsNotNear) {
  for (const char* name : {"wandb_watch", "unsloth_tiled", "training.my_flag", "x"}) {
    const auto result = parse_run(kRun, {std::string(name) + "=1"});
    ASSERT_FALSE(result);
    EXPECT_THAT(result.error().what, HasSubstr("there is no setting '" + std::string(name) + "'"));
    EXPECT_EQ(result.error().hint, "plimsoll train --help lists the settings") << name;
  }
}

TEST(RunDocument, NamesTheNearestByItsLastNameFirst) {
  const std::pair<const char*, const char*> rows[] = {{"training.sequence_length", "data.sequence_length"},
                                                      {"epochs", "training.num_epochs"},
                                                      {"training.lr_schedule", "training.lr_scheduler"},
                                                      {"trainig.seed", "training"},
                                                      {"training.fp9", "training.fp8"},
                                                      {"data.weight", "data.weights"},
                                                      {"memry", "memory"},
                                                      {"lr", "training.learning_rate"},
                                                      {"data.seq_length", "data.sequence_length"},
                                                      {"dataset", "data.train"},
                                                      {"training.batch_size", "training.global_batch_size"},
                                                      {"remove_unused_column", "remove_unused_columns"}};
  for (const auto& [name, nearest] : rows) {
    const auto result = parse_run(kRun, {std::string(name) + "=1"});
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().hint, "did you mean " + std::string(nearest) + "?") << name;
  }
}

TEST(RunDocument, SaysAllThatIsWrongAtOnce) {
  const auto result = parse_run(
      "modle:\n  preset: gpt2\ntraining:\n  seed: -1\n  optim: adamw_tensor\n  max_steps: 3\n"
      "  bf16: true\n  fp16: true\ndata: 7\n",
      {"training.learning_rate=fast", "output.dirr=x", "nothing"});
  ASSERT_FALSE(result);
  std::vector<std::string> said = {result.error().message() + "; " + result.error().hint};
  for (const Error& other : result.error().more) said.push_back(other.message() + "; " + other.hint);
  EXPECT_THAT(
      said,
      testing::ElementsAre(
          HasSubstr("there is no setting 'modle': run.yaml line 2; did you mean model?"),
          HasSubstr("optim is \"adamw_tensor\", which is not supported: run.yaml line 5; one of "
                    "adamw_torch, "),
          HasSubstr("bf16 and fp16 contradict"), HasSubstr("data is 7, expected a map: run.yaml line 9"),
          HasSubstr("training.seed is -1, expected an integer from 0"),
          HasSubstr("training.learning_rate is \"fast\""),
          HasSubstr("there is no setting 'output.dirr': override output.dirr=x; did you mean "
                    "output.dir?"),
          HasSubstr("'nothing' is no override")));
}

/// Unknown keys, bad values, what contradicts, what has no effect, what is not there yet and what the use
/// lacks: one list.
TEST(RunDocument, SaysWhatChecksFindTogetherWithBadValues) {
  const std::string text =
      "model: {preset: gpt2}\nsed: 1\nglobal_batch_size: 8\nmicro_batch_size: 3\nlearning_rate: fast\n"
      "data: {buckets: 4}\nreport_to: wandb\n"
      "loss_scale: {init_scale: 0.5}\nprecision: fp16\nmodel_init: 3\n";
  const auto result = parse_run_config(text, "run.yaml", {}, RunUse::kTraining);
  ASSERT_FALSE(result);
  EXPECT_THAT(said(result.error()),
              testing::ElementsAre(HasSubstr("no setting 'sed'"), HasSubstr("no setting 'model_init'"),
                                   HasSubstr("training.learning_rate is \"fast\""),
                                   HasSubstr("data.buckets is 4, which has no effect"),
                                   HasSubstr("(3) does not divide training.global_batch_size (8)"),
                                   HasSubstr("init_scale (0.5) is below its min_scale"),
                                   HasSubstr("training.report_to is [wandb], which is not available"),
                                   HasSubstr("data.train names no data")));
}

/// What a mistyped line left unsaid is not wrong as well.
TEST(RunDocument, LeavesOutWhatOnlyFollows) {
  const auto only = [](const char* text, const char* what) {
    const auto result = parse_run_config(text, "run.yaml", {}, RunUse::kTraining);
    ASSERT_FALSE(result) << text;
    EXPECT_THAT(said(result.error()), ElementsAre(HasSubstr(what))) << text;
  };
  only("data: {train: x, evl: y}\ntraining: {eval_steps: 3}\n", "no setting 'data.evl'");
  only("data: {trian: x}\n", "no setting 'data.trian'");
  only("data: 7\n", "data is 7");
  only("data: {train: x}\nglobal_batch_size: many\nmicro_batch_size: 3\n", "global_batch_size is \"many\"");
  only("data: {train: x}\noptim: sdg\nmomentum: 0.9\nnesterov: true\n", "optim is \"sdg\"");
  only("data: {train: x}\nruntime: {device: gpu}\n", "runtime.device is \"gpu\", expected");
}

TEST(RunDocument, OfAnotherProgramsFileItNamesImport) {
  const auto result = parse_run(
      "remove_unused_columns: true\npush_to_hub: false\ndo_train: true\nblock_size: 3\neval_on_start: "
      "true\n");
  ASSERT_FALSE(result);
  ASSERT_FALSE(result.error().more.empty());
  EXPECT_THAT(result.error().more.back().hint, HasSubstr("plimsoll import makes a run file"));
}

/// A hostile file costs no more than a mistyped one.
TEST(RunDocument, StopsAtManyErrors) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "no_setting_" + std::to_string(i) + ": 1\n";
  const auto result = parse_run(text);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().more.size(), 19U);
}

TEST(RunDocument, NamesTheLine) {
  const auto result = parse_run("model:\n  preset: gpt2\ntraining:\n  learning_rate: fast\n");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message(),
            "training.learning_rate is \"fast\", expected a number from 0 to 1000000: run.yaml line 4");
}

}  // namespace
}  // namespace plimsoll::settings
