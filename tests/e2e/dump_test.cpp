// What debug.dump_dir and the final directory hold: keys, shapes and bytes, and that the parts fit each other
// - the loss is that of the logits, the norm that of the gradients, the final model the last step's
// parameters.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "io/json.h"
#include "program.h"
#include "tensors.h"

namespace plimsoll::e2e {
namespace {

using testing::ElementsAre;

constexpr int64_t kBatch = 4, kTokens = 300, kVocab = 259;
constexpr int kTextBytes = 5000;

/// Two steps, of which the first has rate 0; the clip bites. An empty `dump` is the default.
std::string training(const std::string& dump) {
  return "training: {global_batch_size: 4, max_steps: 2, learning_rate: 1.0e-3, warmup_steps: 1, "
         "max_grad_norm: "
         "0.05}\n"
         "debug: {dump_dir: dump" +
         (dump.empty() ? "" : ", dump: [" + dump + "]") + "}\n";
}

/// The small odd Llama's parameters: tied, biases on attention, one KV head.
std::map<std::string, std::vector<int64_t>> llama_shapes() {
  std::map<std::string, std::vector<int64_t>> shapes = {{"model.embed_tokens.weight", {kVocab, 60}},
                                                        {"model.norm.weight", {60}}};
  for (const std::string layer : {"model.layers.0.", "model.layers.1."}) {
    shapes[layer + "input_layernorm.weight"] = shapes[layer + "post_attention_layernorm.weight"] = {60};
    shapes[layer + "self_attn.q_proj.weight"] = shapes[layer + "self_attn.o_proj.weight"] = {60, 60};
    shapes[layer + "self_attn.q_proj.bias"] = shapes[layer + "self_attn.o_proj.bias"] = {60};
    shapes[layer + "self_attn.k_proj.weight"] = shapes[layer + "self_attn.v_proj.weight"] = {20, 60};
    shapes[layer + "self_attn.k_proj.bias"] = shapes[layer + "self_attn.v_proj.bias"] = {20};
    shapes[layer + "mlp.gate_proj.weight"] = shapes[layer + "mlp.up_proj.weight"] = {70, 60};
    shapes[layer + "mlp.down_proj.weight"] = {60, 70};
  }
  return shapes;
}

std::map<std::string, std::vector<int64_t>> shapes_of(const Tensors& tensors) {
  std::map<std::string, std::vector<int64_t>> shapes;
  for (const auto& [name, tensor] : tensors) shapes[name] = tensor.shape;
  return shapes;
}

std::set<std::string> files_in(const std::string& directory) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    names.insert(entry.path().filename());
  return names;
}

double norm_of(const Tensors& tensors) {
  double squares = 0;
  for (const auto& [name, tensor] : tensors)
    for (const float v : tensor.values()) squares += double{v} * v;
  return std::sqrt(squares);
}

/// A finished run, its step events, and its dumps.
struct Dumped {
  Folder folder;
  std::vector<io::Tree> steps;
  Tensors dump(int step) const {
    return read_tensors(folder.read("dump/step-00000" + std::to_string(step) + ".safetensors"));
  }
};

void train_dumped(Dumped& run, const std::string& file, const std::string& overrides = "") {
  run.folder.write("train.txt", some_text(kTextBytes));
  run.folder.write("eval.txt", some_text(400));
  run.folder.write("run.yaml", file);
  const Outcome outcome = run.folder.run("train run.yaml --json data.shuffle=false " + overrides);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  for (size_t begin = 0, end; (end = outcome.out.find('\n', begin)) != std::string::npos; begin = end + 1) {
    auto event = io::parse_json(std::string_view(outcome.out).substr(begin, end - begin));
    ASSERT_TRUE(event);
    if (event->find("event")->text == "step") run.steps.push_back(std::move(*event));
  }
  ASSERT_EQ(run.steps.size(), 2U);
}

/// One run with everything dumped, shared by the tests that only look.
const Dumped& everything() {
  static Dumped run;
  if (run.steps.empty()) train_dumped(run, run_file() + training("loss, gradients, logits, parameters"));
  return run;
}

TEST(DumpTest, HoldsWhatIsAskedFor) {
  const Dumped& run = everything();
  EXPECT_THAT(files_in(run.folder.path("dump")),
              ElementsAre("step-000000.safetensors", "step-000001.safetensors", "step-000002.safetensors"));
  std::map<std::string, std::vector<int64_t>> first,
      later = {{"loss", {1}}, {"logits", {kBatch, kTokens, kVocab}}};
  for (const auto& [name, shape] : llama_shapes()) {
    first["param." + name] = later["param." + name] = shape;
    later["grad." + name] = shape;
  }
  EXPECT_EQ(shapes_of(run.dump(0)), first);
  EXPECT_EQ(shapes_of(run.dump(1)), later);
  EXPECT_EQ(shapes_of(run.dump(2)), later);
}

TEST(DumpTest, HoldsLossAndGradientsUnlessAskedOtherwise) {
  Dumped run;
  train_dumped(run, run_file() + training(""), "training.micro_batch_size=2");
  EXPECT_THAT(files_in(run.folder.path("dump")),
              ElementsAre("step-000001.safetensors", "step-000002.safetensors"));
  std::map<std::string, std::vector<int64_t>> shapes = {{"loss", {1}}};
  for (const auto& [name, shape] : llama_shapes()) shapes["grad." + name] = shape;
  EXPECT_EQ(shapes_of(run.dump(1)), shapes);
  // A micro-batch of its own, and other things dumped beside: the same bytes.
  for (const int step : {1, 2}) {
    const Tensors ours = run.dump(step), whole = everything().dump(step);
    for (const auto& [name, tensor] : ours)
      EXPECT_TRUE(tensor == whole.at(name)) << name << " of step " << step;
  }
}

TEST(DumpTest, LogitsAreOfTheWholeEffectiveBatchInOrder) {
  Dumped run;
  train_dumped(run, run_file() + training("logits"), "training.micro_batch_size=1");
  const Tensors ours = run.dump(2), whole = everything().dump(2);
  EXPECT_EQ(ours.size(), 1U);
  EXPECT_TRUE(ours.at("logits") == whole.at("logits"));
}

TEST(DumpTest, LossIsThatOfTheLogits) {
  const Dumped& run = everything();
  const Tensors dump = run.dump(1);
  EXPECT_EQ(dump.at("loss").values().at(0), static_cast<float>(run.steps[0].find("loss")->number));
  const std::string text = some_text(kTextBytes);
  const std::vector<float> logits = dump.at("logits").values();
  double sum = 0;
  for (int64_t s = 0; s < kBatch; ++s)
    for (int64_t t = 0; t + 1 < kTokens; ++t) {
      const float* row = logits.data() + (s * kTokens + t) * kVocab;
      double exponentials = 0;
      for (int64_t v = 0; v < kVocab; ++v) exponentials += std::exp(double{row[v]});
      const auto target = static_cast<unsigned char>(text[static_cast<size_t>(s * kTokens + t + 1)]);
      sum += std::log(exponentials) - row[target];
    }
  const double loss = sum / static_cast<double>(kBatch * (kTokens - 1));
  EXPECT_NEAR(dump.at("loss").values().at(0), loss, 1e-6 * loss);
}

TEST(DumpTest, GradientsAreThoseBeforeClipping) {
  const Dumped& run = everything();
  for (const int step : {1, 2}) {
    const double norm = run.steps[static_cast<size_t>(step - 1)].find("grad_norm")->number;
    EXPECT_GT(norm, 0.1);  // twice the clip
    EXPECT_NEAR(norm_of(under(run.dump(step), "grad.")), norm, 1e-5 * norm);
  }
}

TEST(DumpTest, ParametersAreThoseAfterTheUpdate) {
  const Dumped& run = everything();
  const Tensors start = under(run.dump(0), "param."), first = under(run.dump(1), "param."),
                second = under(run.dump(2), "param.");
  EXPECT_TRUE(start == first);  // step 1 has rate 0
  for (const auto& [name, tensor] : second) EXPECT_FALSE(tensor == first.at(name)) << name;
}

TEST(DumpTest, FinalModelIsTheLastStepsParameters) {
  const Dumped& run = everything();
  EXPECT_THAT(files_in(run.folder.path("out/final")),
              ElementsAre("README.md", "config.json", "model.safetensors"));
  const Tensors model = read_tensors(run.folder.read("out/final/model.safetensors"));
  EXPECT_TRUE(model == under(run.dump(2), "param."));
  const auto config = io::parse_json(run.folder.read("out/final/config.json"));
  ASSERT_TRUE(config);
  EXPECT_EQ(config->find("model_type")->text, "llama");
  EXPECT_EQ(config->find("num_key_value_heads")->integer, 1);
  EXPECT_TRUE(config->find("tie_word_embeddings")->boolean);
  EXPECT_EQ(config->find("dtype")->text, "float32");
}

TEST(DumpTest, HasTheCheckpointsOwnShapes) {
  // GPT-2's projections are [in, out], and its head is the embedding.
  Dumped run;
  train_dumped(
      run,
      "model:\n  config: {model_type: gpt2, vocab_size: 257, n_embd: 36, n_layer: 1, n_head: 3, n_inner: 53, "
      "n_positions: 70}\n  init: random\n"
      "data: {train: train.txt, sequence_length: 61}\noutput: {dir: out}\n" +
          training("gradients, parameters"));
  const auto shapes = shapes_of(under(run.dump(1), "grad."));
  EXPECT_EQ(shapes, shapes_of(read_tensors(run.folder.read("out/final/model.safetensors"))));
  EXPECT_EQ(shapes.size(), 16U);
  EXPECT_THAT(shapes.at("transformer.wte.weight"), ElementsAre(257, 36));
  EXPECT_THAT(shapes.at("transformer.wpe.weight"), ElementsAre(70, 36));
  EXPECT_THAT(shapes.at("transformer.h.0.attn.c_attn.weight"), ElementsAre(36, 108));
  EXPECT_THAT(shapes.at("transformer.h.0.mlp.c_fc.weight"), ElementsAre(36, 53));
  EXPECT_THAT(shapes.at("transformer.h.0.mlp.c_proj.weight"), ElementsAre(53, 36));
  // Positions beyond the sequence have no gradient.
  const std::vector<float> positions = under(run.dump(1), "grad.").at("transformer.wpe.weight").values();
  EXPECT_NE(positions.at(60 * 36 - 1), 0.0F);
  for (size_t i = 61 * 36; i < positions.size(); ++i) EXPECT_EQ(positions[i], 0.0F);
}

}  // namespace
}  // namespace plimsoll::e2e
