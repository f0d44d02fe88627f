// Run files and overrides: what is understood, what is refused and how.
#include "settings/run_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/temporary_folder.h"
#include "settings/run_text.h"
#include "settings/settings.h"

namespace plimsoll::settings {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(RunConfig, ReadsTheFileAndKeepsDefaults) {
  const auto run = parse_run(kRun);
  ASSERT_TRUE(run) << run.error().message();
  EXPECT_EQ(run->model.preset, "smollm-135m");
  EXPECT_THAT(run->data.train, ElementsAre("data/train.npy"));
  EXPECT_EQ(run->data.sequence_length, 128);
  EXPECT_EQ(run->training.max_steps, 20);
  EXPECT_EQ(run->training.learning_rate, 3e-4);
  EXPECT_EQ(run->training.adam_beta2, 0.999);
  EXPECT_EQ(run->clip_norm(), 1.0);
  EXPECT_TRUE(run->dumps("gradients"));
  EXPECT_FALSE(run->dumps("logits"));
  EXPECT_FALSE(run->lora.enabled);
  EXPECT_THAT(run->notes, IsEmpty());
}

TEST(RunConfig, LaterOverridesWin) {
  const auto run = parse_run(
      kRun, {"training.seed=1", "training.seed=2", "training.max_grad_norm=null", "memory.recompute=none",
             "memory={budget: 1GiB}", "model.overrides.num_hidden_layers=4",
             "model.overrides={rope_theta: 2}", "learning_rate=1e-3"});
  ASSERT_TRUE(run) << run.error().message();
  EXPECT_EQ(run->training.seed, 2);
  EXPECT_EQ(run->clip_norm(), std::nullopt);
  EXPECT_EQ(run->memory.budget.bytes, 1 << 30);
  EXPECT_EQ(run->memory.recompute.mode, RecomputeMode::kNone);
  EXPECT_EQ(io::to_yaml_flow(run->model.overrides), "{num_hidden_layers: 4, rope_theta: 2}");
  EXPECT_EQ(run->training.learning_rate, 1e-3);
}

TEST(RunConfig, LaterOneOfAGroupTakesTheOthersBack) {
  const auto epochs = parse_run(
      kRun, {"training.num_epochs=2", "training.warmup_ratio=0.1", "model.config={model_type: llama}"});
  ASSERT_TRUE(epochs) << epochs.error().message();
  EXPECT_EQ(epochs->training.max_steps, std::nullopt);
  EXPECT_EQ(epochs->training.num_epochs, 2.0);
  EXPECT_EQ(epochs->training.warmup_steps, 0);
  EXPECT_EQ(epochs->model.preset, "");
  const auto back = parse_run(kRun, {"model.config={model_type: llama}", "model.preset=gpt2",
                                     "training.num_epochs=2", "training.max_steps=7"});
  ASSERT_TRUE(back);
  EXPECT_TRUE(back->model.config.is_null());
  EXPECT_EQ(back->training.num_epochs, std::nullopt);
}

TEST(RunConfig, SplitsTheBatch) {
  EXPECT_EQ(fixed_batch_split(parse_run(kRun)->training).has_value(), false);
  const auto micro = fixed_batch_split(parse_run(kRun, {"training.micro_batch_size=2"})->training);
  EXPECT_EQ(micro->grad_accum_steps, 4);
  const auto accum = fixed_batch_split(parse_run(kRun, {"training.gradient_accumulation_steps=2"})->training);
  EXPECT_EQ(accum->micro_batch_size, 4);
  EXPECT_EQ(total_steps(parse_run(kRun)->training, 1000), 20);
  EXPECT_EQ(total_steps(parse_run(kRun, {"training.num_epochs=1.5"})->training, 9), 2);
  EXPECT_EQ(total_steps(TrainingSettings{}, 33), 2);
}

struct BadRun {
  std::string text;
  std::vector<std::string> overrides;
  const char* what;
  const char* hint = "";
};

TEST(RunConfig, RefusesWhatTheUserGotWrong) {
  const std::string run = kRun;
  const BadRun rows[] = {
      {"[1, 2]", {}, "a run file is a map"},
      {"just text", {}, "a run file is a map"},
      {"model: {preset: [", {}, "broken YAML"},
      {"a: " + std::string(100'000, '[') + std::string(100'000, ']'), {}, "nested deeper"},
      {run + "  seed: 1\n  seed: 2\n", {}, "'seed' stands twice"},
      {"model: smollm", {}, "model is \"smollm\", expected a map"},
      {"modle: {preset: gpt2}", {}, "there is no setting 'modle'", "model"},
      {run,
       {"training.learnin_rate=1"},
       "there is no setting 'training.learnin_rate'",
       "did you mean training.learning_rate?"},
      {run, {"learnin_rate=1"}, "no setting", "training.learning_rate"},
      {run, {"training.state.weight=bf16"}, "no setting", "did you mean training.state.weights?"},
      {run, {"sequence_length=1"}, "no setting", "data.sequence_length"},
      {run, {"per_device_train_batchsize=1"}, "no setting", "per_device_train_batch_size"},
      {run, {"training.lr_scheduler_kwargs.powr=1"}, "no setting", "training.lr_scheduler_kwargs.power"},
      {run, {"training.seed.x=1"}, "training.seed is a map"},
      {run, {"training.seed"}, "is no override"},
      {run, {"=3"}, "is no override"},
      {run, {"training.seed=[1"}, "broken YAML"},
      {run, {"training.seed=-1"}, "training.seed is -1"},
      {run, {"training.seed="}, "training.seed is null"},
      {run, {"training.max_steps=0"}, "training.max_steps is 0"},
      {run, {"training.max_steps=ten"}, "training.max_steps is \"ten\""},
      {run, {"training.adam_beta1=1"}, "training.adam_beta1 is 1"},
      {run, {"training.adam_epsilon=0"}, "training.adam_epsilon is 0"},
      {run, {"training.lr_scheduler=cosin"}, "training.lr_scheduler is \"cosin\"", "the nearest is cosine"},
      {run, {"training.micro_batch_size=3"}, "does not divide"},
      {run, {"training.micro_batch_size=16"}, "does not divide"},
      {run, {"training.gradient_accumulation_steps=3"}, "does not divide"},
      {run,
       {"training.micro_batch_size=2", "training.gradient_accumulation_steps=2"},
       "is not training.global_batch_size (8)"},
      {run + "  micro_batch_size: 2\n  per_device_train_batch_size: 4\n", {}, "contradict"},
      {run + "  bf16: true\n  fp16: true\n", {}, "bf16 and fp16 contradict"},
      {run + "  num_epochs: 2\n", {}, "num_epochs and training.max_steps contradict"},
      {run + "  warmup_ratio: 0.1\n", {}, "contradict"},
      {"model: {preset: gpt2, path: x}", {}, "contradict"},
      {run, {"training.bf16=yes"}, "bf16 is \"yes\""},
      {run, {"training.optim=adamw_tensor"}, "optim is \"adamw_tensor\"", "adamw_torch"},
      {run, {"optim=sgd", "training.nesterov=true"}, "training.momentum is 0", "training.momentum=0.9"},
      {run,
       {"optim=sgd", "momentum=0.9", "dampening=0.1", "nesterov=true"},
       "takes a momentum and no dampening, and training.dampening is 0.1"},
      {run, {"training.momentum=1.5"}, "training.momentum is 1.5"},
      {run, {"param_groups=[{parms: [a]}]"}, "param_groups[0]: there is no 'parms'", "the nearest is params"},
      {run,
       {"optim=sgd", "training.param_groups=[{params: [a], betas: [0.9, 0.99]}]"},
       "param_groups[0] has betas, and training.optimizer is sgd"},
      {run,
       {"optimizer=adam", "training.param_groups=[{params: [a], weight_decay: 0.1}]"},
       "adam has no decay, and training.param_groups[0].weight_decay is not 0"},
      {run, {"save_strategy=epochs"}, "save_strategy is \"epochs\""},
      {run, {"training.eval_steps=10"}, "data.eval names no data"},
      {run, {"runtime.device=gpu"}, "runtime.device is \"gpu\""},
      {run, {"runtime.device=cuda:x"}, "runtime.device is"},
      {run,
       {"runtime.discrete={copy_bandwidth: 0}"},
       "runtime.discrete.copy_bandwidth is 0",
       "in each direction"},
      {run, {"runtime.discrete={copy_bandwidth: 0GB/s}"}, "runtime.discrete.copy_bandwidth is \"0GB/s\""},
      {run, {"runtime.discrete={copy_bandwidth: fast}"}, "bytes per second such as 12GB/s"},
      {run, {"runtime.discrete={memory: 0}"}, "runtime.discrete.memory is 0"},
      {run, {"runtime.discrete={seed: -1}"}, "runtime.discrete.seed is -1"},
      {run, {"runtime.discrete={check: 1}"}, "runtime.discrete.check is 1"},
      {run, {"runtime.discrete={speed: 1}"}, "runtime.discrete.speed"},
      {run, {"runtime.threads=0"}, "runtime.threads is 0"},
      {run,
       {"memory.optimizer_in_backward=true", "training.max_grad_norm=0", "training.micro_batch_size=4"},
       "gradients are accumulated over 2 micro-batches"},
      {run,
       {"memory.optimizer_in_backward=true", "training.max_grad_norm=0", "training.precision=fp16"},
       "fp16 gradients overflow is skipped"},
      {run,
       {"memory.optimizer_in_backward=true", "training.max_grad_norm=0", "debug.dump_dir=d"},
       "debug.dump writes the gradients"},
      {run, {"memory.budget=lots"}, "memory.budget is \"lots\""},
      {run, {"classification.label_names=[a, b, a]"}, "classification.label_names has 'a' twice", "differ"},
      {run, {"classification.label_names=['']"}, "classification.label_names has an empty name"},
      {run, {"data.buckets=4"}, "data.buckets is 4, which has no effect with", "data.packing=pad"},
      {run, {"data.packing=pad", "data.buckets=0"}, "data.buckets is 0, expected how many (from 1 to 16)"},
      {run, {"data.packing=pad", "data.buckets=17"}, "data.buckets is 17"},
      {run, {"data.packing=pad", "data.buckets=some"}, "data.buckets is \"some\""},
      {run, {"data.packing=pad", "data.buckets=[]"}, "data.buckets is"},
      {run, {"data.packing=pad", "data.buckets=[16, 0]"}, "data.buckets is 0"},
      {run,
       {"data.packing=pad", "data.buckets=[64, 32]"},
       "[64, 32], and its lengths do not rise",
       "shortest"},
      {run, {"data.packing=pad", "data.buckets=[32, 32]"}, "do not rise"},
      {run,
       {"data.packing=pad", "data.sequence_length=64", "data.buckets=[32, 65]"},
       "data.buckets has 65, and data.sequence_length is 64",
       "data.sequence_length=65"},
      {run, {"output.dir=null"}, "output.dir is empty"},
      {run, {"output.dir=true"}, "output.dir is true, expected text"},
      {run, {"memory.budget=%"}, "memory.budget is \"%\""},
      {run, {"lora={r:8}"}, "there is no setting 'lora.r:8'", "write a blank after the colon: r: 8"},
      {"model: {preset: gpt2}\ndata: {train: *.txt}", {}, "broken YAML", "put quotes around"},
      {run, {"precision_overrides={lm_head: bf17}"}, "lm_head is \"bf17\", expected one of fp32", "is bf16"},
      {run, {"precision_overrides=bf16"}, "expected a map from patterns to fp32, tf32, bf16, fp16"},
      {run, {"residual_in_fp32=false"}, "training.residual_in_fp32 is false", "training.precision=bf16"},
      {run, {"training.lr_scheduler=polynomial", "training.learning_rate=1e-9"}, "lr_end"},
  };
  for (const BadRun& row : rows) {
    const auto result = parse_run(row.text, row.overrides);
    const std::string which =
        row.text.substr(0, 40) + (row.overrides.empty() ? "" : " " + row.overrides.back());
    ASSERT_FALSE(result) << which;
    EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument) << which;
    EXPECT_THAT(result.error().what, HasSubstr(row.what)) << which;
    EXPECT_THAT(result.error().hint, HasSubstr(row.hint)) << which;
    EXPECT_FALSE(result.error().where.empty() && row.overrides.empty()) << which;
  }
}

/// What is given later is tried first; a path that was cut at its dots is whole again.
TEST(RunConfig, PrecisionOverridesGather) {
  const std::string text = kRun + std::string("  precision_overrides: {lm_head: fp32, 'a.*': tf32}\n");
  const auto overrides = [&](const std::vector<std::string>& line) {
    const auto run = parse_run(text, line);
    EXPECT_TRUE(run) << (run ? "" : run.error().message());
    return run->training.precision_overrides;
  };
  EXPECT_EQ(overrides({}), (PrecisionOverrides{{"lm_head", Precision::kFp32}, {"a.*", Precision::kTf32}}));
  EXPECT_EQ(overrides({"training.precision_overrides.a.*=bf16"}),
            (PrecisionOverrides{{"a.*", Precision::kBf16}, {"lm_head", Precision::kFp32}}));
  EXPECT_EQ(overrides({"precision_overrides={b: fp16, lm_head: bf16}"}),
            (PrecisionOverrides{
                {"b", Precision::kFp16}, {"lm_head", Precision::kBf16}, {"a.*", Precision::kTf32}}));
  EXPECT_EQ(overrides({"training.precision_overrides=null"}), PrecisionOverrides{});
}

TEST(RunConfig, SpecialTokensAreAddedByTheTaskUnlessItIsSaid) {
  const Setting& setting = *find_setting("data.add_special_tokens");
  EXPECT_EQ(setting_text(setting, RunConfig{}), "auto");
  const std::pair<const char*, std::optional<bool>> words[] = {
      {"auto", std::nullopt}, {"true", true}, {"false", false}};
  for (const auto& [word, value] : words) {
    const auto run = parse_run(kRun, {std::string("data.add_special_tokens=") + word});
    ASSERT_TRUE(run) << word << ": " << run.error().message();
    EXPECT_EQ(run->data.add_special_tokens, value) << word;
    EXPECT_EQ(setting_text(setting, *run), word);
  }
  const auto wrong = parse_run(kRun, {"data.add_special_tokens=some"});
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().message() + wrong.error().hint, HasSubstr("true, false, or auto"));
}

