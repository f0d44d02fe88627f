// Training on a card against training on the CPU: the same losses and weights but for rounding, the memory
// that was planned, and the same bits in whatever order the card does what may be done in any order. The card
// is the fake one of backends/cuda/fake, which runs the kernels on the host (docs/card-tests.md), or a real
// one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <filesystem>

#include "planner/cost/known_profiles.h"
#include "program.h"
#include "tensors.h"

namespace plimsoll::e2e {
namespace {

using testing::HasSubstr;

constexpr const char* kData =
    "data: {train: train.txt, eval: eval.txt, sequence_length: 40}\noutput: {dir: out}\n"
    "training: {global_batch_size: 4, max_steps: 3, learning_rate: 1.0e-3, lr_scheduler: constant, "
    "eval_steps: 3}\n";

/// Nothing divides anything.
std::string model(const std::string& type, const std::string& more = "") {
  return "model:\n  config: {model_type: " + type +
         ", vocab_size: 259, hidden_size: 60, intermediate_size: 70, num_hidden_layers: 2, "
         "num_attention_heads: "
         "3,\n    num_key_value_heads: 1, head_dim: 20, max_position_embeddings: 64, rms_norm_eps: 1.0e-5" +
         more + "}\n  init: random\n" + kData;
}
std::string gpt2(const std::string& dropout) {
  return "model:\n  config: {model_type: gpt2, vocab_size: 259, n_embd: 48, n_layer: 2, n_head: 3, "
         "n_positions: 64, "
         "resid_pdrop: " +
         dropout + ", embd_pdrop: " + dropout + ", attn_pdrop: " + dropout + "}\n  init: random\n" + kData;
}

/// Extents are multiples of sixteen, which units for FP8 and FP4 want.
std::string in_sixteens() {
  return std::string(
             "model:\n  config: {model_type: llama, vocab_size: 259, hidden_size: 64, intermediate_size: 96, "
             "num_hidden_layers: 2, num_attention_heads: 2,\n    num_key_value_heads: 1, head_dim: 32, "
             "max_position_embeddings: 64, rms_norm_eps: 1.0e-5}\n  init: random\n") +
         kData;
}

struct Case {
  const char* name;
  std::string run;  ///< the run file
  std::string overrides = "";
  double tolerance = 1e-4;  ///< of losses and norms, relative
  /// Of weights, of the root of their mean square: AdamW makes steps of what is rounding alone.
  double weights = 2e-3;
  std::string base = "";  ///< a run file whose weights, trained for a step on the CPU, lie in base/final
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

struct Trained {
  Outcome outcome;
  Tensors weights;
};

Trained train(const Case& c, const std::string& device, const std::string& environment = "") {
  const Folder folder;
  folder.write("train.txt", some_text(4'000));
  folder.write("eval.txt", some_text(300));
  folder.write("run.yaml", c.run);
  if (!c.base.empty()) {
    folder.write("base.yaml", c.base);
    const Outcome base =
        folder.run("train base.yaml output.dir=base training.max_steps=1 training.eval_steps=1");
    EXPECT_EQ(base.exit_code, 0) << base.err;
  }
  Trained trained{folder.run("train run.yaml --json " + c.overrides + " " + device, environment), {}};
  EXPECT_EQ(trained.outcome.exit_code, 0) << trained.outcome.err;
  const std::string whole = folder.read("out/final/model.safetensors");
  if (trained.outcome.exit_code == 0)
    trained.weights =
        read_tensors(whole.empty() ? folder.read("out/final/adapter_model.safetensors") : whole);
  return trained;
}
/// On the fake card; on this machine's where PLIMSOLL_E2E_DEVICE is of one, with its kernels kept in the
/// folder PLIMSOLL_E2E_CACHE from run to run.
Trained train_on_card(const Case& c, int seed) {
  std::string environment = "PLIMSOLL_FAKE_CUDA_SEED=" + std::to_string(seed);
  if (device_overrides().find("runtime.device=cuda") == std::string::npos)
    return train(c, "runtime.device=cuda", environment + " PLIMSOLL_CUDA_LIBRARIES=" PLIMSOLL_FAKE_CARD);
  if (const char* cache = std::getenv("PLIMSOLL_E2E_CACHE"); cache != nullptr)
    environment += std::string(" XDG_CACHE_HOME='") + cache + "'";
  return train(c, "runtime.device=cuda runtime.profile=built-in", environment);
}

/// The numbers behind each `"key": ` of the output, in order.
std::vector<double> numbers(const std::string& out, const std::string& key) {
  std::vector<double> found;
  const std::string mark = "\"" + key + "\": ";
  for (size_t at = out.find(mark); at != out.npos; at = out.find(mark, at + 1))
    found.push_back(std::strtod(out.c_str() + at + mark.size(), nullptr));
  return found;
}

std::vector<float> values_of(const Tensor& tensor) {
  if (tensor.dtype == "F32") return tensor.values();
  EXPECT_EQ(tensor.dtype, "BF16");
  std::vector<uint16_t> bits(tensor.bytes.size() / 2);
  std::memcpy(bits.data(), tensor.bytes.data(), tensor.bytes.size());
  std::vector<float> values;
  for (const uint16_t b : bits) values.push_back(std::bit_cast<float>(uint32_t{b} << 16));
  return values;
}

void expect_near(const Tensor& card, const Tensor& cpu, double tolerance, const std::string& name) {
  const std::vector<float> a = values_of(card), b = values_of(cpu);
  ASSERT_EQ(a.size(), b.size()) << name;
  double apart = 0, size = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double difference = double{a[i]} - double{b[i]};
    apart += difference * difference;
    size += double{b[i]} * double{b[i]};
  }
  EXPECT_LE(std::sqrt(apart), tolerance * std::sqrt(size)) << name;
}

/// Each op of the step has seconds of the card's clock, which on the fake card are a function of the work.
TEST(CardTimes, OfOpsAreTheCards) {
  const Folder folder;
  folder.write("train.txt", some_text(4'000));
  folder.write("eval.txt", some_text(300));
  folder.write("run.yaml", model("llama"));
  const std::string card = "PLIMSOLL_CUDA_LIBRARIES=" PLIMSOLL_FAKE_CARD;
  const auto profiled = [&](const std::string& how) {
    const Outcome outcome = folder.run(
        "profile run.yaml --json --active 2 runtime.device=cuda "
        "training.micro_batch_size=1 " +
            how,
        card);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return outcome.out;
  };
  profiled("--output one");
  const std::string ops = folder.read("one/ops.json");
  for (const char* op : {"linear", "attention_packed_grad", "adamw_sweep"}) EXPECT_THAT(ops, HasSubstr(op));
  EXPECT_EQ(numbers(ops, "seconds").size(), numbers(ops, "calls").size());
  for (const double seconds : numbers(ops, "seconds")) EXPECT_GT(seconds, 0);
  profiled("--output two runtime.threads=2");
  EXPECT_EQ(folder.read("two/ops.json"), ops) << "they are the card's, and not the host's";
  const std::string queues = profiled("--queues --output queues 'memory.offload={optimizer: host}'");
  EXPECT_THAT(queues, HasSubstr("\"queue\": \"copy_in\""));
  for (const double seconds : numbers(queues.substr(queues.find("copy_in")), "seconds"))
    EXPECT_GE(seconds, 0);
  EXPECT_GT(numbers(queues.substr(queues.find("\"copy_in\"")), "seconds").at(0), 0);
  const Outcome timings = folder.run("bench step run.yaml --timings --steps 1 runtime.device=cuda", card);
  EXPECT_EQ(timings.exit_code, 0) << timings.err;
  EXPECT_THAT(timings.err, HasSubstr("adamw_sweep"));
}

/// A profile of the fake card, as if it had been calibrated with that version of cuBLASLt.
void keep_profile(const Folder& folder, const std::string& version) {
  planner::MachineProfile profile = *planner::find_card("rtx4090");
  profile.name = "Fake card";
  profile.rates = "calibrated";
  profile.instruction_set = "sm_90";
  std::filesystem::create_directories(folder.path("cache/plimsoll"));
  folder.write("cache/plimsoll/card-fake-card-cublaslt-" + version + ".v" +
                   std::to_string(planner::kProfileVersion) + ".json",
               planner::profile_json(profile));
}

TEST(CardTimes, RatesOfACalibratedCardAreUsedAndCorrected) {
  const Folder folder;
  folder.write("train.txt", some_text(4'000));
  folder.write("eval.txt", some_text(300));
  folder.write("run.yaml", model("llama"));
  const std::string card =
      std::string("PLIMSOLL_CUDA_LIBRARIES=" PLIMSOLL_FAKE_CARD " XDG_CACHE_HOME=") + folder.path("cache");
  const auto rates = [&] { return folder.run("plan run.yaml --json runtime.device=cuda", card).out; };
  keep_profile(folder, "120900");
  EXPECT_THAT(rates(), HasSubstr("\"rates\": \"unknown\"")) << "of another version";
  keep_profile(folder, "130000");
  EXPECT_THAT(rates(), HasSubstr("\"rates\": \"calibrated\""));
  const Outcome profiled = folder.run("profile run.yaml --active 1 --output out runtime.device=cuda", card);
  ASSERT_EQ(profiled.exit_code, 0) << profiled.err;
  EXPECT_THAT(folder.read("out/estimate.json"), HasSubstr("\"machine\": \"Fake card\""));
  const Outcome corrected = folder.run("calibrate --from out", card);
  ASSERT_EQ(corrected.exit_code, 0) << corrected.err;
  EXPECT_THAT(corrected.out, HasSubstr("linear_dw"));
  EXPECT_EQ(folder.run("calibrate --from out", card).exit_code, 2) << "estimated by the profile before";
  EXPECT_EQ(folder.run("calibrate --device gpu", card).exit_code, 2);
}

/// Kernels of the plan's ops are compiled before there is a context, all at once; none while it runs, which
/// the fake compiler would refuse, and none that the plan has no op for.
TEST(CardKernels, AreThoseOfThePlan) {
  const std::pair<std::string, std::string> runs[] = {
      {model("llama"), ""},
      {gpt2("0.1"), " training.precision=bf16"},
      {in_sixteens(), " training.precision=fp8 training.optimizer=muon"}};
  for (const auto& [run, how] : runs) {
    const Folder folder;
    folder.write("train.txt", some_text(4'000));
    folder.write("eval.txt", some_text(300));
    folder.write("run.yaml", run);
    const Outcome outcome =
        folder.run("train run.yaml runtime.device=cuda" + how,
                   std::string("PLIMSOLL_FAKE_CUDA=compiles-early PLIMSOLL_CUDA_LIBRARIES=" PLIMSOLL_FAKE_CARD
                               " XDG_CACHE_HOME=") +
                       folder.path("cache"));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    const auto images = std::distance(std::filesystem::directory_iterator(folder.path("cache/plimsoll/cuda")),
                                      std::filesystem::directory_iterator());
    EXPECT_GT(images, 8);
    EXPECT_LT(images, 24) << "of more than thirty modules";
  }
}

/// Another algorithm has other bits: a run keeps those that it began with, whatever is found later.
TEST(CardProducts, ThatWereFoundToBeQuickerStayThoseOfTheRun) {
  const Folder folder;
  folder.write("train.txt", some_text(4'000));
  folder.write("eval.txt", some_text(300));
  folder.write("run.yaml", model("llama"));
  const std::string card =
      std::string("PLIMSOLL_CUDA_LIBRARIES=" PLIMSOLL_FAKE_CARD " XDG_CACHE_HOME=") + folder.path("cache");
  const auto train = [&](const std::string& how) {
    const Outcome outcome = folder.run("train run.yaml runtime.device=cuda output.save_steps=2 " + how, card);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return folder.read("out/final/model.safetensors");
  };
  const std::string favourites = train("");
  std::filesystem::remove_all(folder.path("out"));
  const Outcome found = folder.run("calibrate --products run.yaml --json", card);
  ASSERT_EQ(found.exit_code, 0) << found.err;
  EXPECT_THAT(found.out, HasSubstr("\"event\": \"products\""));
  EXPECT_GT(number(found.out, "chosen"), 5);
  const std::string quicker = train("");
  EXPECT_NE(quicker, favourites);
  std::filesystem::remove_all(folder.path("out"));
  train("training.max_steps=2");
  std::filesystem::remove_all(folder.path("cache"));
  EXPECT_EQ(train(""), quicker) << "the rest of a run that began with them";
}

/// Where the plan has room fp32 weights are rounded once a step; elsewhere each product rounds its own.
TEST(CardWeights, HaveTheSameBitsWhereverTheyAreRounded) {
  const Folder folder;
  folder.write("train.txt", some_text(4'000));
  folder.write("eval.txt", some_text(300));
  folder.write("run.yaml", model("llama", ", tie_word_embeddings: true"));
  const std::string card = "PLIMSOLL_CUDA_LIBRARIES=" PLIMSOLL_FAKE_CARD;
  const auto losses = [&](const std::string& how) {
    std::filesystem::remove_all(folder.path("out"));
    const Outcome outcome = folder.run("train run.yaml --json " + how, card);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(number(outcome.out, "measured_peak_bytes"), number(outcome.out, "planned_peak_bytes")) << how;
    return std::pair{numbers(outcome.out, "loss"), folder.read("out/final/model.safetensors")};
  };
  for (const std::string& how : part_of<std::string>(
           {"training.precision=bf16 training.micro_batch_size=1 memory.recompute=full",
            "training.precision=fp16 training.micro_batch_size=4 memory.recompute=none debug.poison=true",
            "training.precision=bf16 memory.optimizer_in_backward=true training.max_grad_norm=0"},
           3)) {
    const std::string run = "runtime.device=cuda " + how;
    const Outcome roomy = folder.run("plan run.yaml --json " + run, card);
    ASSERT_EQ(roomy.exit_code, 0) << roomy.err;
    EXPECT_GT(number(roomy.out, "weight_casts"), 0) << run;
    const std::string device = roomy.out.substr(roomy.out.find("\"device\""));
    const auto most = static_cast<int64_t>(numbers(device, "peak_bytes").at(0));
    const std::string less = " memory.device_budget=" + std::to_string(most - 1);
    const Outcome narrow = folder.run("plan run.yaml --json " + run + less, card);
    if (narrow.exit_code == 69) continue;  // the plan is smaller with them
    ASSERT_EQ(narrow.exit_code, 0) << narrow.err;
    EXPECT_EQ(narrow.out.find("\"weight_casts\""), std::string::npos) << run;
    EXPECT_TRUE(losses(run) == losses(run + less)) << run;
  }
  EXPECT_EQ(folder.run("plan run.yaml --json training.precision=bf16").out.find("\"weight_casts\""),
            std::string::npos)
      << "products of a CPU round as they read";
}

class OnCard : public testing::TestWithParam<Case> {};

TEST_P(OnCard, TrainsAsOnTheCpu) {
  const Case& c = GetParam();
  const Trained card = train_on_card(c, 1), cpu = train(c, "runtime.device=cpu");
  for (const char* key : {"loss", "grad_norm"}) {
    const std::vector<double> a = numbers(card.outcome.out, key), b = numbers(cpu.outcome.out, key);
    ASSERT_EQ(a.size(), b.size());
    ASSERT_GE(a.size(), 3U);
    for (size_t i = 0; i < a.size(); ++i)
      EXPECT_NEAR(a[i], b[i], c.tolerance * std::abs(b[i])) << key << " " << i;
  }
  ASSERT_EQ(card.weights.size(), cpu.weights.size());
  for (const auto& [name, tensor] : cpu.weights) expect_near(card.weights.at(name), tensor, c.weights, name);
  EXPECT_EQ(number(card.outcome.out, "measured_peak_bytes"), number(card.outcome.out, "planned_peak_bytes"));
  EXPECT_TRUE(train_on_card(c, 2).weights == card.weights) << "in another order of what has none";
}

const std::string kFromBase = std::string("model: {path: base/final}\n") + kData;
/// Adapters whose products are no zeros.
std::string adapters(const std::string& more = "") {
  return "'lora={r: 4, lora_alpha: 16, target_modules: all-linear, init_lora_weights: false" + more + "}' ";
}

const std::vector<Case> kCases = {
    {"Llama", model("llama", ", attention_bias: true, tie_word_embeddings: true")},
    {"Qwen3", model("qwen3", ", use_sliding_window: true, sliding_window: 9, max_window_layers: 1")},
    {"Gpt2", gpt2("0")},
    {"Dropout", gpt2("0.1")},
    {"MicroBatches", model("llama"), "training.micro_batch_size=1 memory.recompute=full"},
    {"BiasesInMicroBatches", gpt2("0"), "training.micro_batch_size=1"},
    {"Tf32", model("llama"), "training.precision=tf32", 3e-3, 3e-3},
    {"Tf32Dropout", gpt2("0.1"), "training.precision=tf32 training.micro_batch_size=2 training.optimizer=sgd",
     3e-3, 3e-3},
    {"Tf32Window", model("qwen3", ", use_sliding_window: true, sliding_window: 9, max_window_layers: 1"),
     "training.precision=tf32", 3e-3, 1e-2},
    {"Bf16", model("llama"), "training.precision=bf16", 2e-2, 2e-2},
    {"Bf16States", model("llama"),
     "training.precision=bf16 training.state.weights=bf16 training.state.gradients=bf16 "
     "training.optimizer=sgd",
     2e-2, 2e-2},
    {"Fp16", model("llama"), "training.precision=fp16 training.loss_scale.growth_interval=2", 3e-3, 3e-3},
    {"Fp8", model("llama"), "training.precision=fp8 training.micro_batch_size=2", 2e-2, 5e-2},
    {"Fp8OnUnits", in_sixteens(), "training.precision=fp8 training.micro_batch_size=2 memory.recompute=full",
     2e-2, 5e-2},
    {"Fp8OfBlocks", in_sixteens(), "training.precision=fp8 training.fp8.recipe=block", 2e-2, 5e-2},
    {"Nvfp4", in_sixteens(), "training.precision=fp8 training.fp8.recipe=nvfp4 data.sequence_length=48", 5e-2,
     1e-1},
    {"Lion", model("llama"), "training.optimizer=lion training.learning_rate=1.0e-4"},
    {"Adamw8bit", model("llama"), "training.optimizer=adamw_8bit"},
    {"MomentsOfFp8Lm", model("llama"), "training.state.moments=fp8_lm"},
    {"MomentsOfCoat", model("llama"), "training.state.moments=coat"},
    {"Adafactor", model("llama"), "training.optimizer=adafactor training.weight_decay=0"},
    {"AdafactorWithAMoment", model("llama"),
     "training.optimizer=adafactor training.weight_decay=0 training.adafactor.beta1=0.9"},
    {"Muon", model("llama"), "training.optimizer=muon"},
    {"Lora", model("llama"), adapters()},
    {"Dora", model("llama"), adapters(", use_dora: true")},
    {"LoraBesideTheEmbedding", model("llama"),
     "'lora={r: 4, lora_alpha: 16, target_modules: [embed_tokens, q_proj], init_lora_weights: false}'"},
    {"TrainableTokens", model("llama"), adapters(", trainable_token_indices: [32, 97, 101]")},
    {"Qlora", kFromBase, adapters() + "'quantization={load_in_4bit: true, bnb_4bit_use_double_quant: true}'",
     1e-4, 2e-3, model("llama")},
    {"QloraBf16", kFromBase, adapters() + "'quantization={load_in_4bit: true}' training.precision=bf16", 2e-1,
     2e-1, model("llama")},
    {"QloraFp4", kFromBase, adapters() + "'quantization={load_in_4bit: true, bnb_4bit_quant_type: fp4}'",
     1e-4, 2e-3, model("llama")},
    {"DoraBesideInt8", kFromBase, adapters(", use_dora: true") + "'quantization={load_in_8bit: true}'", 1e-4,
     2e-3, model("llama")},
    {"Offloaded", model("llama"), "'memory.offload={optimizer: host}'"},
    {"UpdatedOnHost", model("llama"), "'memory.offload={optimizer: host}' memory.update_on_host=true"},
};
INSTANTIATE_TEST_SUITE_P(Runs, OnCard, testing::ValuesIn(part_of(kCases, 3)),
                         [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace plimsoll::e2e
