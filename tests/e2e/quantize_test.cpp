// plimsoll quantize end to end: what it writes in each format, what it leaves as it is, and what it refuses;
// plimsoll merge onto what it wrote.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/json.h"
#include "program.h"
#include "tensors.h"

namespace plimsoll::e2e {
namespace {

using testing::HasSubstr;

/// A model in base/final, and a run of adapters beside it.
void make_base(const Folder& folder, const std::string& how = "") {
  folder.write("train.txt", some_text(9'000));
  folder.write("eval.txt", some_text(400));
  folder.write("base.yaml",
               run_file("training: {global_batch_size: 4, max_steps: 2, learning_rate: 1.0e-2}\n"));
  const Outcome base = folder.run("train base.yaml output.dir=base " + how);
  ASSERT_EQ(base.exit_code, 0) << base.err;
  folder.write("run.yaml",
               "model: {path: base/final}\n"
               "data: {train: train.txt, eval: eval.txt, sequence_length: 200}\n"
               "lora: {r: 4, lora_alpha: 16, target_modules: all-linear, init_lora_weights: false}\n"
               "training: {global_batch_size: 4, max_steps: 3, learning_rate: 1.0e-3}\n"
               "output: {dir: out}\n");
}

/// The header of a safetensors file, as a tree.
io::Tree header_of(const std::string& content) {
  uint64_t length = 0;
  std::memcpy(&length, content.data(), sizeof length);
  return io::parse_json(content.substr(sizeof length, length)).value();
}

std::vector<std::string> names_of(const Folder& folder, const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path(directory)))
    if (entry.path().extension() == ".safetensors")
      for (const auto& [name, tensor] :
           header_of(folder.read(directory + "/" + entry.path().filename().string())).members)
        if (name != "__metadata__") names.push_back(name);
  return names;
}

double evaluated_loss(const Outcome& outcome) {
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const size_t at = outcome.out.rfind("\"loss\": ");
  return at == std::string::npos ? -1 : std::strtod(outcome.out.c_str() + at + 8, nullptr);
}

TEST(Quantize, WritesEachFormat) {
  const Folder folder;
  make_base(folder, "output.max_shard_size=60KB");
  const std::string down = "model.layers.1.mlp.down_proj.weight";
  struct Case {
    std::string arguments, config;
    std::vector<std::string> parts;
  };
  for (const Case& c : std::vector<Case>{{"--format nf4",
                                          "\"bnb_4bit_use_double_quant\": true",
                                          {".absmax", ".quant_map", ".nested_absmax", ".nested_quant_map",
                                           ".quant_state.bitsandbytes__nf4"}},
                                         {"--format nf4 --double-quant false",
                                          "\"bnb_4bit_use_double_quant\": false",
                                          {".absmax", ".quant_map", ".quant_state.bitsandbytes__nf4"}},
                                         {"--format fp4 --double-quant",
                                          "\"bnb_4bit_quant_type\": \"fp4\"",
                                          {".quant_state.bitsandbytes__fp4"}},
                                         {"--format int8", "\"load_in_8bit\": true", {}}}) {
    std::filesystem::remove_all(folder.path("few"));
    const Outcome outcome = folder.run("quantize --model base/final " + c.arguments + " --output few --json");
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(number(outcome.out, "quantized"), 14);
    EXPECT_LT(number(outcome.out, "bytes"), number(outcome.out, "bytes_before"));
    EXPECT_THAT(folder.read("few/config.json"), HasSubstr(c.config));
    const std::vector<std::string> names = names_of(folder, "few");
    EXPECT_THAT(names, testing::Contains(down));
    for (const std::string& part : c.parts) EXPECT_THAT(names, testing::Contains(down + part));
    if (c.parts.empty()) {
      EXPECT_THAT(names, testing::Contains("model.layers.1.mlp.down_proj.SCB"));
    }
    const std::string index = folder.read("few/model.safetensors.index.json");
    for (const std::string& name : names) EXPECT_THAT(index, HasSubstr("\"" + name + "\""));
    const Outcome inspected = folder.run("inspect few");
    EXPECT_EQ(inspected.exit_code, 0) << inspected.err;
    EXPECT_THAT(inspected.out, HasSubstr("the tensors are those of the config"));
  }
}

TEST(Quantize, WhatIsSkippedStaysAndIsSaid) {
  const Folder folder;
  make_base(folder);
  const std::string quantize = "quantize --model base/final --format nf4 --output ";
  const Outcome outcome =
      folder.run(quantize + "few --json --skip-modules down_proj --skip-modules layers.0.self_attn.q_proj");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(number(outcome.out, "quantized"), 11);
  const std::string config = folder.read("few/config.json");
  for (const char* name : {"model.layers.0.self_attn.q_proj", "model.layers.1.mlp.down_proj", "lm_head"})
    EXPECT_THAT(config, HasSubstr("\"" + std::string(name) + "\""));
  const std::string settings =
      " 'quantization={load_in_4bit: true, bnb_4bit_use_double_quant: true, llm_int8_skip_modules: "
      "[down_proj, layers.0.self_attn.q_proj]}'";
  EXPECT_EQ(evaluated_loss(folder.run("eval run.yaml lora=null --json model.path=few")),
            evaluated_loss(folder.run("eval run.yaml lora=null --json" + settings)));
  const Outcome none = folder.run(quantize + "fewer --skip-modules down_prj");
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.err, HasSubstr("no linear layer is named down_prj"));
}

TEST(Quantize, OverwritesNothingAndLeavesNothing) {
  const Folder folder;
  make_base(folder);
  const auto refused = [&](const std::string& output, int code, const char* what) {
    const Outcome outcome = folder.run("quantize --model base/final --format nf4 --output " + output);
    EXPECT_EQ(outcome.exit_code, code) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(what));
  };
  const std::string before = folder.read("base/final/model.safetensors");
  refused("base/../base/final", 2, "would overwrite its source");
  std::filesystem::create_directory(folder.path("few"));
  folder.write("few/note.txt", "kept");
  refused("few", 2, "exists already");
  EXPECT_EQ(folder.read("few/note.txt"), "kept");
  EXPECT_TRUE(folder.read("base/final/model.safetensors") == before);