TEST(RunConfig, TakesAGlobAsAnOverride) {
  const auto result = parse_run(kRun, {"data.train=*.txt"});
  ASSERT_TRUE(result) << result.error().message();
  EXPECT_THAT(result->data.train, testing::ElementsAre("*.txt"));
}

TEST(RunConfig, ADiscreteDevice) {
  const auto run =
      parse_run(kRun, {"runtime.device=discrete",
                       "runtime.discrete={memory: 2GiB, copy_bandwidth: 12GB/s, seed: 7, check: true}"});
  ASSERT_TRUE(run) << run.error().message();
  const DiscreteSettings& discrete = run->runtime.discrete;
  EXPECT_EQ(discrete.memory.bytes, int64_t{2} << 30);
  EXPECT_EQ(discrete.copy_bandwidth.bytes_per_second, 12e9);
  EXPECT_EQ(discrete.seed, 7);
  EXPECT_TRUE(discrete.check);
  EXPECT_TRUE(run->notes.empty());
  const auto again = parse_run_config(run_config_yaml(*run), "run.yaml");
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_EQ(run_config_yaml(*again), run_config_yaml(*run));

  const auto plain = parse_run(kRun, {"runtime.device=discrete", "runtime.discrete.copy_bandwidth=3000"});
  ASSERT_TRUE(plain) << plain.error().message();
  EXPECT_EQ(plain->runtime.discrete.copy_bandwidth.bytes_per_second, 3000);
  EXPECT_EQ(plain->runtime.discrete.memory.kind, MemoryBudget::Kind::kAuto);
  EXPECT_FALSE(plain->runtime.discrete.seed || plain->runtime.discrete.check);

  const auto idle = parse_run(kRun, {"runtime.discrete.seed=3"});
  ASSERT_TRUE(idle);
  EXPECT_THAT(idle->notes,
              testing::Contains(HasSubstr("runtime.discrete.seed has no effect with runtime.device cpu")));
}

