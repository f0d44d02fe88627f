// Names of transformers and TRL: which setting each means, and where they contradict.
#include "settings/settings_alias.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "settings/run_text.h"

namespace plimsoll::settings {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(SettingsAlias, UnderstandsTransformersNames) {
  const auto run = parse_run(R"(
model_name_or_path: some/folder
per_device_train_batch_size: 4
gradient_accumulation_steps: 8
num_train_epochs: 3
learning_rate: 1e-5
optim: adamw_torch
lr_scheduler_type: cosine_with_restarts
warmup_ratio: 0.1
bf16: false
gradient_checkpointing: false
logging_steps: 10
save_strategy: "no"
output_dir: out
max_seq_length: 256
torch_empty_cache_steps: 4
lr_scheduler_kwargs: {num_cycles: 2}
)");
  ASSERT_TRUE(run) << run.error().message();
  EXPECT_EQ(run->model.path, "some/folder");
  EXPECT_EQ(run->training.global_batch_size, 32);
  EXPECT_EQ(run->training.micro_batch_size, 4);
  EXPECT_EQ(run->training.num_epochs, 3.0);
  EXPECT_EQ(run->training.optimizer, "adamw");
  EXPECT_EQ(run->training.lr_scheduler, "cosine_with_restarts");
  EXPECT_EQ(run->training.warmup_ratio, 0.1);
  EXPECT_EQ(run->training.precision, Precision::kFp32);
  EXPECT_EQ(run->training.logging_steps, 10);
  EXPECT_EQ(run->memory.recompute.mode, RecomputeMode::kNone);
  EXPECT_EQ(run->output.dir, "out");
  EXPECT_EQ(run->output.save_steps, 0);
  EXPECT_EQ(run->data.sequence_length, 256);
  EXPECT_EQ(run->training.lr_scheduler_kwargs.num_cycles, 2.0);
  EXPECT_THAT(run->notes, ElementsAre(HasSubstr("torch_empty_cache_steps")));
  // Under training as well; without accumulation the global batch is the device's.
  const auto nested = parse_run("training: {per_device_train_batch_size: 12, optim: adamw_hf}");
  ASSERT_TRUE(nested) << nested.error().message();
  EXPECT_EQ(nested->training.global_batch_size, 12);
}

TEST(SettingsAlias, AcceptsHarmlessNamesWithOneNote) {
  const auto run = parse_run(
      "model_name_or_path: x\nreport_to: none\npush_to_hub: false\nremove_unused_columns: true\n"
      "max_steps: -1\nnum_train_epochs: 3\ndataloader_num_workers: 4\ndataloader_pin_memory: true\n"
      "ddp_find_unused_parameters: null\nuse_cpu: true\noverwrite_output_dir: true\n"
      "save_safetensors: true\ngroup_by_length: false\nlabel_smoothing_factor: 0.0\n"
      "training: {do_train: true, disable_tqdm: false}\n",
      {"push_to_hub=false"});
  ASSERT_TRUE(run) << run.error().message();
  EXPECT_EQ(run->training.num_epochs, 3);
  EXPECT_EQ(run->data.num_workers, 4);
  EXPECT_THAT(run->notes, ElementsAre(testing::AllOf(
                              testing::StartsWith("ignored push_to_hub, remove_unused_columns, max_steps, "),
                              HasSubstr("do_train, disable_tqdm: always on here"))));
}

TEST(SettingsAlias, Tf32SaysNothingBeside16Bits) {
  for (const char* text :
       {"data: {train: x}\nbf16: true\ntf32: true\n", "data: {train: x}\ntf32: true\nbf16: true\n"}) {
    const auto run = parse_run(text);
    ASSERT_TRUE(run) << run.error().message();
    EXPECT_EQ(run->training.precision, Precision::kBf16);
  }
}

TEST(SettingsAlias, RefusesTheSameNamesWhereTheyAskForSomething) {
  const auto result = parse_run(
      "push_to_hub: true\nreport_to: wandb\ngroup_by_length: true\nlabel_smoothing_factor: 0.1\n"
      "neftune_noise_alpha: 5\nsave_safetensors: false\nfsdp: full_shard\n");
  ASSERT_FALSE(result);
  EXPECT_THAT(said(result.error()),
              ElementsAre("push_to_hub is true, which is not supported: run.yaml line 1",
                          HasSubstr("group_by_length is true"), HasSubstr("label_smoothing_factor is 0.1"),
                          HasSubstr("neftune_noise_alpha is 5"), HasSubstr("save_safetensors is false"),
                          HasSubstr("fsdp is \"full_shard\""),
                          HasSubstr("report_to is [wandb], which is not available")));
  EXPECT_THAT(result.error().hint, HasSubstr("hf upload"));
  // Over a file's own it takes them back.
  for (const char* name : {"training.max_steps=-1", "max_steps=-1"}) {
    const auto run = parse_run(kRun, {"training.max_steps=5", name});
    ASSERT_TRUE(run) << run.error().message();
    EXPECT_EQ(run->training.max_steps, std::nullopt) << name;
  }
}

/// As transformers' TrainingArguments: 500 is the default of save_steps and of logging_steps.
TEST(SettingsAlias, AStrategyWithoutACountTakesTransformersDefault) {
  const std::string data = "data: {train: a.npy, eval: b.npy}\nmax_steps: 9\n";
  const auto bare = parse_run(data + "eval_strategy: steps\nsave_strategy: steps\n");
  ASSERT_TRUE(bare) << bare.error().message();
  EXPECT_EQ(bare->training.eval_steps, 500);
  EXPECT_EQ(bare->output.save_steps, 500);
  EXPECT_THAT(bare->notes,
              ElementsAre(HasSubstr("eval_strategy is steps without training.eval_steps: every 500"),
                          HasSubstr("save_strategy is steps without output.save_steps: every 500")));
  EXPECT_EQ(parse_run(data + "evaluation_strategy: steps\nlogging_steps: 20\n")->training.eval_steps, 20);
  const auto counted =
      parse_run(data + "eval_strategy: steps\neval_steps: 7\nsave_steps: 3\nsave_strategy: steps\n");
  EXPECT_EQ(counted->training.eval_steps, 7);
  EXPECT_EQ(counted->output.save_steps, 3);
  EXPECT_THAT(counted->notes, IsEmpty());
  EXPECT_FALSE(parse_run("data: {train: a.npy}\neval_strategy: steps\n"))
      << "there is nothing to evaluate on";
}

TEST(SettingsAlias, AStrategyOfNoIsNever) {
  const std::string data = "data: {train: a.npy, eval: b.npy}\n";
  for (const char* no : {"eval_strategy: no", "eval_strategy: false", "evaluation_strategy: \"no\"",
                         "training: {eval_strategy: false}"}) {
    const auto run = parse_run(data + no + "\n");
    ASSERT_TRUE(run) << run.error().message();
    EXPECT_FALSE(run->evaluates_while_training()) << no;
    EXPECT_TRUE(check_for_evaluation(*run)) << "plimsoll eval has its data";
  }
  EXPECT_TRUE(parse_run(data)->evaluates_while_training());
  // What comes later wins; at once they contradict.
  EXPECT_TRUE(parse_run(data + "eval_strategy: no\n", {"eval_steps=3"})->evaluates_while_training());
  EXPECT_EQ(parse_run(data + "save_steps: 3\n", {"save_strategy=no"})->output.save_steps, 0);
  EXPECT_EQ(parse_run(data + "save_strategy: no\n", {"save_steps=3"})->output.save_steps, 3);
  EXPECT_FALSE(parse_run(data + "eval_strategy: no\neval_steps: 3\n"));
}

TEST(SettingsAlias, NamesOfOneSettingContradictOnTheCommandLine) {
  for (const std::vector<std::string>& line : std::vector<std::vector<std::string>>{
           {"bf16=true", "fp16=true"},
           {"training.precision=bf16", "fp16=true"},
           {"fp16=true", "precision=bf16"},
           {"per_device_train_batch_size=4", "training.micro_batch_size=2"}}) {
    const auto result = parse_run(kRun, line);
    ASSERT_FALSE(result) << line[0];
    EXPECT_THAT(result.error().what, HasSubstr("contradict"));
    EXPECT_THAT(result.error().where, HasSubstr("override " + line[1]));
  }
  EXPECT_EQ(parse_run(kRun, {"precision=bf16", "training.precision=fp16"})->training.precision,
            Precision::kFp16);
  EXPECT_EQ(parse_run(kRun, {"bf16=true", "fp16=false"})->training.precision, Precision::kBf16);
  EXPECT_EQ(parse_run(std::string(kRun) + "  bf16: true\n", {"fp16=true"})->training.precision,
            Precision::kFp16);
}

TEST(SettingsAlias, AFalseTakesAnEarlierTrueBack) {
  const std::string bf16 = std::string(kRun) + "  bf16: true\n";
  EXPECT_EQ(parse_run(bf16, {"bf16=false"})->training.precision, Precision::kFp32);
  EXPECT_EQ(parse_run(bf16, {"fp16=false"})->training.precision, Precision::kBf16);
  EXPECT_EQ(parse_run(bf16, {"bf16=false", "fp16=true"})->training.precision, Precision::kFp16);
  EXPECT_EQ(parse_run("bf16: false\nfp16: true\n")->training.precision, Precision::kFp16);
}

/// TRL's defaults written down: false is every token of what the name is about, null says nothing.
TEST(SettingsAlias, LossOfTrlsNames) {
  const auto loss = [](const std::string& text, const std::vector<std::string>& overrides = {}) {
    const auto run = parse_run(text, overrides);
    return run ? run->data.loss : run.error().what;
  };
  EXPECT_EQ(loss("assistant_only_loss: false\n"), "trl");
  EXPECT_EQ(loss("assistant_only_loss: false\ncompletion_only_loss: null\n"), "trl");
  EXPECT_EQ(loss("assistant_only_loss: false\ncompletion_only_loss: true\n"), "trl");
  EXPECT_EQ(loss("assistant_only_loss: false\ncompletion_only_loss: false\n"), "all");
  EXPECT_EQ(loss("completion_only_loss: false\n"), "all");
  EXPECT_EQ(loss("completion_only_loss: false\nassistant_only_loss: true\n"), "all_assistant")
      << "TRL: an assistant's turn within a prompt too";
  EXPECT_EQ(loss("completion_only_loss: true\n"), "trl") << "TRL: says nothing of conversations";
  EXPECT_EQ(loss("completion_only_loss: true\nassistant_only_loss: true\n"), "assistant");
  EXPECT_THAT(loss("assistant_only_loss: false\ndata: {loss: assistant}\n"), HasSubstr("contradict"));
  EXPECT_EQ(loss("assistant_only_loss: true\n", {"assistant_only_loss=false"}), "trl");
  EXPECT_EQ(loss("assistant_only_loss: false\n", {"completion_only_loss=true"}), "trl");
  EXPECT_EQ(loss("", {"assistant_only_loss=false", "completion_only_loss=false"}), "all");
  EXPECT_EQ(loss("assistant_only_loss: true\n", {"data.loss=all"}), "all");
}

}  // namespace
}  // namespace plimsoll::settings
