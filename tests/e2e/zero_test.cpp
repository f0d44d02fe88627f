// Ranks that share the optimizer's state (ZeRO) train as ranks that each have all of it do, bit for bit.
#include <algorithm>
#include <cstring>
#include <filesystem>

#include "e2e/ranks.h"
#include "e2e/tensors.h"

namespace plimsoll::e2e {
namespace {

/// What a run leaves: weights, the state of its last checkpoint, losses and norms.
struct Left {
  std::string model, state, events;
};

class Zero : public Ranks {
 protected:
  Left left(int ranks, const std::string& mode, const std::string& more = "") {
    std::filesystem::remove_all(folder_.path("run"));
    Left run;
    run.model = trained(ranks, "run", kThreeSteps + " distributed.mode=" + mode + " " + more);
    run.state = folder_.read("run/checkpoint-3/optimizer.safetensors");
    run.events = events_of(out_);
    EXPECT_FALSE(run.model.empty() || run.state.empty()) << mode << " " << more;
    return run;
  }
  void expect_same(int ranks, const std::string& more, const std::string& mode = "zero1") {
    const Left ddp = left(ranks, "ddp", more), zero = left(ranks, mode, more);
    EXPECT_TRUE(zero.model == ddp.model) << ranks << " ranks " << more;
    EXPECT_TRUE(read_tensors(zero.state) == read_tensors(ddp.state)) << ranks << " ranks " << more;
    EXPECT_EQ(zero.events, ddp.events) << more;
  }