TEST(LoadRunConfig, RefusesWhatItCannotRead) {
  const io::TemporaryFolder folder;
  for (const std::string& path :
       {folder.path("none.yaml"), folder.path(), folder.write("big.yaml", std::string(2 << 20, '#'))}) {
    const auto result = load_run_config(path);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(result.error().where, path);
  }
  EXPECT_TRUE(load_run_config(folder.write("run.yaml", kRun)));
}

TEST(CheckForTraining, NeedsDataAndAPlaceOfTheWeights) {
  EXPECT_TRUE(check_for_training(*parse_run(kRun)));
  EXPECT_FALSE(check_for_training(*parse_run(kRun, {"data.train=null"})));
  EXPECT_FALSE(check_for_training(*parse_run(kRun, {"model.init=pretrained"})));
  EXPECT_TRUE(check_for_training(*parse_run(kRun, {"model.path=x"})));
  EXPECT_TRUE(check_for_training(*parse_run(kRun, {"model.path=x", "model.init=random"})));
  EXPECT_FALSE(check_for_evaluation(*parse_run(kRun)));
  EXPECT_TRUE(check_for_evaluation(*parse_run(kRun, {"data.eval=x.npy"})));
  EXPECT_FALSE(check_for_evaluation(*parse_run(kRun, {"data.eval=x.npy", "model.init=pretrained"})));
  EXPECT_TRUE(check_against_model(*parse_run(kRun), 128));
  EXPECT_EQ(check_against_model(*parse_run(kRun), 127).error().code, ErrorCode::kInvalidArgument);
}

