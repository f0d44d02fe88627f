// Where the training state lives: each recipe has its own bits, the same however it is run; goes on from a
// checkpoint, also from one that keeps its state otherwise where that is exact; and leaves a model directory
// in the weights' dtype.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "program.h"
#include "tensors.h"

namespace plimsoll::e2e {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kMasters = "training.precision=bf16 training.state.weights=bf16";
const std::string kBf16Gradients = std::string(kMasters) + " training.state.gradients=bf16";
const std::string kPure = kBf16Gradients + " training.state.master_weights=false training.state.moments=bf16";
const std::string kCastGradients = "training.precision=bf16 training.state.gradients=bf16";

/// Six steps, saved after the third.
void prepare_six_steps(const Folder& folder) {
  folder.write("train.txt", some_text(12'000));
  folder.write("eval.txt", some_text(700));
  folder.write("run.yaml",
               run_file("training: {global_batch_size: 4, max_steps: 6, learning_rate: 1.0e-3, lr_scheduler: "
                        "linear, warmup_steps: 1}\n"));
}

Result train_six_steps(const std::string& overrides) {
  const Folder folder;
  prepare_six_steps(folder);
  return result_of(folder, folder.run("train run.yaml --json " + overrides));
}

class Recipe : public testing::TestWithParam<std::string> {};

TEST_P(Recipe, HasTheSameBitsHoweverItIsRun) {
  const Result whole = train_six_steps("runtime.threads=1 " + GetParam());
  ASSERT_GT(whole.model.size(), 50'000U);
  for (const char* how :
       {"runtime.threads=3 training.micro_batch_size=2 debug.poison=true", "training.micro_batch_size=1",
        "debug.dump_dir=dump memory.recompute=none", "memory.recompute=full"}) {
    const Result other = train_six_steps(how + (" " + GetParam()));
    EXPECT_EQ(whole.events, other.events) << how;
    EXPECT_TRUE(whole.model == other.model) << how;
  }
}

TEST_P(Recipe, GoesOnWithTheBitsOfARunThatWasNeverStopped) {
  const Result whole = train_six_steps("runtime.threads=1 " + GetParam());
  const Folder folder;
  prepare_six_steps(folder);
  ASSERT_EQ(folder.run("train run.yaml output.save_steps=3 " + GetParam()).exit_code, 0);
  std::filesystem::remove_all(folder.path("out/final"));
  std::filesystem::remove_all(folder.path("out/checkpoint-6"));
  const Result rest =
      result_of(folder, folder.run("train run.yaml --json training.micro_batch_size=2 " + GetParam()));
  EXPECT_TRUE(whole.events.ends_with(rest.events));
  EXPECT_TRUE(whole.model == rest.model);
}

INSTANTIATE_TEST_SUITE_P(Each, Recipe, testing::Values(kMasters, kBf16Gradients, kPure, kCastGradients));

/// Bits depend on the number of micro-batches, and on nothing else.
TEST(Accumulators, Bf16HasItsOwnBitsForEachSplit) {
  const std::string kBf16 = "training.state.accumulators=bf16 ", kOne = "training.micro_batch_size=1 ";
  const Result whole = train_six_steps(kBf16 + kOne + "runtime.threads=1");
  ASSERT_GT(whole.model.size(), 50'000U);
  for (const char* how :
       {"runtime.threads=3 debug.poison=true", "memory.recompute=full", "debug.dump_dir=dump",
        "runtime.device=discrete runtime.discrete.seed=7 runtime.discrete.check=true",
        "runtime.device=discrete 'memory.offload={gradients: host, optimizer: host}'"}) {
    const Result other = train_six_steps(kBf16 + kOne + how);
    EXPECT_EQ(whole.events, other.events) << how;
    EXPECT_TRUE(whole.model == other.model) << how;
  }
  EXPECT_FALSE(whole.model == train_six_steps(kBf16 + "training.micro_batch_size=2").model);
  const Result plain = train_six_steps(kOne);
  EXPECT_FALSE(whole.model == plain.model);
  for (const char* how : {"training.micro_batch_size=4", "training.micro_batch_size=4 debug.dump_dir=dump"})
    EXPECT_TRUE(train_six_steps(kBf16 + how).model == plain.model) << "nothing is added up: " << how;
}

TEST(Accumulators, ThePlanSaysSo) {
  const Folder folder;
  prepare_six_steps(folder);
  const Outcome plan =
      folder.run("plan run.yaml training.micro_batch_size=1 training.state.accumulators=bf16");
  ASSERT_EQ(plan.exit_code, 0) << plan.err;
  EXPECT_THAT(plan.out, HasSubstr("bf16 accumulators, rounded stochastically"));
}

/// Each bf16 is the nearest of its f32, ties to even.
void expect_rounded(const std::string& name, const Tensor& rounded, const Tensor& exact) {
  ASSERT_EQ(rounded.dtype, "BF16") << name;
  ASSERT_EQ(exact.dtype, "F32") << name;
  ASSERT_EQ(rounded.shape, exact.shape) << name;
  for (size_t i = 0; i < rounded.bytes.size() / 2; ++i) {
    uint32_t bits = 0;
    uint16_t brief = 0;
    std::memcpy(&bits, exact.bytes.data() + 4 * i, 4);
    std::memcpy(&brief, rounded.bytes.data() + 2 * i, 2);
    ASSERT_EQ(brief, (bits + 0x7FFFU + (bits >> 16 & 1U)) >> 16) << name << " " << i;
  }
}

TEST(State, AModelOf16BitsIsItsRoundedMasters) {
  const Folder folder;
  prepare_six_steps(folder);
  ASSERT_EQ(folder.run("train run.yaml output.save_steps=6 " + kBf16Gradients).exit_code, 0);
  EXPECT_THAT(folder.read("out/final/config.json"), HasSubstr("\"bfloat16\""));
  EXPECT_EQ(folder.read("out/final/model.safetensors"), folder.read("out/checkpoint-6/model.safetensors"));
  const Tensors kept = read_tensors(folder.read("out/checkpoint-6/optimizer.safetensors"));
  for (const auto& [name, weight] : read_tensors(folder.read("out/final/model.safetensors"))) {
    EXPECT_EQ(kept.at("adamw.v." + name).dtype, "F32");
    expect_rounded(name, weight, kept.at("master." + name));
  }
}

TEST(State, EvaluationAndGenerationTakeThatModel) {
  const Folder folder;
  prepare_six_steps(folder);
  const Outcome trained = folder.run("train run.yaml --json " + kPure);
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const auto loss_of = [](const std::string& out) {
    const size_t at = out.find("\"loss\"", out.find("\"event\": \"eval\""));
    return out.substr(at, out.find(',', at) - at);
  };
  const Outcome evaluated =
      folder.run("eval run.yaml --json model.path=out/final model.config=null " + kPure);
  ASSERT_EQ(evaluated.exit_code, 0) << evaluated.err;
  EXPECT_EQ(loss_of(evaluated.out), loss_of(trained.out));
}

/// A checkpoint after step 3 made with `then`, gone on from with `now`.
struct Change {
  std::string then, now;
  int exit_code;
  const char* says;
};

TEST(State, OfACheckpointIsTakenOverWhereThatIsExact) {
  const std::string plain = "training.precision=bf16";
  const std::string pure32 = kMasters + std::string(" training.state.moments=bf16");
  const Change changes[] = {
      {"", "training.precision=bf16", 0, "training.precision is bf16, and the checkpoint was made with fp32"},
      {"", kMasters, 0, "its state is converted exactly"},
      {kMasters, "", 0, "training.state.weights is fp32"},
      {kMasters, kBf16Gradients, 0, "training.state.gradients is bf16"},
      {kPure, "", 0, "training.state.moments is fp32, and the checkpoint was made with bf16"},
      {kPure, kMasters, 0, "training.state.master_weights"},
      {pure32, kMasters, 0, "training.state.moments"},
      {"", kPure, 2, "training.state.moments is bf16, but the checkpoint was made with fp32"},
      {plain, plain + " training.state.moments=bf16", 2, "which would have to be rounded"},
      {pure32, kPure, 2, "training.state.master_weights is false, but the checkpoint was made with true"},
      {plain, plain + " training.state.weights=bf16 training.state.master_weights=false", 2,
       "set training.state.weights=fp32, or start a new run"},
  };
  for (const Change& c : changes) {
    const Folder folder;
    prepare_six_steps(folder);
    ASSERT_EQ(folder.run("train run.yaml output.save_steps=3 training.max_steps=3 " + c.then).exit_code, 0);
    const Outcome rest = folder.run("train run.yaml output.save_steps=3 " + c.now);
    EXPECT_EQ(rest.exit_code, c.exit_code) << c.then << " -> " << c.now << ": " << rest.err;
    EXPECT_THAT(rest.err + rest.out, HasSubstr(c.says)) << c.then << " -> " << c.now;
  }
}

/// Without a step in between: weights are the checkpoint's, rounded once.
TEST(State, TakenOverRoundsTheCheckpointsWeights) {
  const Folder folder;
  prepare_six_steps(folder);
  ASSERT_EQ(folder.run("train run.yaml output.save_steps=3 training.max_steps=3").exit_code, 0);
  const std::string before = folder.read("out/final/model.safetensors");
  const Outcome there = folder.run(std::string("train run.yaml output.save_steps=3 training.max_steps=3 ") +
                                   kMasters + " --resume out/checkpoint-3 output.dir=there");
  ASSERT_EQ(there.exit_code, 0) << there.err;
  const Tensors rounded = read_tensors(folder.read("there/final/model.safetensors"));
  for (const auto& [name, tensor] : read_tensors(before)) expect_rounded(name, rounded.at(name), tensor);
}

TEST(State, SaysWhatContradicts) {
  const Folder folder;
  prepare_six_steps(folder);
  const std::pair<std::string, const char*> rows[] = {
      {"training.state.weights=bf16", "training.state.weights is bf16, and training.precision is fp32"},
      {"training.precision=bf16 training.state.gradients=fp16", "set training.precision=fp16"},
      {"training.state.master_weights=true", "the weights are fp32 themselves"},
      {"training.state.moments=fp16", "one of fp32, bf16"},
      {"training.state.weights=bfloat16", "the nearest is bf16"},
      {"training.state.master_weight=true", "did you mean training.state.master_weights?"},
      {"training.state.master_weights=maybe", "true, false, or auto"},
  };
  for (const auto& [overrides, says] : rows) {
    const Outcome outcome = folder.run("plan run.yaml " + overrides);
    EXPECT_EQ(outcome.exit_code, 2) << overrides;
    EXPECT_THAT(outcome.err, HasSubstr(says)) << overrides;
  }
  const Outcome plan = folder.run("plan run.yaml training.micro_batch_size=2 " + kBf16Gradients);
  EXPECT_THAT(plan.out + plan.err, HasSubstr("master_weights fp32, gradients fp32 accumulators"));
}

/// The file with the last element of an F32 tensor replaced.
std::string with_last(std::string content, const std::string& name, float value) {
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, content.data(), 8);
  const auto header = io::parse_json(std::string_view(content).substr(8, header_bytes));
  const int64_t end = header->find(name)->find("data_offsets")->items.at(1).integer;
  std::memcpy(content.data() + 8 + header_bytes + static_cast<size_t>(end) - 4, &value, 4);
  return content;
}

/// Of a product's operand or of a weight kept in fp16; a part of a packed weight by its own name.
TEST(State, AWeightBeyondFp16IsRefusedByItsName) {
  const Folder folder;
  prepare_six_steps(folder);
  ASSERT_EQ(folder.run("train run.yaml training.max_steps=1").exit_code, 0);
  const std::string file = "out/final/model.safetensors", model = folder.read(file),
                    from =
                        " run.yaml model.init=pretrained model.path=out/final model.config=null "
                        "output.dir=there --json training.max_steps=1 ";
  const std::string half = "training.precision=fp16 ", halves = half + "training.state.weights=fp16 ",
                    brief = "training.precision=bf16 training.state.weights=bf16",
                    key = "model.layers.1.self_attn.k_proj.weight",
                    down = "model.layers.0.mlp.down_proj.weight";
  const auto refused = [&](const std::string& command, const std::string& overrides,
                           const std::string& says) {
    const Outcome outcome = folder.run(command + from + overrides);
    EXPECT_EQ(outcome.exit_code, 65) << command << overrides << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(says)) << overrides;
    EXPECT_THAT(outcome.err, HasSubstr("set training.precision=bf16")) << overrides;
  };
  folder.write(file, with_last(model, key, -70000.0F));
  refused("train", half, "error: " + key + " holds -70000, and fp16 ends at 65504: products with it in fp16");
  refused("train", halves, key + " holds -70000, and fp16 ends at 65504: as a weight in fp16 it");
  refused("eval", half, key);
  refused("eval", halves, key);
  EXPECT_EQ(folder.run("eval" + from + brief).exit_code, 0);
  EXPECT_EQ(folder.run("eval" + from).exit_code, 0);
  folder.write(file, with_last(model, down, 65520.0F));
  refused("eval", half, down + " holds 65520");
  EXPECT_EQ(folder.run("eval" + from + half + "training.precision_overrides.down_proj=fp32").exit_code, 0);
  folder.write(file, with_last(model, down, 65519.0F));
  EXPECT_EQ(folder.run("eval" + from + half).exit_code, 0);
  folder.write(file, with_last(model, "model.norm.weight", 70000.0F));
  const Outcome normed = folder.run("eval" + from + half);  // in no product: what comes of it is not finite
  EXPECT_EQ(normed.exit_code, 76);
  EXPECT_THAT(normed.err, Not(HasSubstr("holds 70000")));
}

/// The checkpoint is whole, so it is not passed over as damaged.
TEST(State, ACheckpointBeyondFp16IsNotTakenOver) {
  const Folder folder;
  prepare_six_steps(folder);
  ASSERT_EQ(folder.run("train run.yaml training.max_steps=1").exit_code, 0);
  const std::string file = "out/final/model.safetensors", name = "model.layers.0.mlp.down_proj.weight";
  folder.write(file, with_last(folder.read(file), name, 70000.0F));
  const std::string run =
      "train run.yaml model.init=pretrained model.path=out/final model.config=null "
      "output.dir=there output.save_steps=1 training.max_steps=";
  ASSERT_EQ(folder.run(run + "2").exit_code, 0);
  for (const char* state : {"", " training.state.weights=fp16"}) {
    const Outcome rest = folder.run(run + "3 training.precision=fp16" + state);
    EXPECT_EQ(rest.exit_code, 65) << rest.err;
    EXPECT_THAT(rest.err, HasSubstr(name + " holds "));
    EXPECT_THAT(rest.err, HasSubstr("there/checkpoint-2"));
    EXPECT_THAT(rest.err, Not(HasSubstr("damaged")));
  }
}

/// At a small rate: an update of less than half of bf16's spacing is lost to nearest.
TEST(State, PureBf16TrainsWhereRoundingToNearestStalls) {
  const auto last_loss = [](const std::string& overrides) {
    const Folder folder;
    prepare_six_steps(folder);
    const Outcome outcome = folder.run(
        "train run.yaml --json training.max_steps=200 "
        "training.learning_rate=5.0e-5 training.lr_scheduler=constant training.warmup_steps=0 "
        "data.sequence_length=64 " +
        overrides);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    const size_t at = outcome.out.rfind("\"loss\":", outcome.out.rfind("\"event\": \"step\"") + 60);
    return std::strtod(outcome.out.c_str() + at + 7, nullptr);
  };
  const double exact = last_loss(""), stochastic = last_loss(kPure),
               nearest = last_loss(kPure + " training.state.rounding=nearest");
  EXPECT_LT(std::abs(stochastic - exact), 0.03 * exact);
  EXPECT_GT(nearest, 1.05 * exact);
}

}  // namespace
}  // namespace plimsoll::e2e