  const std::string kThreeSteps =
      "training.max_steps=3 output.save_steps=3 training.eval_strategy=no training.max_grad_norm=0.1";
};

TEST_F(Zero, GivesTheBitsOfDdp) {
  for (const int ranks : {2, 3}) expect_same(ranks, "");
}

/// In one micro-batch; several are added in another order.
TEST_F(Zero, GivesThemWhereGradientsAreSharedToo) {
  for (const int ranks : {2, 3}) expect_same(ranks, "", "zero2");
  expect_same(2, "training.precision=bf16 training.state.weights=bf16 memory.recompute=full", "zero2");
  const Left ddp = left(2, "ddp", "training.micro_batch_size=1");
  const std::vector<double> expected = losses();
  const Left zero = left(2, "zero2", "training.micro_batch_size=1");
  const std::vector<double> found = losses();
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-5 * expected[i]);
  EXPECT_TRUE(left(2, "zero2", "training.micro_batch_size=1").model == zero.model) << "deterministic";
}

/// Matrices of a block that are large enough to be cut, tied and not.
const std::string kLarge = "model.config.intermediate_size=300 ";

TEST_F(Zero, GivesThemWhereParametersAreSharedToo) {
  for (const int ranks : {2, 3}) expect_same(ranks, kLarge, "zero3");
  for (const char* how : part_of<const char*>(
           {"model.config.tie_word_embeddings=false memory.recompute=full runtime.threads=2",
            "training.precision=bf16", "training.precision=bf16 training.state.weights=bf16",
            "training.precision=bf16 training.state.weights=bf16 training.state.master_weights=false",
            "training.precision=fp16 training.loss_scale.init_scale=1.0e6", "training.optimizer=adamw_8bit",
            "training.optimizer=muon", "training.optimizer=adafactor", "training.ema_decay=0.9",
            "'training.freeze=[\"*embed_tokens*\"]'"},
           3))
    expect_same(2, kLarge + how, "zero3");
}

TEST_F(Zero, ParametersThatAreSharedDependOnNoDevice) {
  const Left here = left(2, "zero3", kLarge);
  const Left there = left(
      2, "zero3", kLarge + "runtime.device=discrete runtime.discrete.seed=7 runtime.discrete.check=true");
  EXPECT_TRUE(there.model == here.model && there.state == here.state);
}

/// All ranks evaluate, since each has a part of what is evaluated; the best model is all ranks' as well.
TEST_F(Zero, EvaluatesWhatRanksShare) {
  const std::string evaluated =
      kLarge +
      "training.eval_strategy=steps training.eval_steps=3 output.save_steps=3 training.max_steps=6 "
      "training.load_best_model_at_end=true ";
  // By the last one the first evaluation is the best.
  for (const char* how : {"training.ema_decay=0.9 training.early_stopping_patience=1",
                          "training.metric_for_best_model=eval_loss training.greater_is_better=true"})
    expect_same(2, evaluated + how, "zero3");
  // Rank 0 evaluates alone where each has all parameters; their masters are all ranks'.
  for (const char* mode : {"zero1", "zero2"})
    expect_same(2,
                evaluated +
                    "training.metric_for_best_model=eval_loss training.greater_is_better=true "
                    "training.precision=bf16 training.state.weights=bf16 output.dtype=fp32",
                mode);
}

/// Weights that are read from files, as they are and in few bits; and of one rank's adapter goes on with two.
TEST_F(Zero, SharesTheBaseOfAdapters) {
  (void)trained(1, "base", kThreeSteps + " model.config.intermediate_size=1000");
  folder_.write("run.yaml",
                "model: {path: base/final}\n"
                "data: {train: train.txt, eval: eval.txt, tokenizer: bytes, sequence_length: 300}\n"
                "training: {global_batch_size: 7, max_steps: 3, learning_rate: 1.0e-3, seed: 5}\n"
                "runtime: {threads: 1}\n");
  expect_same(2, "", "zero3");
  const auto adapter = [&](const std::string& mode, const std::string& how) {
    std::filesystem::remove_all(folder_.path("run"));
    const Outcome run = train(2,
                              " output.dir=run output.save_steps=2 'lora={r: 4, lora_dropout: 0.1, "
                              "target_modules: all-linear}' distributed.mode=" +
                                  mode + how);
    EXPECT_EQ(run.exit_code, 0) << how << run.err;
    return folder_.read("run/final/adapter_model.safetensors") + events_of(run.out);
  };
  for (const char* how :
       part_of<const char*>({"", " 'quantization={load_in_4bit: true, bnb_4bit_use_double_quant: true}'",
                             " 'quantization={load_in_8bit: true}'",
                             " training.precision=fp16 "
                             "'quantization={load_in_4bit: true, bnb_4bit_use_double_quant: true}'"},
                            4))
    EXPECT_TRUE(adapter("zero3", how) == adapter("ddp", how)) << how;
}

/// Whichever rank has it: of a matrix, of its scales, and of these relative to a number that the last rank
/// has.
TEST_F(Zero, RefusesWhatFp16CannotHold) {
  (void)trained(1, "base", kThreeSteps + " model.config.intermediate_size=1000");
  const std::string file = "base/final/model.safetensors", tensor = "model.layers.0.mlp.up_proj.weight";
  const std::string sound = folder_.read(file);
  const std::string bytes = read_tensors(sound).at(tensor).bytes;
  const size_t begin = sound.find(bytes);
  folder_.write("run.yaml",
                "model: {path: base/final}\n"
                "data: {train: train.txt, tokenizer: bytes, sequence_length: 300}\n"
                "training: {global_batch_size: 7, max_steps: 3, eval_strategy: no, precision: fp16}\n"
                "runtime: {threads: 1}\n");
  for (const size_t at : {begin, begin + bytes.size() - 4}) {
    std::string beyond = sound;
    const float value = 1e6F;
    std::memcpy(beyond.data() + at, &value, sizeof(value));
    folder_.write(file, beyond);
    for (const char* how :
         {"", " 'lora={r: 4}' 'quantization={load_in_4bit: true}'",
          " 'lora={r: 4}' 'quantization={load_in_4bit: true, bnb_4bit_use_double_quant: true}'"}) {
      const auto refused = [&](const std::string& mode) {
        std::filesystem::remove_all(folder_.path("run"));
        return train(2, " output.dir=run distributed.mode=" + mode + how);
      };
      const Outcome ddp = refused("ddp"), zero = refused("zero3");
      EXPECT_EQ(ddp.exit_code, 65) << how << ddp.err;
      EXPECT_EQ(zero.exit_code, 65) << how << zero.err;
      EXPECT_NE(zero.err.find(tensor), std::string::npos) << how << zero.err;
    }
  }
}

/// What adapters take from the base at their start the ranks gather first.
TEST_F(Zero, SharesTheBaseThatAdaptersBeginWith) {
  (void)trained(1, "base",
                kThreeSteps + " model.config.intermediate_size=1000 model.config.tie_word_embeddings=false");
  folder_.write("run.yaml",
                "model: {path: base/final}\n"
                "data: {train: train.txt, eval: eval.txt, tokenizer: bytes, sequence_length: 300}\n"
                "training: {global_batch_size: 7, max_steps: 4, learning_rate: 1.0e-3, seed: 5, "
                "eval_strategy: no, lr_scheduler: constant}\n"
                "runtime: {threads: 1}\noutput: {dir: run, save_steps: 2}\n");
  const auto adapter = [&](const std::string& mode, const std::string& how, bool resumes = false) {
    std::filesystem::remove_all(folder_.path("run"));
    const std::string more = " distributed.mode=" + mode + how;
    if (resumes) {
      EXPECT_EQ(train(2, more + " training.max_steps=2").exit_code, 0) << how;
      for (const char* ended : {"run/final", "run/finished"})
        std::filesystem::remove_all(folder_.path(ended));
    }
    const Outcome run = train(2, more);
    EXPECT_EQ(run.exit_code, 0) << mode << how << run.err;
    EXPECT_LE(number(run.out, "measured_peak_bytes"), number(run.out, "planned_peak_bytes")) << mode << how;
    return folder_.read("run/final/adapter_model.safetensors");
  };
  const std::string few_bits = " 'quantization={load_in_4bit: true}'";
  const std::vector<std::string> all = {
      " 'lora={r: 20, use_dora: true, target_modules: all-linear}'",
      " 'lora={r: 20, init_lora_weights: pissa, target_modules: all-linear}'",
      " 'lora={r: 4, use_dora: true, target_modules: [up_proj, q_proj]}'" + few_bits,
      " 'lora={r: 4, init_lora_weights: olora, target_modules: [up_proj]}'",
      " 'lora={r: 4, init_lora_weights: loftq, target_modules: [up_proj]}'" + few_bits,
      " 'lora={r: 4, target_modules: [q_proj], trainable_token_indices: [3, 200]}'"};
  for (size_t i = 0; i < all.size(); ++i) {
    if (!in_part(i, 3)) continue;
    const std::string expected = adapter("ddp", all[i]);
    EXPECT_FALSE(expected.empty());
    const bool resumes = i < 2;
    EXPECT_TRUE(adapter("zero3", all[i], resumes) == expected) << all[i] << (resumes ? " resumed" : "");
  }
}

/// Where no parameter is large enough to be shared, each rank begins adapters by itself, and once.
TEST_F(Zero, BeginsAdaptersOfSmallModelsOnce) {
  (void)trained(1, "base", kThreeSteps + " model.config.vocab_size=259");
  folder_.write("run.yaml",
                "model: {path: base/final}\n"
                "data: {train: train.txt, tokenizer: bytes, sequence_length: 300}\n"
                "training: {global_batch_size: 6, max_steps: 2, learning_rate: 1.0e-3, seed: 5}\n"
                "lora: {r: 4, init_lora_weights: olora, target_modules: [up_proj]}\n"
                "runtime: {threads: 1}\n");
  const auto left = [&](const std::string& mode) {
    std::filesystem::remove_all(folder_.path("run"));
    const Outcome run = train(2, " output.dir=run distributed.mode=" + mode);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    return folder_.read("run/final/adapter_model.safetensors") + events_of(run.out);
  };
  EXPECT_TRUE(left("zero3") == left("ddp"));
}

TEST_F(Zero, GivesThemInEveryPrecision) {
  constexpr const char* kWithoutMasters =
      "training.precision=bf16 training.state.weights=bf16 training.state.master_weights=false";
  for (const char* precision : part_of<const char*>(
           {"training.precision=bf16",                                                //
            "training.precision=bf16 training.state.weights=bf16",                    // with masters
            "training.precision=bf16 training.state.weights=bf16 output.dtype=fp32",  // written
                                                                                      // to
                                                                                      // final/
            kWithoutMasters,                                                          // drawn
            "training.precision=bf16 training.state.moments=bf16",                    // drawn
            "training.precision=fp16 training.loss_scale.init_scale=1.0e6"},
           2))  // some steps are skipped
    expect_same(2, precision);
}

/// Blocks are the rank's own, as are scales of a micro-batch's tensors; those of delayed scaling are all
/// ranks'. Blocks along tokens end with sequences of this length, so that no bit depends on the split.
TEST_F(Zero, GivesThemInFp8) {
  for (const auto& [how, mode] : part_of<std::pair<std::string, const char*>>(
           {{"delayed", "zero1"},
            {"delayed training.micro_batch_size=1", "zero1"},
            {"delayed", "zero2"},
            {"delayed runtime.device=discrete runtime.discrete.seed=5 runtime.discrete.check=true", "zero3"},
            {"current", "zero1"},
            {"current", "zero3"},
            {"nvfp4", "zero1"},
            {"nvfp4", "zero2"},
            {"block", "zero1"},
            {"block", "zero2"},
            {"mxfp8", "zero1"},
            {"mxfp8", "zero2"},
            {"block training.fp8.quantized_activations=true", "zero1"},
            {"block training.fp8.quantized_activations=true", "zero2"}},
           3))
    expect_same(2, "data.sequence_length=256 training.precision=fp8 training.fp8.recipe=" + how, mode);
}

/// The largest magnitudes of a step are those of all ranks, in a program of one micro-batch and of several.
TEST_F(Zero, DelayedScalesAreThoseOfTheEffectiveBatch) {
  const auto history = [&](int ranks, const std::string& more) {
    std::filesystem::remove_all(folder_.path("run"));
    trained(
        ranks, "run",
        "training.max_steps=1 output.save_steps=1 training.eval_strategy=no training.precision=fp8 " + more);
    return read_tensors(folder_.read("run/checkpoint-1/optimizer.safetensors")).at("fp8.amax_history");
  };
  const auto one = history(1, "");
  EXPECT_TRUE(history(2, "") == one);
  EXPECT_TRUE(history(2, "training.micro_batch_size=1") == one);
  EXPECT_TRUE(history(2, "training.fp8.amax_history_len=2") == history(1, "training.fp8.amax_history_len=2"));
}

/// Sums in 16 bits are drawn as one rank draws them, travel in fp32 and are rounded once.
TEST_F(Zero, GivesThemForAccumulatorsOf16Bits) {
  expect_same(2, "training.micro_batch_size=1 training.precision=bf16 training.state.accumulators=bf16");
}

TEST_F(Zero, GivesThemWithEveryOptimizer) {
  // The matrices of this model are small: they have owners from 16,384 elements on.
  for (const char* optimizer :
       part_of<const char*>({"adamw_8bit", "muon", "adafactor", "lion", "sgd training.momentum=0.9"}, 2))
    expect_same(2, std::string("model.config.intermediate_size=300 training.optimizer=") + optimizer);
  for (const auto& [moments, mode] : part_of<std::pair<std::string, const char*>>(
           {{"fp8_lm", "zero1"}, {"fp8_lm", "zero2"}, {"coat", "zero1"}, {"coat", "zero2"}}, 2))
    expect_same(2, "model.config.intermediate_size=300 training.state.moments=" + moments, mode);
}

TEST_F(Zero, GivesThemHoweverAStepIsCarriedOut) {
  const Left ddp = left(2, "ddp");
  for (const char* how : {"training.micro_batch_size=1", "memory.recompute=full runtime.threads=2",
                          "runtime.device=discrete runtime.discrete.seed=7 runtime.discrete.check=true"}) {
    const Left zero = left(2, "zero1", how);
    EXPECT_TRUE(zero.model == ddp.model && zero.state == ddp.state) << how;
  }
}

/// Each rank moves what it holds to the host's memory, or to a file of its own.
TEST_F(Zero, GivesThemWithOffload) {
  const std::string disk =
      "'memory.offload={optimizer: disk, gradients: disk, parameters: disk, activations: disk}'";
  const std::string host =
      "runtime.device=discrete runtime.discrete.seed=7 "
      "'memory.offload={optimizer: host, gradients: host, parameters: host}'";
  for (const int ranks : {2, 3}) {
    const Left ddp = left(ranks, "ddp", kLarge);
    for (const char* mode : {"ddp", "zero1", "zero2", "zero3"})
      for (const std::string& how :
           part_of<std::string>({disk, host, host + " memory.update_on_host=true"}, 3)) {
        const Left moved = left(ranks, mode, kLarge + how);
        EXPECT_TRUE(moved.model == ddp.model && moved.state == ddp.state) << ranks << mode << how;
        EXPECT_EQ(moved.events, ddp.events) << ranks << mode << how;
      }
  }
}

TEST_F(Zero, GivesThemForAverages) { expect_same(2, "training.ema_decay=0.9"); }

TEST_F(Zero, ResumesFromAnyModeAndNumberOfRanks) {
  const std::string run = "training.eval_strategy=no output.save_steps=3 output.dir=";
  const auto go_on = [&](int ranks, const std::string& mode, const std::string& dir, int steps) {
    const Outcome outcome = train(ranks, " " + run + dir + " distributed.mode=" + mode +
                                             " training.max_steps=" + std::to_string(steps));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return folder_.read(dir + "/final/model.safetensors");
  };
  const auto through = [&](const std::string& before, const std::string& after) {
    std::string dir = before + "-" + after;
    std::ranges::replace(dir, ' ', '-');
    (void)go_on(2, before, dir, 3);
    std::filesystem::remove_all(folder_.path(dir + "/final"));
    std::filesystem::remove_all(folder_.path(dir + "/finished"));
    return go_on(2, after, dir, 6);
  };
  const std::string expected = through("ddp", "ddp");
  EXPECT_FALSE(expected.empty());
  // Of a share that is computed at once zero2 has the same bits.
  for (const auto& [before, after] :
       part_of<std::pair<const char*, const char*>>({{"zero1", "ddp"},
                                                     {"ddp", "zero1"},
                                                     {"zero3", "ddp"},
                                                     {"ddp", "zero3"},
                                                     {"zero1", "zero2"},
                                                     {"zero1 training.micro_batch_size=1", "zero2"}},
                                                    2))
    EXPECT_TRUE(through(before, after) == expected) << before << " " << after;
  EXPECT_FALSE(through("zero2", "zero2 training.micro_batch_size=1").empty()) << "another order of sums";
  (void)go_on(3, "zero1", "three", 3);
  std::filesystem::remove_all(folder_.path("three/final"));
  std::filesystem::remove_all(folder_.path("three/finished"));
  EXPECT_FALSE(go_on(1, "ddp", "three", 6).empty());
}

TEST_F(Zero, ThePlanShowsWhatItSaves) {
  const auto bytes = [&](const std::string& mode, const char* of) {
    const Outcome plan = folder_.run("plan run.yaml --json distributed.ranks=2 distributed.mode=" + mode);
    EXPECT_EQ(plan.exit_code, 0) << plan.err;
    return number(plan.out, of);
  };
  for (const auto& [mode, of] : {std::pair{"zero1", "optimizer_state"}, {"zero3", "parameters"}}) {
    const auto whole = static_cast<double>(bytes("ddp", of)), piece = static_cast<double>(bytes(mode, of));
    EXPECT_LT(piece, 0.8 * whole) << mode;
    EXPECT_GT(piece, 0.5 * whole) << mode;
  }
}

}  // namespace
}  // namespace plimsoll::e2e
