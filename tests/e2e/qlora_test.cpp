// Adapters beside weights in few bits, end to end: the same bits however it is run, within the plan, near
// what the whole weights give, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/json.h"
#include "program.h"

namespace plimsoll::e2e {
namespace {

using testing::HasSubstr;

/// A model in a folder, and a run of adapters beside it.
void prepare_qlora(const Folder& folder) {
  folder.write("train.txt", some_text(9'000));
  folder.write("eval.txt", some_text(400));
  folder.write("base.yaml",
               run_file("training: {global_batch_size: 4, max_steps: 3, learning_rate: 1.0e-2}\n"));
  const Outcome base = folder.run("train base.yaml output.dir=base");
  ASSERT_EQ(base.exit_code, 0) << base.err;
  folder.write("run.yaml",
               "model: {path: base/final}\n"
               "data: {train: train.txt, eval: eval.txt, sequence_length: 300}\n"
               "lora: {r: 4, lora_alpha: 16, target_modules: all-linear, init_lora_weights: false}\n"
               "training: {global_batch_size: 4, max_steps: 3, learning_rate: 1.0e-3}\n"
               "output: {dir: out}\n");
}

Result quantized_run(const Folder& folder, const std::string& how) {
  std::filesystem::remove_all(folder.path("out"));
  const Outcome outcome = folder.run("train run.yaml --json " + how);
  EXPECT_EQ(outcome.exit_code, 0) << how << outcome.err;
  return {folder.read("out/final/adapter_model.safetensors"), events_of(outcome.out)};
}

TEST(Qlora, HasTheSameBitsHoweverItIsRun) {
  const Folder folder;
  prepare_qlora(folder);
  for (const std::string kind : {"'quantization={load_in_4bit: true, bnb_4bit_use_double_quant: true}'",
                                 "'quantization={load_in_8bit: true}'"}) {
    const Result whole = quantized_run(folder, kind + " runtime.threads=1");
    for (const std::string how :
         {" runtime.threads=3 training.micro_batch_size=1 debug.poison=true memory.recompute=full",
          " runtime.device=discrete runtime.discrete.seed=5 runtime.discrete.check=true"}) {
      const Result other = quantized_run(folder, kind + how);
      EXPECT_EQ(whole.events, other.events) << kind << how;
      EXPECT_TRUE(whole.model == other.model) << kind << how;
    }
  }
}

double number_after(const std::string& text, const std::string& key) {
  const size_t at = text.rfind(key);
  return at == std::string::npos ? -1 : std::strtod(text.c_str() + at + key.size(), nullptr);
}

/// Codes are no numbers to hold against fp16's range.
TEST(Qlora, RunsInFp16) {
  const Folder folder;
  prepare_qlora(folder);
  for (const std::string kind : {"load_in_4bit: true", "load_in_4bit: true, bnb_4bit_use_double_quant: true",
                                 "load_in_4bit: true, bnb_4bit_quant_type: fp4", "load_in_8bit: true"}) {
    const Outcome run =
        folder.run("train run.yaml --json --resume never training.precision=fp16 output.dir=half-" +
                   std::to_string(kind.size()) + " 'quantization={" + kind + "}'");
    EXPECT_EQ(run.exit_code, 0) << kind << run.err;
  }
}

TEST(Qlora, IsNearTheWholeWeightsAndWithinItsPlan) {
  const Folder folder;
  prepare_qlora(folder);
  const Outcome plain = folder.run("eval run.yaml lora=null --json");
  for (const char* kind :
       {"load_in_4bit: true", "load_in_4bit: true, bnb_4bit_quant_type: fp4", "load_in_8bit: true"}) {
    const std::string quantization = " 'quantization={" + std::string(kind) + "}'";
    const Outcome eval = folder.run("eval run.yaml lora=null --json" + quantization);
    EXPECT_EQ(eval.exit_code, 0) << eval.err;
    const double loss = number_after(eval.out, "\"loss\": ");
    EXPECT_NEAR(loss, number_after(plain.out, "\"loss\": "), 0.05) << kind;
    EXPECT_NE(loss, number_after(plain.out, "\"loss\": ")) << kind << " quantises nothing";
  }
  const Outcome train = folder.run("train run.yaml --json 'quantization={load_in_4bit: true}'");
  ASSERT_EQ(train.exit_code, 0) << train.err;
  EXPECT_EQ(number_after(train.out, "\"allocations_after_first_step\": "), 0);
  EXPECT_LE(number_after(train.out, "\"measured_peak_bytes\": "),
            number_after(train.out, "\"planned_peak_bytes\": "));
}

/// What adapters may begin with beside weights in few bits.
constexpr const char* kBeginnings[] = {
    "'quantization={load_in_4bit: true, bnb_4bit_use_double_quant: true}' lora.init_lora_weights=loftq "
    "lora.loftq_config.loftq_iter=2",
    "'quantization={load_in_8bit: true}' lora.init_lora_weights=pissa",
    "'quantization={load_in_4bit: true, llm_int8_skip_modules: [down_proj]}' lora.init_lora_weights=olora",
    "'quantization={load_in_4bit: true, bnb_4bit_quant_type: fp4}' lora.use_dora=true lora.lora_dropout=0.1",
};

TEST(Qlora, BeginningsHaveTheSameBitsAndKeepTheirPlan) {
  const Folder folder;
  prepare_qlora(folder);
  for (const std::string kind : kBeginnings) {
    const Result whole = quantized_run(folder, kind + " runtime.threads=1");
    const Result other =
        quantized_run(folder, kind +
                                  " runtime.threads=3 training.micro_batch_size=1 debug.poison=true "
                                  "memory.recompute=full");
    EXPECT_EQ(whole.events, other.events) << kind;
    EXPECT_TRUE(whole.model == other.model) << kind;
    const Outcome train = folder.run("train run.yaml --json output.dir=again " + kind);
    ASSERT_EQ(train.exit_code, 0) << train.err;
    if (!sanitized() && !on_discrete()) {
      EXPECT_LE(number_after(train.out, "\"measured_peak_bytes\": "),
                number_after(train.out, "\"planned_peak_bytes\": "))
          << kind;
    }
    std::filesystem::remove_all(folder.path("again"));
  }
}

TEST(Qlora, AdaptersAreOpenedBesideTheBaseThatTheyBeganWith) {
  const Folder folder;
  prepare_qlora(folder);
  for (const std::string kind : kBeginnings) {
    const std::string quantization = " " + kind.substr(0, kind.find("' ") + 1);
    quantized_run(folder, kind);
    std::filesystem::remove_all(folder.path("merged"));
    const Outcome eval = folder.run("eval run.yaml --adapter out/final --json" + quantization);
    ASSERT_EQ(eval.exit_code, 0) << eval.err;
    const double loss = number_after(eval.out, "\"loss\": ");
    const Outcome merge = folder.run("merge --model base/final --adapter out/final --output merged");
    ASSERT_EQ(merge.exit_code, 0) << merge.err;
    const Outcome merged = folder.run("eval run.yaml lora=null model.path=merged --json");
    // LoftQ's base is rounded again when it is merged; of the others the base is what was not rounded.
    EXPECT_NEAR(number_after(merged.out, "\"loss\": "), loss,
                kind.find("loftq") != std::string::npos ? 2e-5 : 0.05)
        << kind;
  }
}

TEST(Qlora, DumpsHaveWhatIsKeptInFewBitsAsBytes) {
  const Folder folder;
  prepare_qlora(folder);
  const Outcome train = folder.run(
      "train run.yaml quantization.load_in_4bit=true debug.dump_dir=dump 'debug.dump=[parameters]'");
  ASSERT_EQ(train.exit_code, 0) << train.err;
  const Outcome tensors = folder.run("inspect dump/step-000001.safetensors");
  EXPECT_EQ(tensors.exit_code, 0) << tensors.err;
  EXPECT_THAT(tensors.out, HasSubstr("U8"));
}

TEST(Qlora, WhatCannotBeIsRefused) {
  const Folder folder;
  prepare_qlora(folder);
  const auto refused = [&](const std::string& overrides, const char* what) {
    const Outcome outcome = folder.run("train run.yaml " + overrides);
    EXPECT_EQ(outcome.exit_code, 2) << overrides;
    EXPECT_THAT(outcome.err, HasSubstr(what));
  };
  refused("lora=null quantization.load_in_4bit=true", "quantization is set without lora");
  refused("quantization.load_in_4bit=true quantization.load_in_8bit=true", "both true");
  refused("quantization.load_in_4bit=true quantization.bnb_4bit_compute_dtype=bfloat16",
          "bnb_4bit_compute_dtype");
  refused("quantization.load_in_4bit=true quantization.llm_int8_skip_modules=[q_prj]",
          "no linear layer is named q_prj");
  refused("lora.init_lora_weights=loftq", "the weights are not quantized");
  refused("quantization.load_in_4bit=true lora.init_lora_weights=loftq lora.loftq_config.loftq_bits=8",
          "loftq_bits is 8");
  refused("quantization.load_in_4bit=true lora.loftq_config.loftq_iter=3", "has no effect");
  refused("quantization.load_in_4bit=true lora.use_dora=true lora.init_lora_weights=loftq", "loftq");
  refused("quantization.load_in_4bit=true model.init=random", "weights are drawn at random");
}

}  // namespace
}  // namespace plimsoll::e2e
