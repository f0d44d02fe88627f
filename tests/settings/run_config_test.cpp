// Run files and overrides: what is understood, what is refused and how.
#include "settings/run_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/temporary_folder.h"
#include "models/families.h"
#include "settings/settings.h"

namespace plimsoll::settings {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kRun = R"(
model:
  preset: smollm-135m
data:
  train: data/train.npy
  sequence_length: 128
training:
  global_batch_size: 8
  max_steps: 20
  warmup_steps: 5
)";

Result<RunConfig> parse(std::string_view text, std::vector<std::string> overrides = {}) {
  return parse_run_config(text, "run.yaml", overrides);
}

TEST(RunConfig, ReadsTheFileAndKeepsDefaults) {
  const auto run = parse(kRun);
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
  const auto run =
      parse(kRun, {"training.seed=1", "training.seed=2", "training.max_grad_norm=null",
                   "memory.recompute=none", "memory={budget: 1GiB}", "model.overrides.num_hidden_layers=4",
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
  const auto epochs =
      parse(kRun, {"training.num_epochs=2", "training.warmup_ratio=0.1", "model.config={model_type: llama}"});
  ASSERT_TRUE(epochs) << epochs.error().message();
  EXPECT_EQ(epochs->training.max_steps, std::nullopt);
  EXPECT_EQ(epochs->training.num_epochs, 2.0);
  EXPECT_EQ(epochs->training.warmup_steps, 0);
  EXPECT_EQ(epochs->model.preset, "");
  const auto back = parse(kRun, {"model.config={model_type: llama}", "model.preset=gpt2",
                                 "training.num_epochs=2", "training.max_steps=7"});
  ASSERT_TRUE(back);
  EXPECT_TRUE(back->model.config.is_null());
  EXPECT_EQ(back->training.num_epochs, std::nullopt);
}

TEST(RunConfig, UnderstandsTransformersNames) {
  const auto run = parse(R"(
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
  const auto nested = parse("training: {per_device_train_batch_size: 12, optim: adamw_hf}");
  ASSERT_TRUE(nested) << nested.error().message();
  EXPECT_EQ(nested->training.global_batch_size, 12);
}

TEST(RunConfig, SplitsTheBatch) {
  EXPECT_EQ(fixed_batch_split(parse(kRun)->training).has_value(), false);
  const auto micro = fixed_batch_split(parse(kRun, {"training.micro_batch_size=2"})->training);
  EXPECT_EQ(micro->grad_accum_steps, 4);
  const auto accum = fixed_batch_split(parse(kRun, {"training.gradient_accumulation_steps=2"})->training);
  EXPECT_EQ(accum->micro_batch_size, 4);
  EXPECT_EQ(total_steps(parse(kRun)->training, 1000), 20);
  EXPECT_EQ(total_steps(parse(kRun, {"training.num_epochs=1.5"})->training, 9), 2);
  EXPECT_EQ(total_steps(TrainingSettings{}, 33), 2);
}

TEST(RunConfig, AdamHasNoDecay) {
  EXPECT_EQ(parse(kRun, {"training.optimizer=adam"})->training.weight_decay, 0.0);
  EXPECT_FALSE(parse(kRun, {"training.optimizer=adam", "training.weight_decay=0.1"}));
}

TEST(RunConfig, SgdDecaysOnlyWhereAsked) {
  EXPECT_EQ(parse(kRun, {"training.optimizer=sgd"})->training.weight_decay, 0.0);
  EXPECT_EQ(parse(kRun, {"optim=sgd", "training.weight_decay=0.1"})->training.weight_decay, 0.1);
  const auto run = parse(kRun, {"training.optimizer=sgd", "momentum=0.9", "training.nesterov=true"});
  ASSERT_TRUE(run) << run.error().message();
  EXPECT_EQ(run->training.momentum, 0.9);
  EXPECT_TRUE(run->training.nesterov);
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
    const auto result = parse(row.text, row.overrides);
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
  const auto overrides = [&](std::vector<std::string> line) {
    const auto run = parse(text, std::move(line));
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

TEST(RunConfig, TakesAGlobAsAnOverride) {
  const auto result = parse(kRun, {"data.train=*.txt"});
  ASSERT_TRUE(result) << result.error().message();
  EXPECT_THAT(result->data.train, testing::ElementsAre("*.txt"));
}

/// use_gpu is no more like training.fp8.recipe than like anything else.
TEST(RunConfig, NamesNoSettingThatIsNotNear) {
  for (const char* name : {"wandb_watch", "unsloth_tiled", "training.my_flag", "x"}) {
    const auto result = parse(kRun, {std::string(name) + "=1"});
    ASSERT_FALSE(result);
    EXPECT_THAT(result.error().what, HasSubstr("there is no setting '" + std::string(name) + "'"));
    EXPECT_EQ(result.error().hint, "plimsoll train --help lists the settings") << name;
  }
}

TEST(RunConfig, NamesTheNearestByItsLastNameFirst) {
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
    const auto result = parse(kRun, {std::string(name) + "=1"});
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().hint, "did you mean " + std::string(nearest) + "?") << name;
  }
}

TEST(RunConfig, SaysAllThatIsWrongAtOnce) {
  const auto result = parse(
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

std::vector<std::string> said(const Error& error) {
  std::vector<std::string> all = {error.message()};
  for (const Error& other : error.more) all.push_back(other.message());
  return all;
}

/// Unknown keys, bad values, what contradicts, what has no effect, what is not there yet and what the use
/// lacks: one list.
TEST(RunConfig, SaysWhatChecksFindTogetherWithBadValues) {
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
TEST(RunConfig, LeavesOutWhatOnlyFollows) {
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

TEST(RunConfig, AcceptsHarmlessNamesWithOneNote) {
  const auto run = parse(
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

TEST(RunConfig, OfAnotherProgramsFileItNamesImport) {
  const auto result = parse(
      "remove_unused_columns: true\npush_to_hub: false\ndo_train: true\nblock_size: 3\neval_on_start: "
      "true\n");
  ASSERT_FALSE(result);
  ASSERT_FALSE(result.error().more.empty());
  EXPECT_THAT(result.error().more.back().hint, HasSubstr("plimsoll import makes a run file"));
}

TEST(RunConfig, Tf32SaysNothingBeside16Bits) {
  for (const char* text :
       {"data: {train: x}\nbf16: true\ntf32: true\n", "data: {train: x}\ntf32: true\nbf16: true\n"}) {
    const auto run = parse(text);
    ASSERT_TRUE(run) << run.error().message();
    EXPECT_EQ(run->training.precision, Precision::kBf16);
  }
}

TEST(RunConfig, RefusesTheSameNamesWhereTheyAskForSomething) {
  const auto result = parse(
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
    const auto run = parse(kRun, {"training.max_steps=5", name});
    ASSERT_TRUE(run) << run.error().message();
    EXPECT_EQ(run->training.max_steps, std::nullopt) << name;
  }
}

/// A hostile file costs no more than a mistyped one.
TEST(RunConfig, StopsAtManyErrors) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "no_setting_" + std::to_string(i) + ": 1\n";
  const auto result = parse(text);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().more.size(), 19U);
}

/// As transformers' TrainingArguments: 500 is the default of save_steps and of logging_steps.
TEST(RunConfig, AStrategyWithoutACountTakesTransformersDefault) {
  const std::string data = "data: {train: a.npy, eval: b.npy}\nmax_steps: 9\n";
  const auto bare = parse(data + "eval_strategy: steps\nsave_strategy: steps\n");
  ASSERT_TRUE(bare) << bare.error().message();
  EXPECT_EQ(bare->training.eval_steps, 500);
  EXPECT_EQ(bare->output.save_steps, 500);
  EXPECT_THAT(bare->notes,
              ElementsAre(HasSubstr("eval_strategy is steps without training.eval_steps: every 500"),
                          HasSubstr("save_strategy is steps without output.save_steps: every 500")));
  EXPECT_EQ(parse(data + "evaluation_strategy: steps\nlogging_steps: 20\n")->training.eval_steps, 20);
  const auto counted =
      parse(data + "eval_strategy: steps\neval_steps: 7\nsave_steps: 3\nsave_strategy: steps\n");
  EXPECT_EQ(counted->training.eval_steps, 7);
  EXPECT_EQ(counted->output.save_steps, 3);
  EXPECT_THAT(counted->notes, IsEmpty());
  EXPECT_FALSE(parse("data: {train: a.npy}\neval_strategy: steps\n")) << "there is nothing to evaluate on";
}

TEST(RunConfig, AStrategyOfNoIsNever) {
  const std::string data = "data: {train: a.npy, eval: b.npy}\n";
  for (const char* no : {"eval_strategy: no", "eval_strategy: false", "evaluation_strategy: \"no\"",
                         "training: {eval_strategy: false}"}) {
    const auto run = parse(data + no + "\n");
    ASSERT_TRUE(run) << run.error().message();
    EXPECT_FALSE(run->evaluates_while_training()) << no;
    EXPECT_TRUE(check_for_evaluation(*run)) << "plimsoll eval has its data";
  }
  EXPECT_TRUE(parse(data)->evaluates_while_training());
  // What comes later wins; at once they contradict.
  EXPECT_TRUE(parse(data + "eval_strategy: no\n", {"eval_steps=3"})->evaluates_while_training());
  EXPECT_EQ(parse(data + "save_steps: 3\n", {"save_strategy=no"})->output.save_steps, 0);
  EXPECT_EQ(parse(data + "save_strategy: no\n", {"save_steps=3"})->output.save_steps, 3);
  EXPECT_FALSE(parse(data + "eval_strategy: no\neval_steps: 3\n"));
}

TEST(RunConfig, NamesOfOneSettingContradictOnTheCommandLine) {
  for (const std::vector<std::string>& line : std::vector<std::vector<std::string>>{
           {"bf16=true", "fp16=true"},
           {"training.precision=bf16", "fp16=true"},
           {"fp16=true", "precision=bf16"},
           {"per_device_train_batch_size=4", "training.micro_batch_size=2"}}) {
    const auto result = parse(kRun, line);
    ASSERT_FALSE(result) << line[0];
    EXPECT_THAT(result.error().what, HasSubstr("contradict"));
    EXPECT_THAT(result.error().where, HasSubstr("override " + line[1]));
  }
  EXPECT_EQ(parse(kRun, {"precision=bf16", "training.precision=fp16"})->training.precision, Precision::kFp16);
  EXPECT_EQ(parse(kRun, {"bf16=true", "fp16=false"})->training.precision, Precision::kBf16);
  EXPECT_EQ(parse(std::string(kRun) + "  bf16: true\n", {"fp16=true"})->training.precision, Precision::kFp16);
}

TEST(RunConfig, AFalseTakesAnEarlierTrueBack) {
  const std::string bf16 = std::string(kRun) + "  bf16: true\n";
  EXPECT_EQ(parse(bf16, {"bf16=false"})->training.precision, Precision::kFp32);
  EXPECT_EQ(parse(bf16, {"fp16=false"})->training.precision, Precision::kBf16);
  EXPECT_EQ(parse(bf16, {"bf16=false", "fp16=true"})->training.precision, Precision::kFp16);
  EXPECT_EQ(parse("bf16: false\nfp16: true\n")->training.precision, Precision::kFp16);
}

/// TRL's defaults written down: false is every token of what the name is about, null says nothing.
TEST(RunConfig, LossOfTrlsNames) {
  const auto loss = [](const std::string& text, const std::vector<std::string>& overrides = {}) {
    const auto run = parse(text, overrides);
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

TEST(RunConfig, TellsOfAWarmUpThatOutlivesTheRun) {
  EXPECT_THAT(parse(kRun, {"warmup_steps=30"})->notes,
              ElementsAre(HasSubstr("warm-up is 30 steps and the run 20")));
  EXPECT_THAT(parse(kRun, {"warmup_ratio=1"})->notes,
              ElementsAre(HasSubstr("warm-up is 20 steps and the run 20")));
  EXPECT_THAT(parse(kRun, {"warmup_steps=19"})->notes, IsEmpty());
}

TEST(RunConfig, NamesTheLine) {
  const auto result = parse("model:\n  preset: gpt2\ntraining:\n  learning_rate: fast\n");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message(),
            "training.learning_rate is \"fast\", expected a number from 0 to 1000000: run.yaml line 4");
}

TEST(RunConfig, ALaterLossScaleTakesAStaticOneBack) {
  for (const char* later : {"training.loss_scale={init_scale: 4}", "training.loss_scale.init_scale=4",
                            "training.loss_scale=null"}) {
    const auto run = parse(kRun, {"training.precision=fp16", "training.loss_scale=128", later});
    ASSERT_TRUE(run) << run.error().message();
    EXPECT_FALSE(run->training.loss_scale.fixed) << later;
  }
  const auto fixed = parse(
      kRun, {"training.precision=fp16", "training.loss_scale={init_scale: 4}", "training.loss_scale=128"});
  ASSERT_TRUE(fixed);
  EXPECT_EQ(fixed->training.loss_scale.fixed, 128);
}

TEST(RunConfig, ALossScaleDoesNotBeginBelowItsLeast) {
  const auto run = parse(kRun, {"training.precision=fp16", "training.loss_scale.init_scale=0.5"});
  ASSERT_FALSE(run);
  EXPECT_THAT(run.error().what, HasSubstr("init_scale (0.5) is below its min_scale (1)"));
  EXPECT_FALSE(parse(kRun, {"training.precision=fp16", "training.loss_scale=1e-60"}));
}

TEST(RunConfig, DefaultsOfOptimizers) {
  struct Row {
    const char* optimizer;
    double beta2, decay;
  };
  for (const Row& row : {Row{"adamw", 0.999, 0.01}, Row{"adam", 0.999, 0}, Row{"adam_l2", 0.999, 0},
                         Row{"sgd", 0.999, 0}, Row{"lion", 0.99, 0.01}, Row{"adamw_8bit", 0.999, 0.01},
                         Row{"adafactor", 0.999, 0}, Row{"muon", 0.999, 0.01}}) {
    const std::string optimizer = std::string("training.optimizer=") + row.optimizer;
    const auto run = parse(kRun, {optimizer});
    ASSERT_TRUE(run) << run.error().message();
    EXPECT_EQ(run->training.adam_beta2, row.beta2) << row.optimizer;
    EXPECT_EQ(run->training.weight_decay, row.decay) << row.optimizer;
  }
  const auto given = parse(kRun, {"training.optimizer=lion", "training.adam_beta2=0.95", "weight_decay=0.5"});
  EXPECT_EQ(given->training.adam_beta2, 0.95);
  EXPECT_EQ(given->training.weight_decay, 0.5);
  EXPECT_EQ(parse(kRun, {"training.optimizer=muon"})->training.muon.adjust_lr_fn, "original");
}

TEST(RunConfig, AdafactorsEps) {
  using Pair = std::array<double, 2>;
  const auto eps = [](std::initializer_list<std::string> overrides, const std::string& file = "") {
    std::vector<std::string> all = {"training.optimizer=adafactor"};
    all.insert(all.end(), overrides.begin(), overrides.end());
    const auto run = parse_run_config(std::string(kRun) + file, "run.yaml", all);
    return run ? run->training.adafactor.eps : Pair{};
  };
  EXPECT_EQ(eps({}), (Pair{1e-30, 1e-3}));
  EXPECT_EQ(eps({"training.adafactor.eps=[1e-20, 0.5]"}), (Pair{1e-20, 0.5}));
  // The names of earlier versions, one for each number.
  EXPECT_EQ(eps({"training.adafactor.epsilon1=1e-20"}), (Pair{1e-20, 1e-3}));
  EXPECT_EQ(eps({"training.adafactor.epsilon1=1e-20", "training.adafactor.epsilon2=0.25"}),
            (Pair{1e-20, 0.25}));
  EXPECT_EQ(eps({"training.adafactor={epsilon2: 0.25, epsilon1: 1e-20}"}), (Pair{1e-20, 0.25}));
  EXPECT_EQ(eps({"training.adafactor.eps=[1e-20, 0.5]", "training.adafactor.epsilon2=0.25"}),
            (Pair{1e-20, 0.25}));
  for (const char* wrong : {"[0, 1e-3]", "[1e-30]", "[1e-30, 1, 1]", "1e-30", "[1e-30, 2]", "[]"})
    EXPECT_TRUE(eps({std::string("training.adafactor.eps=") + wrong}) == Pair{}) << wrong;
}

/// The rate follows from the step: one that is given says something else.
TEST(RunConfig, ARelativeStepTakesNoRate) {
  const auto refused = [](std::initializer_list<std::string> more) {
    std::vector<std::string> all = {"training.optimizer=adafactor", "training.adafactor.relative_step=true"};
    all.insert(all.end(), more.begin(), more.end());
    const auto run = parse_run_config("{model: {preset: gpt2}, data: {train: a.txt}}", "run.yaml", all);
    return run ? std::string() : run.error().message();
  };
  EXPECT_EQ(refused({}), "");
  EXPECT_EQ(refused({"training.warmup_steps=0"}), "");
  EXPECT_EQ(refused({"training.lr_scheduler=linear"}), "");
  EXPECT_THAT(refused({"training.learning_rate=0.001"}), HasSubstr("training.learning_rate"));
  EXPECT_THAT(refused({"training.learning_rate=0.0003"}), HasSubstr("training.learning_rate"));
  EXPECT_THAT(refused({"training.warmup_steps=5"}), HasSubstr("training.warmup_steps"));
  EXPECT_THAT(refused({"training.warmup_ratio=0.1"}), HasSubstr("training.warmup_ratio"));
}

TEST(RunConfig, ADiscreteDevice) {
  const auto run =
      parse(kRun, {"runtime.device=discrete",
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

  const auto plain = parse(kRun, {"runtime.device=discrete", "runtime.discrete.copy_bandwidth=3000"});
  ASSERT_TRUE(plain) << plain.error().message();
  EXPECT_EQ(plain->runtime.discrete.copy_bandwidth.bytes_per_second, 3000);
  EXPECT_EQ(plain->runtime.discrete.memory.kind, MemoryBudget::Kind::kAuto);
  EXPECT_FALSE(plain->runtime.discrete.seed || plain->runtime.discrete.check);

  const auto idle = parse(kRun, {"runtime.discrete.seed=3"});
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
  EXPECT_TRUE(check_for_training(*parse(kRun)));
  EXPECT_FALSE(check_for_training(*parse(kRun, {"data.train=null"})));
  EXPECT_FALSE(check_for_training(*parse(kRun, {"model.init=pretrained"})));
  EXPECT_TRUE(check_for_training(*parse(kRun, {"model.path=x"})));
  EXPECT_TRUE(check_for_training(*parse(kRun, {"model.path=x", "model.init=random"})));
  EXPECT_FALSE(check_for_evaluation(*parse(kRun)));
  EXPECT_TRUE(check_for_evaluation(*parse(kRun, {"data.eval=x.npy"})));
  EXPECT_FALSE(check_for_evaluation(*parse(kRun, {"data.eval=x.npy", "model.init=pretrained"})));
  EXPECT_TRUE(check_against_model(*parse(kRun), 128));
  EXPECT_EQ(check_against_model(*parse(kRun), 127).error().code, ErrorCode::kInvalidArgument);
}

TEST(LoadModelConfig, FindsTheModel) {
  const io::TemporaryFolder folder;
  folder.write(
      "config.json",
      R"({"model_type": "llama", "vocab_size": 10, "rope_scaling": {"factor": 2, "type": "linear"}})");
  ModelSettings model{.path = folder.path(),
                      .overrides = io::Tree::map({{"vocab_size", io::Tree::of(int64_t{20})}})};
  EXPECT_EQ(*load_model_config(model)->integer("vocab_size", {1, 100}), 20);
  model.path = folder.path("config.json");
  EXPECT_TRUE(load_model_config(model));
  EXPECT_EQ(*load_model_config({.preset = "gpt2"})->integer("n_layer", {1, 100}), 12);
  EXPECT_EQ(*load_model_config({.config = io::Tree::map({{"n_layer", io::Tree::of(int64_t{3})}})})
                 ->integer("n_layer", {1, 100}),
            3);
  EXPECT_EQ(load_model_config({}).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(load_model_config({.preset = "gpt3"}).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(load_model_config({.path = folder.path("none")}).error().code, ErrorCode::kBadData);
  const auto hub = load_model_config({.path = "nobody/nothing-of-that-name"});
  ASSERT_FALSE(hub);
  EXPECT_EQ(hub.error().code, ErrorCode::kBadData);
  EXPECT_THAT(hub.error().hint, HasSubstr("hf download nobody/nothing-of-that-name"));
}

TEST(CheckOverrides, NamesAMistypedField) {
  const ModelSettings model{.preset = "smollm-135m",
                            .overrides = io::Tree::map({{"num_hiden_layers", io::Tree::of(int64_t{4})}})};
  const auto config = load_model_config(model);
  ASSERT_TRUE(config);
  ASSERT_TRUE(models::find_family("llama")->parse(*config));
  const auto status = check_overrides(model, *config);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(status.error().hint, HasSubstr("num_hidden_layers"));
  EXPECT_TRUE(check_overrides({.preset = "smollm-135m"}, *config));
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
