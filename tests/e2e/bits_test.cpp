// How a run is carried out never changes a bit of what comes out: the final model is compared byte by byte.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "program.h"

namespace plimsoll::e2e {
namespace {

constexpr const char* kThreeSteps =
    "training: {global_batch_size: 8, max_steps: 3, learning_rate: 1.0e-3, lr_scheduler: linear, "
    "warmup_steps: 1}\n";

/// The final weights, and loss and norm of each step, of a run with these overrides.
Result train_three_steps(const std::string& overrides, const std::string& environment = "",
                         const std::string& model = "") {
  Folder folder;
  folder.write("train.txt", some_text(20'000));
  folder.write("eval.txt", some_text(700));
  folder.write("run.yaml", (model.empty() ? run_file() : model) + kThreeSteps);
  return result_of(folder, folder.run("train run.yaml --json " + overrides, environment));
}

const Result& three_steps() {
  static const Result result = train_three_steps("runtime.threads=2");
  return result;
}

class Bits : public testing::TestWithParam<const char*> {};

TEST_P(Bits, AreThoseOfThePlainRun) {
  ASSERT_GT(three_steps().model.size(), 100'000U);
  const Result result = train_three_steps(GetParam());
  EXPECT_EQ(std::count(result.events.begin(), result.events.end(), '\n'), 4);  // three steps, one evaluation
  EXPECT_EQ(result.events, three_steps().events);
  EXPECT_TRUE(result.model == three_steps().model);
}

INSTANTIATE_TEST_SUITE_P(Threads, Bits,
                         testing::Values("runtime.threads=1", "runtime.threads=3", "runtime.threads=8"));
INSTANTIATE_TEST_SUITE_P(MicroBatches, Bits,
                         testing::Values("training.micro_batch_size=1", "training.micro_batch_size=2",
                                         "training.micro_batch_size=4",
                                         "training.gradient_accumulation_steps=1"));
INSTANTIATE_TEST_SUITE_P(Memory, Bits,
                         testing::Values("debug.poison=true", "debug.plan=separate",
                                         "debug.plan=separate debug.poison=true",
                                         "debug.poison=true training.micro_batch_size=2 runtime.threads=3",
                                         "memory.recompute=none", "debug.dump_dir=dump"));
INSTANTIATE_TEST_SUITE_P(Recompute, Bits,
                         testing::Values("memory.recompute=full",
                                         "memory.recompute=segments debug.poison=true",
                                         "'memory.recompute={segments: 1}' training.micro_batch_size=2",
                                         "'memory.recompute={every: 2}' runtime.threads=3",
                                         "memory.recompute=attention training.micro_batch_size=4",
                                         "memory.recompute=mlp debug.plan=separate debug.poison=true",
                                         "memory.recompute=selective",
                                         "'memory.recompute={layers: [layers.1, layers.0.mlp]}'"));

/// By every rule, in every format of the state.
TEST(BitsTest, HoldWithTheOptimizerInBackward) {
  const std::string unclipped = "training.max_grad_norm=0 ", clipped = "training.max_grad_norm=0.5 ";
  constexpr const char* kAllBf16 =
      "training.precision=bf16 training.state.weights=bf16 training.state.master_weights=false "
      "training.state.gradients=bf16 training.state.moments=bf16";
  for (const std::string how : part_of<const char*>(
           {"training.optimizer=sgd training.momentum=0.9", "training.optimizer=adamw",
            "training.optimizer=adamw_8bit", "training.optimizer=adafactor", "training.optimizer=muon",
            "training.optimizer=lion training.precision=bf16 training.state.weights=bf16", kAllBf16},
           3)) {
    const Result behind = train_three_steps(unclipped + how + " memory.optimizer_in_backward=false");
    const Result in = train_three_steps(
        unclipped + how +
        " memory.optimizer_in_backward=true memory.recompute=full runtime.threads=3 debug.poison=true");
    EXPECT_EQ(in.events, behind.events) << how;
    EXPECT_TRUE(in.model == behind.model) << how;
  }
  const Result behind = train_three_steps(clipped);
  EXPECT_FALSE(behind.model == train_three_steps(unclipped).model);
  for (const char* how : {"memory.recompute=segments debug.poison=true", "memory.recompute=none"}) {
    const Result twice = train_three_steps(
        clipped + "memory.optimizer_in_backward=true memory.second_backward=true runtime.threads=3 " + how);
    EXPECT_EQ(twice.events, behind.events) << how;
    EXPECT_TRUE(twice.model == behind.model) << how;
  }
}

/// Its cost is the planner's to say.
TEST(BitsTest, ClippingIsNamedWithTheCostOfASecondBackward) {
  Folder folder;
  folder.write("run.yaml", run_file() + kThreeSteps);
  const Outcome refused = folder.run("plan run.yaml memory.optimizer_in_backward=true");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("training.max_grad_norm=1 needs the norm"), std::string::npos) << refused.err;
  const std::string says = "memory.second_backward=true, which would take about ";
  const size_t at = refused.err.find(says);
  ASSERT_NE(at, std::string::npos) << refused.err;
  const int percent =
      std::atoi(refused.err.c_str() + at + says.size());  // by the rates of the instruction set
  EXPECT_TRUE(50 < percent && percent < 90) << refused.err;
}

TEST(BitsTest, HoldOnEachInstructionSet) {
  for (const char* isa : {"PLIMSOLL_ISA=portable", "PLIMSOLL_ISA=avx2"}) {
    const Result whole = train_three_steps("runtime.threads=1", isa);
    const Result split =
        train_three_steps("runtime.threads=3 training.micro_batch_size=2 debug.poison=true", isa);
    EXPECT_EQ(whole.events, split.events) << isa;
    EXPECT_TRUE(whole.model == split.model) << isa;
  }
}

TEST(BitsTest, HoldInEachPrecision) {
  constexpr const char* kMixed =
      "training.precision=bf16 training.precision_overrides.lm_head=fp32 "
      "training.precision_overrides.model.layers.0=tf32";
  for (const std::string precision :
       part_of<const char*>({"training.precision=tf32", "training.precision=bf16",
                             "training.precision=bf16 training.residual_in_fp32=false",
                             "training.precision=fp16 training.loss_scale.growth_interval=2", kMixed},
                            3)) {
    const Result whole = train_three_steps("runtime.threads=1 " + precision);
    EXPECT_FALSE(whole.model == three_steps().model) << precision;
    const bool scales = precision.find("fp16") != std::string::npos;
    EXPECT_EQ(whole.events.find("\"loss_scale\"") != std::string::npos, scales)
        << "the scale is compared too";
    for (const char* other :
         part_of<const char*>({"runtime.threads=3 training.micro_batch_size=2 debug.poison=true",
                               "training.micro_batch_size=1", "memory.recompute=none",
                               "memory.recompute=full", "debug.dump_dir=dump"},
                              2)) {
      const Result result = train_three_steps(other + (" " + precision));
      EXPECT_EQ(whole.events, result.events) << precision << " " << other;
      EXPECT_TRUE(whole.model == result.model) << precision << " " << other;
    }
  }
  for (const char* isa :
       part_of<const char*>({"PLIMSOLL_ISA=avx2", "PLIMSOLL_ISA=avx512", "PLIMSOLL_ISA=avx512_bf16"}, 3)) {
    const Result whole = train_three_steps("runtime.threads=1 training.precision=bf16", isa);
    const Result split =
        train_three_steps("runtime.threads=3 training.precision=bf16 training.micro_batch_size=2", isa);
    EXPECT_EQ(whole.events, split.events) << isa;
    EXPECT_TRUE(whole.model == split.model) << isa;
  }
}

TEST(BitsTest, HoldForGpt2) {
  const std::string model =
      "model:\n  config: {model_type: gpt2, vocab_size: 259, n_embd: 48, n_layer: 2, n_head: 3, n_positions: "
      "400, resid_pdrop: 0,\n"
      "    embd_pdrop: 0, attn_pdrop: 0}\n  init: random\n"
      "data: {train: train.txt, eval: eval.txt, sequence_length: 300}\noutput: {dir: out}\n";
  const Result whole = train_three_steps("runtime.threads=1", "", model);
  const Result split =
      train_three_steps("runtime.threads=3 training.micro_batch_size=2 debug.poison=true", "", model);
  EXPECT_EQ(whole.events, split.events);
  EXPECT_TRUE(whole.model == split.model);
}

/// As it comes from the hub: dropout of embeddings, residuals and attention's weights.
TEST(BitsTest, HoldForDropout) {
  const std::string sizes = "vocab_size: 259, n_embd: 48, n_layer: 2, n_head: 3, n_positions: 400";
  const auto model = [&](const std::string& dropout) {
    return "model:\n  config: {model_type: gpt2, " + sizes + dropout + "}\n  init: random\n" +
           "data: {train: train.txt, eval: eval.txt, sequence_length: 300}\noutput: {dir: out}\n";
  };
  const std::string dropping = model(", resid_pdrop: 0.1, embd_pdrop: 0.1, attn_pdrop: 0.1");
  const Result whole = train_three_steps("runtime.threads=1", "", dropping);
  for (const char* split :
       part_of<const char*>({"runtime.threads=3 training.micro_batch_size=2 debug.poison=true",
                             "training.micro_batch_size=1", "memory.recompute=none", "memory.recompute=full",
                             "'memory.recompute={segments: 1}' training.micro_batch_size=2",
                             "memory.recompute=attention", "debug.dump_dir=dump"},
                            3)) {
    const Result other = train_three_steps(split, "", dropping);
    EXPECT_EQ(whole.events, other.events) << split;
    EXPECT_TRUE(whole.model == other.model) << split;
  }
  EXPECT_FALSE(whole.model ==
               train_three_steps("", "", model(", resid_pdrop: 0, embd_pdrop: 0, attn_pdrop: 0")).model);
  EXPECT_FALSE(whole.model ==
               train_three_steps("", "", model(", resid_pdrop: 0.1, embd_pdrop: 0.1, attn_pdrop: 0")).model);
}

TEST(BitsTest, HoldForQwen3) {
  const std::string model =
      "model:\n  config: {model_type: qwen3, vocab_size: 259, hidden_size: 60, intermediate_size: 70, "
      "num_hidden_layers: 2,\n    num_attention_heads: 3, num_key_value_heads: 1, head_dim: 20, "
      "max_position_embeddings: 400,\n    use_sliding_window: true, sliding_window: 70, max_window_layers: "
      "1, "
      "pad_token_id: 32, attention_dropout: 0.1}\n  init: random\n"
      "data: {train: train.txt, eval: eval.txt, sequence_length: 300}\noutput: {dir: out}\n";
  const Result whole = train_three_steps("runtime.threads=1", "", model);
  for (const char* split :
       {"runtime.threads=3 training.micro_batch_size=2 debug.poison=true", "memory.recompute=none"}) {
    const Result other = train_three_steps(split, "", model);
    EXPECT_EQ(whole.events, other.events) << split;
    EXPECT_TRUE(whole.model == other.model) << split;
  }
}

TEST(BitsTest, DifferForAnotherSeed) {
  const Result other = train_three_steps("training.seed=7");
  EXPECT_FALSE(other.model == three_steps().model);
}

}  // namespace
}  // namespace plimsoll::e2e
