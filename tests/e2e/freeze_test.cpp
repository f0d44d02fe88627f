// Frozen parameters and groups of hyper-parameters: what is frozen has no gradient and stays as it was, the
// other gradients keep their bits, the plan shrinks by what is frozen, and runs go on as they were.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/glob.h"
#include "io/json.h"
#include "program.h"
#include "tensors.h"

namespace plimsoll::e2e {
namespace {

using testing::HasSubstr;

constexpr const char* kFourSteps =
    "training: {global_batch_size: 4, max_steps: 4, learning_rate: 1.0e-3, lr_scheduler: constant}\n";
constexpr const char* kDropoutGpt2 =
    "model: {config: {model_type: gpt2, vocab_size: 257, n_embd: 36, n_layer: 2, n_head: 3, n_inner: 53, "
    "n_positions: 300}, init: random}\n"
    "data: {train: train.txt, sequence_length: 61}\noutput: {dir: out}\n";

void prepare_four_steps(const Folder& folder, const std::string& file = run_file(kFourSteps)) {
  folder.write("train.txt", some_text(9'000));
  folder.write("eval.txt", some_text(400));
  folder.write("run.yaml", file);
}

/// Two steps with everything dumped: the first gradients, and the parameters before and after.
struct FrozenDump {
  Tensors gradients, before, after;
  std::string loss;
};

FrozenDump dump(const std::string& overrides, const std::string& file = run_file(kFourSteps)) {
  const Folder folder;
  prepare_four_steps(folder, file);
  const Outcome outcome = folder.run(
      "train run.yaml training.max_steps=2 debug.dump_dir=dump debug.dump=[loss,gradients,parameters] " +
      overrides);
  EXPECT_EQ(outcome.exit_code, 0) << overrides << "\n" << outcome.err;
  if (outcome.exit_code != 0) return {};
  const auto step = [&](int n) {
    return read_tensors(folder.read("dump/step-00000" + std::to_string(n) + ".safetensors"));
  };
  return {under(step(1), "grad."), under(step(0), "param."), under(step(2), "param."),
          step(1).at("loss").bytes};
}

std::string freeze(const std::string& patterns) { return "'training.freeze=[" + patterns + "]' "; }

/// Against the run without: no gradient for what is frozen, each other one bit by bit, and only these change.
void expect_frozen(const std::vector<std::string>& patterns, const std::string& always = "",
                   const std::string& file = run_file(kFourSteps), const std::string& unfreeze = "") {
  std::string list;
  for (const std::string& pattern : patterns) list += (list.empty() ? "\"" : ", \"") + pattern + "\"";
  SCOPED_TRACE(list + " " + always);
  const std::string thaw = unfreeze.empty() ? "" : "'training.unfreeze=[\"" + unfreeze + "\"]' ";
  const FrozenDump all = dump(always, file), some = dump(freeze(list) + thaw + always, file);
  EXPECT_EQ(some.loss, all.loss);
  EXPECT_TRUE(some.before == all.before) << "other random weights";
  size_t frozen = 0;
  for (const auto& [name, gradient] : all.gradients) {
    bool is_frozen = false;
    for (const std::string& pattern : patterns) is_frozen = is_frozen || matches_glob(pattern, name);
    is_frozen = is_frozen && (unfreeze.empty() || !matches_glob(unfreeze, name));
    frozen += is_frozen ? 1 : 0;
    EXPECT_EQ(some.gradients.contains(name), !is_frozen) << name;
    if (!is_frozen) {
      EXPECT_TRUE(some.gradients.at(name) == gradient) << name;
    }
    EXPECT_EQ(some.after.at(name) == some.before.at(name), is_frozen) << name;
  }
  EXPECT_GT(frozen, 0U);
  EXPECT_EQ(some.gradients.size(), all.gradients.size() - frozen);
}

TEST(Freeze, OtherGradientsKeepTheirBits) {
  expect_frozen({"model.layers.0.*"});
  expect_frozen({"model.layers.1.*", "model.norm.weight"});
  expect_frozen({"model.embed_tokens.weight"});  // the head as well, which is tied
  expect_frozen({"*norm*"});
  expect_frozen({"*"}, "", run_file(kFourSteps), "model.layers.1.mlp.*");
  expect_frozen({"*"}, "", run_file(kFourSteps), "model.norm.weight");
}

/// q, k and v lie side by side, gate and up too.
TEST(Freeze, PartsOfAStorageAreFrozenApart) {
  expect_frozen({"*.q_proj.*"});
  expect_frozen({"*.q_proj.weight", "*.k_proj.bias", "*.1.mlp.up_proj.weight"});
  expect_frozen({"*"}, "", run_file(kFourSteps), "*.v_proj.weight");
}

TEST(Freeze, HoweverItIsRun) {
  expect_frozen({"model.layers.0.*", "*.k_proj.*"}, "training.micro_batch_size=1 runtime.threads=3");
  expect_frozen({"model.layers.0.*", "*.q_proj.*", "*.up_proj.*"},
                "training.precision=bf16 training.state.weights=bf16 debug.poison=true");
  expect_frozen({"*.gate_proj.*"}, "memory.recompute=none debug.plan=separate");
  const std::string untied = "model.config.tie_word_embeddings=false ";
  expect_frozen({"lm_head.weight"}, untied);
  expect_frozen({"model.*"}, untied);  // the head alone learns
  expect_frozen({"model.*"}, untied + "training.micro_batch_size=2 training.precision=bf16");
}

TEST(Freeze, AGpt2) {
  const std::string file = std::string(kDropoutGpt2) + kFourSteps;
  expect_frozen({"transformer.h.0.*", "transformer.w?e.weight"}, "", file);
  expect_frozen({"*.bias", "*.attn.*"}, "training.micro_batch_size=2", file);
}

/// Losses and the final model do not depend on how it is run.
TEST(Freeze, HasTheSameBitsHoweverItIsRun) {
  const auto train = [](const std::string& overrides) {
    const Folder folder;
    prepare_four_steps(folder);
    return result_of(folder, folder.run("train run.yaml --json " +
                                        freeze("\"*.q_proj.*\", \"model.layers.0.mlp.*\"") + overrides));
  };
  const Result whole = train("runtime.threads=1");
  for (const char* how :
       {"runtime.threads=3 training.micro_batch_size=2 debug.poison=true", "training.micro_batch_size=1",
        "debug.dump_dir=dump memory.recompute=none", "memory.recompute=full"}) {
    const Result other = train(how);
    EXPECT_EQ(whole.events, other.events) << how;
    EXPECT_TRUE(whole.model == other.model) << how;
  }
}

class FreezeResume : public testing::TestWithParam<const char*> {};

TEST_P(FreezeResume, GoesOnWithTheBitsOfARunThatWasNeverStopped) {
  const std::string all = freeze("\"*.q_proj.*\", \"model.layers.0.mlp.*\"") + GetParam();
  const Folder undisturbed, folder;
  prepare_four_steps(undisturbed);
  prepare_four_steps(folder);
  const Result whole = result_of(undisturbed, undisturbed.run("train run.yaml --json " + all));
  ASSERT_EQ(folder.run("train run.yaml output.save_steps=2 " + all).exit_code, 0);
  // What is frozen stands in the checkpoint once: no master, no moments.
  const Tensors model = read_tensors(folder.read("out/checkpoint-2/model.safetensors"));
  const std::string optimizer = folder.read("out/checkpoint-2/optimizer.safetensors");
  EXPECT_TRUE(model.contains("model.layers.0.self_attn.q_proj.weight"));
  EXPECT_EQ(optimizer.find("q_proj"), std::string::npos);
  EXPECT_EQ(optimizer.find("layers.0.mlp"), std::string::npos);
  EXPECT_NE(optimizer.find(".model.layers.0.self_attn.k_proj.weight"), std::string::npos);
  std::filesystem::remove_all(folder.path("out/final"));
  std::filesystem::remove_all(folder.path("out/checkpoint-4"));
  const Result rest =
      result_of(folder, folder.run("train run.yaml --json training.micro_batch_size=2 " + all));
  EXPECT_TRUE(whole.events.ends_with(rest.events));
  EXPECT_TRUE(whole.model == rest.model);
  // Another list is another run.
  std::filesystem::remove_all(folder.path("out/final"));
  const Outcome other = folder.run("train run.yaml " + freeze("\"*.q_proj.*\"") + GetParam());
  EXPECT_EQ(other.exit_code, 2) << other.err;
  EXPECT_THAT(other.err, HasSubstr("training.freeze is [\"*.q_proj.*\"], but the checkpoint was made with"));
}

INSTANTIATE_TEST_SUITE_P(States, FreezeResume,
                         testing::Values("", "training.precision=bf16 training.state.weights=bf16",
                                         "training.optimizer=sgd training.momentum=0.9 "
                                         "'training.param_groups=[{params: [\"*.v_proj.*\"], "
                                         "learning_rate: 2.0e-3}]'"));

io::Tree plan_of(const std::string& overrides) {
  const Folder folder;
  prepare_four_steps(folder);
  const Outcome outcome = folder.run("plan run.yaml --json " + overrides);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  auto event = io::parse_json(outcome.out);
  return event ? std::move(*event) : io::Tree{};
}

int64_t class_of(const io::Tree& plan, const char* name) { return plan.find("classes")->find(name)->integer; }

TEST(Freeze, ThePlanHoldsNothingForIt) {
  for (const char* state : {"", " training.precision=bf16 training.state.weights=bf16"}) {
    const std::string how = std::string("training.micro_batch_size=2") + state;
    const io::Tree all = plan_of(how), some = plan_of(how + " " + freeze("\"*.q_proj.weight\""));
    const int64_t frozen = 2 * 60 * 60;  // two layers
    EXPECT_EQ(some.find("model")->find("trained")->integer,
              all.find("model")->find("trained")->integer - frozen);
    EXPECT_EQ(class_of(some, "parameters"), class_of(all, "parameters"));
    EXPECT_EQ(class_of(some, "optimizer_state"), class_of(all, "optimizer_state") - 8 * frozen);
    EXPECT_EQ(class_of(some, "gradients"), class_of(all, "gradients") - 4 * frozen);
    EXPECT_EQ(class_of(some, "master_weights"),
              class_of(all, "master_weights") - (*state == 0 ? 0 : 4 * frozen));
  }
}

// ---- groups

std::string final_model(const std::string& overrides) {
  const Folder folder;
  prepare_four_steps(folder);
  const Outcome outcome = folder.run("train run.yaml " + overrides);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  return folder.read("out/final/model.safetensors");
}

std::string groups(const std::string& list) { return "'training.param_groups=[" + list + "]' "; }

TEST(ParamGroups, TheRunsOwnValuesAreNoOthers) {
  const std::string plain = final_model("");
  EXPECT_TRUE(final_model(groups("{params: [\"model.layers.0.*\"]}, {params: \"*\", learning_rate: 1.0e-3, "
                                 "betas: [0.9, 0.999]}")) == plain);
  EXPECT_FALSE(final_model(groups("{params: \"*\", learning_rate: 1.1e-3}")) == plain);
}

/// The rate of what no pattern names is the run's; the first pattern that matches wins; a rate of 0 moves
/// nothing, of a part of a storage either.
TEST(ParamGroups, EachHasItsRate) {
  const FrozenDump run =
      dump(groups("{params: [\"*.k_proj.*\", \"*.0.*norm*\"], learning_rate: 0}, "
                  "{params: [\"*.0.*\"], learning_rate: 1.0e-2}"));
  for (const auto& [name, tensor] : run.after) {
    const bool still = matches_glob("*.k_proj.*", name) || matches_glob("*.0.*norm*", name);
    EXPECT_EQ(tensor == run.before.at(name), still) << name;
  }
  EXPECT_EQ(run.gradients.size(), run.before.size());
}

/// Decay by a group holds for vectors too, whatever the scope.
TEST(ParamGroups, TheirDecayHoldsForAllTheyName) {
  const auto norm_after = [](const std::string& overrides) {
    return dump("training.learning_rate=0.1 training.max_grad_norm=null " + overrides)
        .after.at("model.norm.weight");
  };
  const std::string group = "{params: [\"*norm*\"], weight_decay: ";
  EXPECT_TRUE(norm_after("training.weight_decay=0.5") ==
              norm_after(groups(group + "0}") + "training.weight_decay=0.5 training.weight_decay_scope=all"));
  EXPECT_TRUE(norm_after("training.weight_decay=0.5 training.weight_decay_scope=all") ==
              norm_after(groups(group + "0.5}") + "training.weight_decay=0.5"));
}

TEST(ParamGroups, ChangedValuesAreTheSameProgram) {
  const auto program = [](const std::string& values) {
    const Folder folder;
    prepare_four_steps(folder);
    EXPECT_EQ(folder
                  .run("plan run.yaml --dump-ir ir training.gradient_accumulation_steps=1 " +
                       groups("{params: [\"*.0.*\"], " + values + "}"))
                  .exit_code,
              0);
    std::string text;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path("ir/step")))
      text = std::max(text, entry.path().filename().string());
    return folder.read("ir/step/" + text);
  };
  const std::string once = program("learning_rate: 1.0e-2");
  ASSERT_GT(once.size(), 1000U);
  EXPECT_TRUE(program("learning_rate: 3.0e-3, weight_decay: 0.2, betas: [0.5, 0.6]") == once);
}

}  // namespace
}  // namespace plimsoll::e2e