TEST(EvalSets, AreFilesByName) {
  const auto run = parse_run_config(
      "{model: {preset: gpt2}, data: {eval: {news: [a.npy, b.npy], code: c.npy}}}", "run.yaml", {});
  ASSERT_TRUE(run) << run.error().message();
  const std::vector<EvalFiles::Set> sets = run->data.eval.sets();
  ASSERT_EQ(sets.size(), 2U);
  EXPECT_EQ(sets[0].name, "news");
  EXPECT_EQ(sets[0].files, (std::vector<std::string>{"a.npy", "b.npy"}));
  EXPECT_EQ(sets[1].files, std::vector<std::string>{"c.npy"});
  EXPECT_EQ(run->data.num_eval_parts(), 2U);
  const auto again = parse_run_config(run_config_yaml(*run), "run.yaml", {});
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_EQ(again->data.eval.names, run->data.eval.names);
  const std::vector<std::string> replaced = {"data.eval=[d.npy, e.npy]"};
  const auto plain = parse_run_config("{data: {eval: {news: a.npy}}}", "run.yaml", replaced);
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->data.eval.sets().size(), 1U);
  EXPECT_EQ(plain->data.eval.sets()[0].name, "");
  for (const char* wrong : {"{\"a b\": c.npy}", "{news: []}", "{news: {deep: a.npy}}"}) {
    const auto refused = parse_run_config(std::string("{data: {eval: ") + wrong + "}}", "run.yaml", {});
    ASSERT_FALSE(refused) << wrong;
    EXPECT_THAT(refused.error().what, HasSubstr("no set of evaluation data"));
  }
}

TEST(WithOverrides, IsWhatTheCommandLineWouldRead) {
  const std::vector<std::string> given = {"training.precision=bf16"}, more = {"training.optimizer=sgd"};
  const std::string text =
      "model: {preset: gpt2}\ntraining: {optimizer: adafactor, adafactor: {beta1: 0.9}}\n";
  const auto run = parse_run_config(text, "run.yaml", given);
  ASSERT_TRUE(run);
  const auto changed = with_overrides(*run, more);
  ASSERT_TRUE(changed) << changed.error().what;
  std::vector<std::string> all = given;
  all.insert(all.end(), more.begin(), more.end());
  EXPECT_EQ(run_config_yaml(*changed), run_config_yaml(*parse_run_config(text, "run.yaml", all)));
  // A run that was put together is read as it would be recorded.
  RunConfig made;
  made.model.preset = "gpt2";
  const auto again = with_overrides(made, more);
  ASSERT_TRUE(again) << again.error().what;
  EXPECT_EQ(again->training.optimizer, "sgd");
  const std::vector<std::string> wrong = {"training.optimizer=none"};
  EXPECT_FALSE(with_overrides(*run, wrong));
}

}  // namespace
}  // namespace plimsoll::settings
