// What is not there is refused by its name, what would do nothing is refused or told of.
#include "settings/effect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "settings/schedule.h"

namespace plimsoll::settings {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kSmallRun = "model: {preset: gpt2}\ndata: {train: a.npy}\ntraining: {max_steps: 20}\n";

Result<RunConfig> parse_small(std::vector<std::string> overrides, const std::string& more = "") {
  return parse_run_config(kSmallRun + more, "run.yaml", overrides);
}

struct Refusal {
  std::vector<std::string> overrides;
  const char* what;
  const char* hint;
};

TEST(Unavailable, CardsAreNamedByTheirNumber) {
  for (const char* card : {"runtime.device=cuda", "runtime.device=cuda:0", "runtime.device=cuda:7"})
    EXPECT_TRUE(parse_small({card})) << card;
}

TEST(Unavailable, IsRefusedByName) {
  const Refusal rows[] = {
      {{"lora={target_parameters: [x]}"},
       "lora.target_parameters is not available in this version",
       "leave it out"},
      {{"lora={init_lora_weights: eva}"}, "lora.init_lora_weights is eva", "true, false, gaussian"},
      {{"report_to=wandb"}, "training.report_to is [wandb]", "docs/run-folder.md"},
  };
  for (const Refusal& row : rows) {
    const auto result = parse_small(row.overrides);
    ASSERT_FALSE(result) << row.what;
    EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(result.error().what, HasSubstr(row.what));
    EXPECT_THAT(result.error().what, HasSubstr("not available in this version"));
    EXPECT_THAT(result.error().hint, HasSubstr(row.hint)) << row.what;
    EXPECT_THAT(result.error().where, HasSubstr("override ")) << row.what;
  }
}

TEST(Unavailable, AsksForNothingByItsDefaults) {
  for (const char* nothing : {"lora=null", "quantization=null", "memory.offload=auto", "report_to=none",
                              "load_best_model_at_end=false", "output.dtype=auto", "debug.verify_steps=0",
                              "training.fp8={recipe: delayed, margin: 0, fp8_format: hybrid}"}) {
    const auto run = parse_small({nothing});
    EXPECT_TRUE(run) << nothing << ": " << (run ? "" : run.error().message());
  }
  EXPECT_TRUE(parse_small({"lora={use_dora: false, trainable_token_indices: null}"}));
  EXPECT_TRUE(
      parse_small({"quantization={}", "quantization=null", "report_to=tensorboard", "report_to=none"}));
}

TEST(Unavailable, AllOfItIsSaidAtOnce) {
  const auto result =
      parse_small({"lora.target_parameters=[x]", "training.report_to=wandb", "lora.init_lora_weights=eva"});
  ASSERT_FALSE(result);
  ASSERT_EQ(result.error().more.size(), 2U);
  std::string all = result.error().what;
  for (const Error& more : result.error().more) all += more.what;
  for (const char* said :
       {"training.report_to is [wandb]", "lora.init_lora_weights is", "lora.target_parameters is"})
    EXPECT_THAT(all, HasSubstr(said));
}

TEST(SettleIdle, RefusesWhatWouldDoNothing) {
  const Refusal rows[] = {
      {{"training.fp8.margin=1"},
       "training.fp8.margin is 1, which has no effect with training.precision fp32",
       "training.precision=fp8"},
      {{"training.precision=bf16", "training.fp8.recipe=mxfp8"},
       "training.fp8.recipe is mxfp8, which has no effect with training.precision bf16",
       "training.precision=fp8"},
      {{"training.precision=fp8", "training.fp8.hadamard=false"},
       "training.fp8.hadamard is false, which has no effect with training.fp8.recipe delayed",
       "training.fp8.recipe=nvfp4"},
      {{"training.precision=fp8", "training.fp8.recipe=mxfp8", "training.fp8.margin=1"},
       "training.fp8.margin is 1, which has no effect with training.fp8.recipe mxfp8",
       "training.fp8.recipe=delayed"},
      {{"training.precision=fp8", "training.fp8={recipe: current, amax_history_len: 16}"},
       "training.fp8.amax_history_len is 16, which has no effect with training.fp8.recipe current",
       "training.fp8.recipe=delayed"},
      {{"training.precision=fp8", "training.fp8={recipe: current, amax_compute_algo: most_recent}"},
       "training.fp8.amax_compute_algo is most_recent",
       "training.fp8.recipe=delayed"},
      {{"training.precision=fp8", "training.fp8={recipe: nvfp4, fp8_format: e4m3}"},
       "training.fp8.fp8_format is e4m3, which has no effect with training.fp8.recipe nvfp4",
       "training.fp8.recipe=delayed"},
      {{"training.precision=bf16", "training.precision_overrides={down_proj: fp8}",
        "training.fp8.keep_last_layers=0.5"},
       "training.fp8.keep_last_layers is 0.5, which has no effect with training.precision bf16",
       "training.precision=fp8"},
      {{"lr_scheduler_kwargs.gamma=0.5"},
       "training.lr_scheduler_kwargs.gamma is 0.5, which has no effect with training.lr_scheduler cosine",
       "leave it out, or set training.lr_scheduler=step"},
      {{"lr_scheduler=linear", "lr_scheduler_kwargs.num_cycles=2"}, "num_cycles is 2", "=cosine"},
      {{"lr_scheduler_kwargs={power: 2}"}, "power is 2", "training.lr_scheduler=polynomial"},
      {{"lr_scheduler_kwargs.step_size=5"}, "step_size is 5", "training.lr_scheduler=step"},
      {{"lr_scheduler_kwargs.min_lr_ratio=0.1"}, "min_lr_ratio is 0.1", "warmup_stable_decay"},
      {{"lr_scheduler_kwargs.pct_start=0.1"}, "pct_start is 0.1", "training.lr_scheduler=one_cycle"},
      {{"data.buckets=4"}, "data.buckets is 4", "data.packing=pad"},
      {{"training.adafactor.relative_step=true"},
       "training.adafactor.relative_step is true, which has no effect with training.optimizer adamw",
       "set training.optimizer=adafactor"},
      {{"training.optimizer=lion", "training.muon={momentum: 0.9}"},
       "training.muon.momentum is 0.9, which has no effect with training.optimizer lion",
       "set training.optimizer=muon"},
      {{"training.muon.nesterov=false"}, "no effect with training.optimizer adamw", "optimizer=muon"},
      {{"training.optimizer=muon", "training.adafactor.beta1=0.9"},
       "training.adafactor.beta1 is 0.9, which has no effect with training.optimizer muon",
       "set training.optimizer=adafactor"},
      {{"training.optimizer=adamw_8bit", "training.adafactor={decay_rate: -0.5}"},
       "training.adafactor.decay_rate is -0.5, which has no effect with training.optimizer adamw_8bit",
       "set training.optimizer=adafactor"},
      {{"training.residual_in_fp32=false"}, "training.residual_in_fp32 is false", "precision=bf16"},
  };
  for (const Refusal& row : rows) {
    const auto result = parse_small(row.overrides);
    ASSERT_FALSE(result) << row.what;
    EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(result.error().what, HasSubstr(row.what));
    EXPECT_THAT(result.error().hint, HasSubstr(row.hint));
    EXPECT_THAT(result.error().where, HasSubstr("override ")) << row.what;
  }
}

/// adam_beta1: 0.9 beside sgd is what transformers' own files carry: a line for each choice.
TEST(SettleIdle, TellsOfWhatHoldsAnyway) {
  const auto run =
      parse_small({"optim=sgd", "adam_beta1=0.9", "adam_beta2=0.999", "fp8={recipe: delayed, margin: 0}"});
  ASSERT_TRUE(run) << run.error().message();
  EXPECT_THAT(
      run->notes,
      ElementsAre("training.fp8.recipe has no effect with training.precision fp32",
                  "training.adam_beta1, training.adam_beta2 have no effect with training.optimizer sgd"));
  EXPECT_THAT(
      parse_small({"training.momentum=0", "training.nesterov=false", "lr_scheduler_kwargs.num_cycles=null",
                   "training.lr_scheduler=constant", "warmup_steps=0"})
          ->notes,
      IsEmpty());
}

/// What a recipe reads has an effect with it, however FP8 comes in.
TEST(SettleIdle, KeepsWhatTheRecipeReads) {
  const std::string overridden = "training.precision_overrides={down_proj: fp8}";
  for (const std::string precision : {"training.precision=fp8", "training.precision=bf16"}) {
    const auto delayed =
        parse_small({precision, overridden, "training.fp8={margin: 1, amax_history_len: 4}"});
    ASSERT_TRUE(delayed) << delayed.error().message();
    EXPECT_THAT(delayed->notes, IsEmpty());
    EXPECT_EQ(delayed->training.fp8.margin, 1);
    const auto current =
        parse_small({precision, overridden, "training.fp8={recipe: current, fp8_format: e4m3}"});
    ASSERT_TRUE(current) << current.error().message();
    EXPECT_EQ(current->training.fp8.fp8_format, "e4m3");
  }
  EXPECT_TRUE(parse_small({"training.precision=fp8", "training.fp8={recipe: nvfp4, hadamard: false}"}));
}

/// A later choice of precision takes the effect from the recipe and from what the recipe reads.
TEST(SettleIdle, TellsOfARecipeThatALaterPrecisionTookTheEffectFrom) {
  const std::string file = "precision: fp8\nfp8: {recipe: delayed, margin: 1}\n";
  const auto run = parse_small({"training.precision=bf16"}, file);
  ASSERT_TRUE(run) << run.error().message();
  EXPECT_THAT(run->notes, ElementsAre("training.fp8.recipe, training.fp8.margin have no effect with "
                                      "training.precision bf16"));
  EXPECT_EQ(run->training.fp8.margin, 0);
}

/// A later choice takes the effect away from what stands before it; the setting is as if it were not given.
TEST(SettleIdle, TellsOfWhatALaterChoiceTookTheEffectFrom) {
  const std::string file = "lr_scheduler: wsd\nlr_scheduler_kwargs: {min_lr_ratio: 0.1}\n";
  const auto run =
      parse_small({"adam_beta2=0.95", "training.optimizer=sgd", "training.lr_scheduler=cosine"}, file);
  ASSERT_TRUE(run) << run.error().message();
  EXPECT_THAT(run->notes, ElementsAre("training.lr_scheduler_kwargs.min_lr_ratio has no effect with "
                                      "training.lr_scheduler cosine",
                                      "training.adam_beta2 has no effect with training.optimizer sgd"));
  EXPECT_EQ(run->training.lr_scheduler_kwargs.min_lr_ratio, 0);
  EXPECT_EQ(run->training.adam_beta2, 0.999);
  EXPECT_FALSE(parse_small({"training.lr_scheduler=cosine", "lr_scheduler_kwargs.min_lr_ratio=0.2"}, file));
}

TEST(SettleIdle, TellsOfWhatOneFileCarriesForSeveralRuns) {
  const auto run =
      parse_small({"training.loss_scale=1024", "debug.dump=[logits]", "training.lr_scheduler=constant",
                   "training.warmup_ratio=0.03", "data.packing=pad", "data.packing_window=9",
                   "training.momentum=0.9", "training.nesterov=true"});
  ASSERT_TRUE(run) << run.error().message();
  EXPECT_THAT(run->notes,
              ElementsAre("data.packing_window has no effect with data.packing pad",
                          "training.loss_scale.fixed has no effect with training.precision fp32",
                          "training.warmup_ratio has no effect with training.lr_scheduler constant",
                          "training.momentum, training.nesterov have no effect with training.optimizer adamw",
                          "debug.dump has no effect with debug.dump_dir null"));
  const auto sgd = parse_small({"optim=sgd", "adam_beta1=0.8", "adam_epsilon=1e-6"});
  EXPECT_THAT(sgd->notes, ElementsAre("training.adam_beta1, training.adam_epsilon have no effect with "
                                      "training.optimizer sgd"));
  EXPECT_EQ(sgd->training.adam_beta1, 0.9);
  EXPECT_EQ(run->training.loss_scale.fixed, std::nullopt);
  EXPECT_EQ(run->training.warmup_ratio, std::nullopt);
  const auto fp16 = parse_small({"training.loss_scale=1024", "training.precision_overrides={lm_head: fp16}"});
  EXPECT_THAT(fp16->notes, IsEmpty());
  EXPECT_EQ(fp16->training.loss_scale.fixed, 1024);
}

/// Checkpoints of versions that took any of them in silence, with every setting in their run.yaml.
TEST(SettleIdle, PassesARecordedRun) {
  const std::string old = std::string(kSmallRun) +
                          "momentum: 0.9\nfp8: {margin: 1}\nadam_beta1: 0.8\n"
                          "lr_scheduler_kwargs: {gamma: 0.5}\n";
  EXPECT_FALSE(parse_run_config(old, "run.yaml"));
  const auto run = parse_recorded_run(old, "run.yaml");
  ASSERT_TRUE(run) << run.error().message();
  EXPECT_THAT(run->notes, IsEmpty());
  EXPECT_EQ(run->training.momentum, 0);
  EXPECT_EQ(run->training.adam_beta1, 0.8);
}

TEST(HasEffect, NamesSettingsAndValuesThatThereAre) {
  for (const Setting& setting : settings()) {
    if (setting.only_with.path.empty()) continue;
    const Setting* other = find_setting(setting.only_with.path);
    ASSERT_NE(other, nullptr) << setting.path;
    std::vector<std::string> words = other->choices.empty() ? other->available : other->choices;
    RunConfig run;
    if (std::holds_alternative<bool*>(other->field(run))) words = {"true", "false"};
    for (const std::string& value : setting.only_with.values)
      EXPECT_THAT(words, Contains(value)) << setting.path;
    EXPECT_THAT(setting_help(setting), HasSubstr("; only with " + other->path)) << setting.path;
  }
  const auto& warming = find_setting("training.warmup_steps")->only_with.values;
  for (const std::string& name : schedule_names()) {
    const bool rises = name != "constant" && name != "one_cycle";
    EXPECT_EQ(std::count(warming.begin(), warming.end(), name), rises ? 1 : 0) << name;
  }
}

}  // namespace
}  // namespace plimsoll::settings
