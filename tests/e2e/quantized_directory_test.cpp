// Directories whose weights are in few bits already, end to end: what quantize writes is trained on,
// evaluated and answers with the bits that quantising while loading gives, and what does not belong together
// is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/json.h"
#include "program.h"

namespace plimsoll::e2e {
namespace {

using testing::HasSubstr;

/// A way of quantising: as `quantize` is asked for it, and as a run is.
struct Kind {
  const char *arguments, *settings, *flags;
};
constexpr Kind kKinds[] = {
    {"--format nf4", "load_in_4bit: true, bnb_4bit_use_double_quant: true",
     " --load-in-4bit --bnb-4bit-use-double-quant"},
    {"--format nf4 --double-quant false", "load_in_4bit: true", " --load-in-4bit"},
    {"--format fp4", "load_in_4bit: true, bnb_4bit_quant_type: fp4, bnb_4bit_use_double_quant: true",
     " --load-in-4bit --bnb-4bit-quant-type fp4 --bnb-4bit-use-double-quant"},
    {"--format int8", "load_in_8bit: true", " --load-in-8bit"}};

/// A model in base/final, and a run of adapters beside it.
void prepare_base(const Folder& folder, const std::string& model = run_file()) {
  folder.write("train.txt", some_text(9'000));
  folder.write("eval.txt", some_text(400));
  folder.write("base.yaml",
               model + "training: {global_batch_size: 4, max_steps: 2, learning_rate: 1.0e-2}\n");
  const Outcome base = folder.run("train base.yaml output.dir=base");
  ASSERT_EQ(base.exit_code, 0) << base.err;
  folder.write("run.yaml",
               "model: {path: base/final}\n"
               "data: {train: train.txt, eval: eval.txt, sequence_length: 200}\n"
               "lora: {r: 4, lora_alpha: 16, target_modules: all-linear, init_lora_weights: false}\n"
               "training: {global_batch_size: 4, max_steps: 3, learning_rate: 1.0e-3}\n"
               "output: {dir: out}\n");
}

void quantize_base(const Folder& folder, const std::string& arguments, const std::string& to = "few") {
  std::filesystem::remove_all(folder.path(to));
  const Outcome outcome = folder.run("quantize --model base/final --output " + to + " " + arguments);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
}

Result trained_beside(const Folder& folder, const std::string& how) {
  std::filesystem::remove_all(folder.path("out"));
  const Outcome outcome = folder.run("train run.yaml --json " + how);
  EXPECT_EQ(outcome.exit_code, 0) << how << outcome.err;
  EXPECT_EQ(number(outcome.out, "allocations_after_first_step"), 0) << how;
  EXPECT_LE(number(outcome.out, "measured_peak_bytes"), number(outcome.out, "planned_peak_bytes")) << how;
  return {folder.read("out/final/adapter_model.safetensors"), events_of(outcome.out)};
}

TEST(QuantizedDirectory, TrainsWithTheBitsOfQuantisingWhileLoading) {
  const Folder folder;
  prepare_base(folder);
  for (const Kind& kind : kKinds) {
    quantize_base(folder, kind.arguments);
    const std::string settings = "'quantization={" + std::string(kind.settings) + "}'";
    const Result loaded = trained_beside(folder, settings);
    EXPECT_THAT(loaded.events, HasSubstr("\"step\""));
    for (const std::string& how :
         {std::string(), settings, std::string("debug.poison=true runtime.threads=1")}) {
      const Result stored = trained_beside(folder, "model.path=few " + how);
      EXPECT_EQ(stored.events, loaded.events) << kind.arguments << how;
      EXPECT_TRUE(stored.model == loaded.model) << kind.arguments << how;
    }
  }
}

TEST(QuantizedDirectory, EvaluatesAndAnswersWithAndWithoutAdapter) {
  const Folder folder;
  prepare_base(folder);
  for (const Kind& kind : kKinds) {
    quantize_base(folder, kind.arguments);
    const std::string settings = " 'quantization={" + std::string(kind.settings) + "}'";
    (void)trained_beside(folder, "model.path=few");
    for (const std::string with : {" lora=null", " --adapter out/final"}) {
      const Outcome loaded = folder.run("eval run.yaml --json" + with + settings);
      const Outcome stored = folder.run("eval run.yaml --json model.path=few" + with);
      EXPECT_EQ(stored.exit_code, 0) << stored.err;
      EXPECT_EQ(events_of(stored.out), events_of(loaded.out)) << kind.arguments << with;
    }
    for (const std::string with : {"", " --adapter out/final", " --dtype bf16"}) {
      const std::string how = " --prompt 'the ship ' --max-new-tokens 8 --temperature 0" + with;
      const Outcome answer = folder.run("generate --model few" + how);
      EXPECT_EQ(answer.exit_code, 0) << kind.arguments << with << answer.err;
      EXPECT_FALSE(answer.out.empty()) << kind.arguments << with;
      const Outcome loaded = folder.run("generate --model base/final" + how + kind.flags);
      EXPECT_EQ(loaded.exit_code, 0) << kind.flags << with << loaded.err;
      EXPECT_EQ(loaded.out, answer.out) << kind.flags << with;
    }
  }
}

TEST(QuantizedDirectory, Gpt2IsTakenAsItLiesInTheFiles) {
  const Folder folder;
  prepare_base(
      folder,
      "model:\n"
      "  config: {model_type: gpt2, vocab_size: 259, n_embd: 60, n_layer: 2, n_head: 3, n_positions: "
      "300}\n"
      "  init: random\n"
      "data: {train: train.txt, eval: eval.txt, sequence_length: 200}\n"
      "output: {dir: out}\n");
  for (const Kind& kind : kKinds) {
    quantize_base(folder, kind.arguments);
    const Result one = trained_beside(folder, "model.path=few runtime.threads=1");
    const Result two = trained_beside(folder, "model.path=few runtime.threads=3 training.micro_batch_size=1");
    EXPECT_EQ(one.events, two.events) << kind.arguments;
    EXPECT_TRUE(one.model == two.model) << kind.arguments;
    const auto loss = [&](const std::string& how) {
      const Outcome eval = folder.run("eval run.yaml lora=null --json " + how);
      EXPECT_EQ(eval.exit_code, 0) << eval.err;
      const size_t at = eval.out.rfind("\"loss\": ");
      return at == std::string::npos ? -1 : std::strtod(eval.out.c_str() + at + 8, nullptr);
    };
    EXPECT_NEAR(loss("model.path=few"), loss(""), 0.05) << kind.arguments;
  }
}

TEST(QuantizedDirectory, WhatCannotBeIsRefused) {
  const Folder folder;
  prepare_base(folder);
  quantize_base(folder, "--format nf4");
  const auto refused = [&](const std::string& arguments, const char* what) {
    const Outcome outcome = folder.run(arguments);
    EXPECT_EQ(outcome.exit_code, 2) << arguments << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(what)) << arguments;
  };
  const std::string run = "train run.yaml model.path=few ";
  refused(run + "lora=null", "cannot be trained themselves");
  refused(run + "quantization.load_in_8bit=true", "already quantized to nf4 with double quantization");
  refused(run + "quantization.load_in_4bit=true", "quantization is nf4, and");
  refused(run + "model.init=random", "drawn at random");
  for (const char* init : {"pissa", "olora", "loftq"})
    refused(run + "lora.init_lora_weights=" + init, "takes the adapters from the original weights");
  refused(run + "'lora.modules_to_save=[down_proj]' 'lora.target_modules=[q_proj]'",
          "model.layers.0.mlp.down_proj.weight is to be trained");
  refused("export --model few --format gguf --output few.gguf", "quantized by bitsandbytes");
  const Outcome again = folder.run("quantize --model few --format fp4 --output fewer");
  EXPECT_EQ(again.exit_code, 65);
  EXPECT_THAT(again.err, HasSubstr("already quantized"));
}

/// The first `from` in a file becomes `to`, of the same length where it stands in a safetensors header.
void change(const Folder& folder, const std::string& file, const std::string& from, const std::string& to) {
  std::string content = folder.read(file);
  const size_t at = content.find(from);
  ASSERT_NE(at, std::string::npos) << from;
  content.replace(at, from.size(), to);
  folder.write(file, content);
}

TEST(QuantizedDirectory, DamagedFilesAreNamed) {
  const Folder folder;
  prepare_base(folder);
  const std::string weights = "few/model.safetensors", config = "few/config.json";
  struct Case {
    std::string file, from, to, message;
  };
  const std::string first = "model.layers.0.mlp.down_proj.weight";
  for (const Case& c : std::vector<Case>{
           {weights, first + ".absmax", first + ".absmay", "there is no " + first + ".absmax"},
           {weights, first + ".quant_state.bitsandbytes__nf4", first + ".quant_state.bitsandbytes__xf4",
            "no quant state of nf4 or fp4"},
           {weights, "\"quant_type\": \"nf4\"", "\"quant_type\": \"af4\"", "quant_type"},
           {weights, "\"shape\": [60, 70]", "\"shape\": [61, 70]", "expected 2135 elements of U8"},
           {weights, "\"shape\": [60, 70]", "\"shape\": [70, 60]", "of another shape"},
           {config, "\"bnb_4bit_quant_type\": \"nf4\"", "\"bnb_4bit_quant_type\": \"fp4\"",
            "not in the bits that config.json says"},
           {config, "\"bnb_4bit_use_double_quant\": true", "\"bnb_4bit_use_double_quant\": false",
            "nf4 with double quantization, expected nf4"},
           {config, "\"load_in_4bit\": true", "\"load_in_4bit\": false", "needs one of load_in_4bit"},
           {config, "\"quant_method\": \"bitsandbytes\"", "\"quant_method\": \"gptq\"", "quantized by gptq"},
           {config, "\"llm_int8_skip_modules\": null", "\"llm_int8_skip_modules\": [\"down_proj\"]",
            "expected plain numbers"},
           {config, "quantization_config", "quantization_conf", "has no quantization_config"}}) {
    quantize_base(folder, "--format nf4");
    change(folder, c.file, c.from, c.to);
    const Outcome outcome = folder.run("train run.yaml model.path=few");
    EXPECT_EQ(outcome.exit_code, 65) << c.message << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(c.message));
  }
  quantize_base(folder, "--format nf4");
  std::filesystem::copy_file(folder.path("base/final/model.safetensors"), folder.path(weights),
                             std::filesystem::copy_options::overwrite_existing);
  const Outcome plain = folder.run("eval run.yaml lora=null model.path=few");
  EXPECT_EQ(plain.exit_code, 65);
  EXPECT_THAT(plain.err, HasSubstr("expected nf4 with double quantization"));
}

}  // namespace
}  // namespace plimsoll::e2e
