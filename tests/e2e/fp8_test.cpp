// Training in FP8 and FP4: each recipe has its own bits, the same however it is run, and goes on from a
// checkpoint with them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "image_run.h"
#include "program.h"
#include "tensors.h"

namespace plimsoll::e2e {
namespace {

using testing::HasSubstr;

void prepare_fp8(const Folder& folder) {
  folder.write("train.txt", some_text(12'000));
  folder.write("eval.txt", some_text(700));
  folder.write("run.yaml",
               run_file("training: {global_batch_size: 4, max_steps: 6, learning_rate: 1.0e-3, lr_scheduler: "
                        "linear, warmup_steps: 1, precision: fp8}\n"));
}

Result train_fp8(const std::string& overrides) {
  const Folder folder;
  prepare_fp8(folder);
  return result_of(folder, folder.run("train run.yaml --json " + overrides));
}

class Fp8Run : public testing::TestWithParam<std::string> {
 protected:
  /// nvfp4 quantises the weights' gradients of runs of 16 tokens alone.
  [[nodiscard]] static std::string data() { return GetParam() == "nvfp4" ? " data.sequence_length=288" : ""; }
  [[nodiscard]] static std::string recipe() {
    return " training.fp8.recipe=" + GetParam() + data() +
           (GetParam() == "delayed" ? " training.fp8.amax_history_len=4" : "");
  }
};

TEST_P(Fp8Run, HasTheSameBitsHoweverItIsRun) {
  const std::string split = " training.micro_batch_size=2";
  const Result whole = train_fp8("runtime.threads=1 memory.recompute=none" + split + recipe());
  ASSERT_GT(whole.model.size(), 50'000U);
  for (const char* how :
       part_of<const char*>({"runtime.threads=3 debug.poison=true memory.recompute=none",
                             "memory.recompute=full", "debug.dump_dir=dump debug.dump=[quantized]"},
                            3)) {
    const Result other = train_fp8(how + split + recipe());
    EXPECT_EQ(whole.events, other.events) << how;
    EXPECT_TRUE(whole.model == other.model) << how;
  }
  const Result bf16 = train_fp8("training.precision=bf16" + split + data());
  EXPECT_NE(whole.events, bf16.events) << "it was in FP8";
}

/// Weights are quantised once a step where the memory is there; where it is not, once for each product.
TEST_P(Fp8Run, HasTheSameBitsWhateverIsKeptOfQuantisedWeights) {
  const Folder folder;
  prepare_fp8(folder);
  for (const std::string& split :
       part_of<std::string>({"training.micro_batch_size=1", "training.micro_batch_size=4"}, 2)) {
    for (const char* how : {" memory.recompute=none", " memory.recompute=full debug.poison=true"}) {
      const std::string run = split + how + recipe();
      const Outcome roomy = folder.run("plan run.yaml --json " + run);
      ASSERT_EQ(roomy.exit_code, 0) << roomy.err;
      EXPECT_THAT(roomy.out, HasSubstr("\"fp8_weights\"")) << run;
      const std::string less =
          " memory.budget=" + std::to_string(number(roomy.out, "process_peak_bytes") - 1);
      const Outcome narrow = folder.run("plan run.yaml --json " + run + less);
      if (narrow.exit_code == 69) continue;  // the plan is smaller with them
      ASSERT_EQ(narrow.exit_code, 0) << narrow.err;
      EXPECT_EQ(narrow.out.find("\"fp8_weights\""), std::string::npos) << run;
      const Result kept = train_fp8(run), own = train_fp8(run + less);
      EXPECT_EQ(kept.events, own.events) << run;
      EXPECT_TRUE(kept.model == own.model) << run;
    }
  }
}

/// Operands of each product, as they entered it.
TEST_P(Fp8Run, DumpsOperands) {
  const Folder folder;
  prepare_fp8(folder);
  const Outcome run = folder.run(
      "train run.yaml training.max_steps=1 debug.dump_dir=dump debug.dump=[quantized,loss]" + recipe());
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const Tensors tensors = read_tensors(folder.read("dump/step-000001.safetensors"));
  for (const std::string module : {"model.layers.0.self_attn.qkv_proj", "model.layers.1.mlp.down_proj"})
    for (const char* operand : {".x", ".w", ".dy"})
      for (const char* part : {".values", ".scales"})
        EXPECT_TRUE(tensors.contains("q." + module + operand + part)) << module << operand << part;
  const bool turns = GetParam() == "block" || GetParam() == "mxfp8" || GetParam() == "nvfp4";
  EXPECT_EQ(tensors.contains("q.model.layers.0.mlp.down_proj.x_t.values"), turns);
  EXPECT_EQ(tensors.contains("q.model.layers.0.mlp.down_proj.x.global_scale"), GetParam() == "nvfp4");
}

TEST_P(Fp8Run, GoesOnWithTheBitsOfARunThatWasNeverStopped) {
  const Result whole = train_fp8("training.micro_batch_size=2" + recipe());
  const Folder folder;
  prepare_fp8(folder);
  ASSERT_EQ(folder.run("train run.yaml output.save_steps=3 training.micro_batch_size=2" + recipe()).exit_code,
            0);
  std::filesystem::remove_all(folder.path("out/final"));
  std::filesystem::remove_all(folder.path("out/checkpoint-6"));
  const Result rest =
      result_of(folder, folder.run("train run.yaml --json training.micro_batch_size=2" + recipe()));
  EXPECT_THAT(rest.events, testing::StartsWith("{\"event\": \"step\", \"step\": 4,"));
  EXPECT_TRUE(whole.events.ends_with(rest.events));
  EXPECT_TRUE(whole.model == rest.model);
}

INSTANTIATE_TEST_SUITE_P(Each, Fp8Run, testing::Values("delayed", "current", "block", "mxfp8", "nvfp4"));

/// The history is over the effective batch, and blocks along tokens end with each sequence, so no bit depends
/// on the split.
TEST(Fp8, ScalesDoNotDependOnTheMicroBatch) {
  for (const std::string& recipe : part_of<std::string>(
           {" training.fp8.recipe=delayed", " training.fp8.recipe=block", " training.fp8.recipe=mxfp8"}, 3)) {
    const Result whole = train_fp8("training.micro_batch_size=4" + recipe);
    for (const char* split :
         {"training.micro_batch_size=2", "training.micro_batch_size=1 debug.poison=true"}) {
      const Result other = train_fp8(split + recipe);
      EXPECT_EQ(whole.events, other.events) << split << recipe;
      EXPECT_TRUE(whole.model == other.model) << split << recipe;
    }
  }
}

/// 17 tokens of an image.
TEST(Fp8, BlocksOfImagesDoNotDependOnTheMicroBatch) {
  const auto train = [&](const std::string& how) {
    const Folder folder;
    write_run(folder);
    return result_of(folder, folder.run("train run.yaml --json training.precision=fp8 " + how));
  };
  for (const std::string recipe : {"training.fp8.recipe=block ", "training.fp8.recipe=mxfp8 "}) {
    const Result whole = train(recipe + "training.micro_batch_size=8 runtime.threads=1");
    for (const char* how :
         {"training.micro_batch_size=2", "memory.recompute=full training.micro_batch_size=1"}) {
      const Result other = train(recipe + how);
      EXPECT_EQ(whole.events, other.events) << recipe << how;
      EXPECT_TRUE(whole.model == other.model) << recipe << how;
    }
  }
}

/// Copies are made of values that no split and no recomputation changes.
TEST(Fp8, QuantizedActivationsHaveTheSameBitsHoweverTheyAreMade) {
  const std::string recipe = " training.fp8.recipe=delayed training.fp8.quantized_activations=true";
  const Result whole = train_fp8("training.micro_batch_size=2 memory.recompute=none" + recipe);
  for (const char* how :
       {"training.micro_batch_size=1 runtime.threads=3 debug.poison=true memory.recompute=none",
        "training.micro_batch_size=2 memory.recompute=full",
        "training.micro_batch_size=2 memory.recompute=mlp training.fp8.amax_history_len=1024",
        "training.micro_batch_size=2 debug.dump_dir=dump debug.dump=[quantized,operands]"}) {
    const Result other = train_fp8(how + recipe);
    EXPECT_EQ(whole.events, other.events) << how;
    EXPECT_TRUE(whole.model == other.model) << how;
  }
  const Result without = train_fp8("training.micro_batch_size=2 training.fp8.recipe=delayed");
  EXPECT_NE(whole.events, without.events) << "backward reads the copies";
}

int64_t activation_bytes(const Folder& folder, const std::string& overrides) {
  const Outcome plan = folder.run(
      "plan run.yaml --json memory.recompute=none training.micro_batch_size=4 data.sequence_length=384 "
      "'model.overrides={hidden_size: 192, intermediate_size: 512, head_dim: 64, vocab_size: 259}' "
      "training.residual_in_fp32=false " +
      overrides);
  EXPECT_EQ(plan.exit_code, 0) << plan.err;
  return number(plan.out, "activations");
}

/// Of all activations alive at the peak, temporary values too.
TEST(Fp8, QuantizedActivationsNeedLessMemory) {
  const Folder folder;
  prepare_fp8(folder);
  const int64_t bf16 = activation_bytes(folder, "training.precision=bf16"),
                fp8 = activation_bytes(folder, "training.fp8.quantized_activations=true");
  EXPECT_LE(static_cast<double>(fp8), 0.7 * static_cast<double>(bf16));
  const Outcome plan =
      folder.run("plan run.yaml --explain precision training.fp8.quantized_activations=true");
  EXPECT_THAT(plan.out, HasSubstr("fp8-block-1x128"));
  EXPECT_THAT(plan.out, HasSubstr("for backward"));
}

/// Of each linear layer the three operands, in each format, once.
TEST(Fp8, ProfileShowsWhatFormatsDo) {
  const Folder folder;
  prepare_fp8(folder);
  for (const std::string precision : {"bf16", "fp8", "fp32"}) {
    const Outcome profile =
        folder.run("profile run.yaml --formats --json --active 2 training.precision=" + precision);
    ASSERT_EQ(profile.exit_code, 0) << profile.err;
    int64_t events = 0;
    for (size_t at = 0; (at = profile.out.find("\"event\": \"format\"", at)) != std::string::npos; ++at)
      ++events;
    EXPECT_EQ(events, 2 * 4 * 3 * 6) << "layers, modules, operands, formats";
    EXPECT_THAT(profile.out, HasSubstr("\"layer\": \"model.layers.1.mlp.down_proj\", \"operand\": \"dy\", "
                                       "\"as\": \"mxfp8\""));
    EXPECT_THAT(profile.out, HasSubstr("\"snr_db\""));
  }
  const Outcome text = folder.run("profile run.yaml --formats --active 1");
  EXPECT_THAT(text.out, HasSubstr("model.layers.0.self_attn.qkv_proj"));
  EXPECT_THAT(text.out, HasSubstr("nvfp4 has the lowest ratio at"));
  EXPECT_FALSE(std::filesystem::exists(folder.path("profile/.run")));
}

/// Where the step's one program updates the weights that it dumps.
TEST(Fp8, DumpsOperandsOfAWholeBatch) {
  const Folder folder;
  prepare_fp8(folder);
  for (const std::string precision : {"bf16", "fp8"}) {
    const Outcome run = folder.run(
        "train run.yaml --resume never training.max_steps=1 training.micro_batch_size=4 "
        "debug.dump_dir=dump debug.dump=[operands] training.precision=" +
        precision);
    ASSERT_EQ(run.exit_code, 0) << run.err;
    const Tensors tensors = read_tensors(folder.read("dump/step-000001.safetensors"));
    for (const char* operand : {".x", ".w", ".dy"})
      EXPECT_TRUE(tensors.contains("t.model.layers.1.mlp.down_proj" + std::string(operand))) << operand;
  }
}

/// Estimates beside what is measured, behind the plan.
TEST(Fp8, ProfileTimesProductsOfCodes) {
  const Folder folder;
  prepare_fp8(folder);
  const Outcome profile = folder.run("profile run.yaml --active 1 training.fp8.recipe=mxfp8");
  ASSERT_EQ(profile.exit_code, 0) << profile.err;
  EXPECT_THAT(profile.out, HasSubstr("scaled_matmul"));
}

TEST(Fp8, ThePlanNamesProductsAndWhatStays) {
  const Folder folder;
  prepare_fp8(folder);
  const Outcome plan = folder.run("plan run.yaml --explain precision training.fp8.recipe=mxfp8");
  EXPECT_EQ(plan.exit_code, 0) << plan.err;
  for (const char* said :
       {"fp8 operands, f32 sums", "a linear layer of a block", "outside the blocks", "mxfp8"})
    EXPECT_THAT(plan.out, HasSubstr(said));
  const Outcome kept = folder.run("plan run.yaml --explain precision training.fp8.keep_last_layers=0.5");
  EXPECT_THAT(kept.out, HasSubstr("fp8.keep_last_layers"));
  const Outcome override = folder.run(
      "plan run.yaml --explain precision training.precision=bf16 "
      "'training.precision_overrides={down_proj: fp8}' training.fp8.recipe=current");
  EXPECT_EQ(override.exit_code, 0) << override.err;
  EXPECT_THAT(override.out, HasSubstr("precision_overrides: down_proj"));
  EXPECT_THAT(override.out, HasSubstr("e5m2"));
}

/// With a card's profile, of cards that are not here.
TEST(Fp8, ThePlanSaysWhatACardMultipliesIn) {
  const Folder folder;
  prepare_fp8(folder);
  const std::string in_sixteens =
      "model.config.hidden_size=64 model.config.intermediate_size=96 model.config.num_attention_heads=2 "
      "model.config.head_dim=32 data.sequence_length=256 ";
  const auto computed_in = [&](const std::string& card, const std::string& recipe) {
    const Outcome plan =
        folder.run("plan run.yaml --explain precision --json " + in_sixteens +
                   "runtime.device=cuda runtime.profile=" + card + " training.fp8.recipe=" + recipe);
    EXPECT_EQ(plan.exit_code, 0) << plan.err;
    return plan.out.find("\"computed_in\": \"fp8\"") != std::string::npos    ? "fp8"
           : plan.out.find("\"computed_in\": \"bf16\"") != std::string::npos ? "bf16"
                                                                             : "nothing";
  };
  EXPECT_STREQ(computed_in("h100", "delayed"), "fp8");
  EXPECT_STREQ(computed_in("h100", "block"), "fp8");
  EXPECT_STREQ(computed_in("h100", "mxfp8"), "bf16");
  EXPECT_STREQ(computed_in("b200", "mxfp8"), "fp8");
  EXPECT_STREQ(computed_in("a100-80", "delayed"), "bf16");
}

TEST(Fp8, RefusesWhatDoesNotFit) {
  const Folder folder;
  prepare_fp8(folder);
  const Outcome unknown = folder.run("plan run.yaml training.fp8.recipe=mxfp4");
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("training.fp8.recipe"));
  const Outcome beside = folder.run("plan run.yaml training.precision=bf16 training.fp8.recipe=block");
  EXPECT_EQ(beside.exit_code, 2);
  EXPECT_THAT(beside.err, HasSubstr("which has no effect with training.precision bf16"));
  const Outcome transform = folder.run("plan run.yaml 'training.fp8={recipe: block, hadamard: true}'");
  EXPECT_EQ(transform.exit_code, 2);
  EXPECT_THAT(transform.err, HasSubstr("which has no effect with training.fp8.recipe block"));
  const Outcome margin = folder.run("plan run.yaml 'training.fp8={recipe: block, margin: 1}'");
  EXPECT_EQ(margin.exit_code, 2);
  EXPECT_THAT(margin.err,
              HasSubstr("training.fp8.margin is 1, which has no effect with training.fp8.recipe"));
}

}  // namespace
}  // namespace plimsoll::e2e