  std::string damaged = before;
  const io::Tree header = header_of(before);
  const io::Tree* tensor = header.find("model.layers.0.mlp.down_proj.weight");
  uint64_t length = 0;
  std::memcpy(&length, before.data(), sizeof length);
  const float infinite = std::numeric_limits<float>::infinity();
  std::memcpy(damaged.data() + 8 + length + tensor->find("data_offsets")->items.at(0).integer, &infinite,
              sizeof infinite);
  folder.write("base/final/model.safetensors", damaged);
  refused("none/few", 74, "none/");  // before the weights are read
  refused("bad", 65, "model.layers.0.mlp.down_proj.weight has values that are not finite");
  folder.write("base/final/model.safetensors", before.substr(0, before.size() - 100));
  refused("bad", 65, "model.safetensors");
  EXPECT_FALSE(std::filesystem::exists(folder.path("bad")));
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    EXPECT_FALSE(entry.path().filename().string().starts_with(".bad")) << entry.path();
}

/// Every command that reads a model's weights takes what training takes, and nothing else.
TEST(Quantize, ReadersRefuseWhatTrainingRefuses) {
  const Folder folder;
  make_base(folder, "model.config.tie_word_embeddings=false");
  ASSERT_EQ(folder.run("train run.yaml").exit_code, 0);
  const std::string config = folder.read("base/final/config.json");
  const auto with = [&](const std::string& before, const std::string& after) {
    std::string changed = config;
    const size_t at = changed.find(before);
    EXPECT_NE(at, std::string::npos) << before;
    folder.write("base/final/config.json", changed.replace(at, before.size(), after));
  };
  const auto all_refuse = [&](const char* what) {
    for (const char* command : {"train run.yaml output.dir=two", "eval run.yaml --adapter out/final",
                                "inspect base/final", "quantize --model base/final --format nf4 --output few",
                                "merge --model base/final --adapter out/final --output merged",
                                "generate --model base/final --prompt-ids 3,4 --max-new-tokens 2"}) {
      const Outcome outcome = folder.run(command);
      EXPECT_EQ(outcome.exit_code, 65) << command << outcome.err;
      EXPECT_THAT(outcome.err, HasSubstr(what)) << command;
    }
    EXPECT_FALSE(std::filesystem::exists(folder.path("few")) ||
                 std::filesystem::exists(folder.path("merged")));
  };
  with("\"tie_word_embeddings\": false", "\"tie_word_embeddings\": true");
  all_refuse("lm_head.weight differs from it");
  with("\"attention_bias\": true", "\"attention_bias\": false");
  all_refuse("8 that the model does not have");
  with("\"intermediate_size\": 70", "\"intermediate_size\": 72");
  all_refuse("6 of another shape");
}

TEST(Quantize, MergesOntoWhatItWrote) {
  const Folder folder;
  make_base(folder);
  for (const std::string arguments : {"--format nf4", "--format fp4 --double-quant false", "--format int8"}) {
    for (const char* old : {"few", "out", "merged"}) std::filesystem::remove_all(folder.path(old));
    ASSERT_EQ(folder.run("quantize --model base/final --output few " + arguments).exit_code, 0);
    ASSERT_EQ(folder.run("train run.yaml model.path=few").exit_code, 0);
    const Outcome merged = folder.run("merge --model few --adapter out/final --output merged --json");
    ASSERT_EQ(merged.exit_code, 0) << merged.err;
    EXPECT_EQ(number(merged.out, "tensors"), 28);
    EXPECT_EQ(number(merged.out, "changed"), 14);
    EXPECT_EQ(number(merged.out, "dequantized"), 14);
    EXPECT_EQ(number(merged.out, "proven_rows"), 14 * 8);
    EXPECT_EQ(folder.read("merged/config.json").find("quantization_config"), std::string::npos);
    EXPECT_EQ(read_tensors(folder.read("merged/model.safetensors")).size(), 28);
    const double beside =
        evaluated_loss(folder.run("eval run.yaml --json model.path=few --adapter out/final"));
    EXPECT_NEAR(evaluated_loss(folder.run("eval run.yaml lora=null --json model.path=merged")), beside, 1e-5);
    const std::string prompt = " --prompt-ids 3,4,5 --max-new-tokens 8 --temperature 0 --json";
    const Outcome one = folder.run("generate --model few --adapter out/final" + prompt);
    const Outcome two = folder.run("generate --model merged" + prompt);
    const auto ids = [](const std::string& out) { return out.substr(out.find("\"tokens\""), 60); };
    EXPECT_EQ(ids(one.out), ids(two.out)) << one.err << two.err;
  }
}

}  // namespace
}  // namespace plimsoll::e2e
