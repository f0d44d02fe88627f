// LoRA end to end: the same bits however it is run, PEFT's directory out and in, runs that go on, what is
// refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/json.h"
#include "program.h"
#include "tensors.h"

namespace plimsoll::e2e {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kLora =
    "lora: {r: 4, lora_alpha: 16, lora_dropout: 0.1, target_modules: all-linear, init_lora_weights: false}\n"
    "training: {global_batch_size: 4, max_steps: 4, learning_rate: 1.0e-3, lr_scheduler: constant}\n";

void prepare_lora(const Folder& folder, const std::string& extra = kLora) {
  folder.write("train.txt", some_text(9'000));
  folder.write("eval.txt", some_text(400));
  folder.write("run.yaml", run_file(extra));
}

Result adapter_of(const Folder& folder, const Outcome& outcome) {
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  return {folder.read("out/final/adapter_model.safetensors"), events_of(outcome.out)};
}

TEST(Lora, HasTheSameBitsHoweverItIsRun) {
  const auto train = [](const std::string& how) {
    const Folder folder;
    prepare_lora(folder);
    return adapter_of(folder, folder.run("train run.yaml --json " + how));
  };
  const Result whole = train("runtime.threads=1");
  EXPECT_FALSE(whole.model.empty());
  for (const char* how :
       {"runtime.threads=3 training.micro_batch_size=2 debug.poison=true", "training.micro_batch_size=1",
        "debug.dump_dir=dump memory.recompute=none", "memory.recompute=full",
        "runtime.device=discrete runtime.discrete.seed=5 runtime.discrete.check=true"}) {
    const Result other = train(how);
    EXPECT_EQ(whole.events, other.events) << how;
    EXPECT_TRUE(whole.model == other.model) << how;
  }
}

/// The kinds of adapters, each with its own sums over tokens.
TEST(Lora, KindsHaveTheSameBitsHoweverTheyAreRun) {
  for (const char* kind :
       {"use_dora: true", "lora_bias: true", "init_lora_weights: pissa", "init_lora_weights: olora",
        "target_modules: [embed_tokens, v_proj], trainable_token_indices: [3, 5]"}) {
    const auto train = [&](const std::string& how) {
      const Folder folder;
      prepare_lora(folder, "lora: {r: 2, " + std::string(kind) +
                               "}\ntraining: {global_batch_size: 4, max_steps: 2, learning_rate: 1.0e-3}\n");
      return adapter_of(folder,
                        folder.run("train run.yaml --json model.config.tie_word_embeddings=false " + how));
    };
    const Result whole = train("runtime.threads=1");
    const Result other = train("runtime.threads=3 training.micro_batch_size=1 memory.recompute=full");
    EXPECT_EQ(whole.events, other.events) << kind;
    EXPECT_TRUE(whole.model == other.model) << kind;
  }
}

class LoraResume : public testing::TestWithParam<const char*> {};

TEST_P(LoraResume, GoesOnWithTheBitsOfARunThatWasNeverStopped) {
  const std::string all = GetParam();
  const Folder undisturbed, folder;
  prepare_lora(undisturbed);
  prepare_lora(folder);
  const Result whole = adapter_of(undisturbed, undisturbed.run("train run.yaml --json " + all));
  ASSERT_EQ(folder.run("train run.yaml output.save_steps=2 " + all).exit_code, 0);
  std::filesystem::remove_all(folder.path("out/final"));
  std::filesystem::remove_all(folder.path("out/checkpoint-4"));
  EXPECT_FALSE(std::filesystem::exists(folder.path("out/checkpoint-2/model.safetensors")));
  const Result rest =
      adapter_of(folder, folder.run("train run.yaml --json training.micro_batch_size=2 " + all));
  EXPECT_TRUE(whole.events.ends_with(rest.events));
  EXPECT_TRUE(whole.model == rest.model);
  std::filesystem::remove_all(folder.path("out/final"));
  const Outcome other = folder.run("train run.yaml lora.r=3 " + all);
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.err, HasSubstr("lora.r is 3, but the checkpoint was made with 4"));
}

INSTANTIATE_TEST_SUITE_P(
    States, LoraResume,
    testing::Values("", "training.precision=bf16 training.state.weights=bf16 lora.bias=all"));

/// final/ is PEFT's, and a run and an evaluation go on from it.
TEST(Lora, GoesOnWithWhatItWrote) {
  const Folder folder;
  prepare_lora(folder);
  const Outcome first = folder.run("train run.yaml --json");
  ASSERT_EQ(first.exit_code, 0) << first.err;
  const Tensors adapter = read_tensors(folder.read("out/final/adapter_model.safetensors"));
  EXPECT_EQ(adapter.size(), 28U);
  EXPECT_TRUE(adapter.contains("base_model.model.model.layers.1.mlp.down_proj.lora_B.weight"));
  const auto config = io::parse_json(folder.read("out/final/adapter_config.json"));
  ASSERT_TRUE(config);
  EXPECT_EQ(config->find("target_modules")->text, "all-linear");
  EXPECT_FALSE(std::filesystem::exists(folder.path("out/final/config.json")));
  const std::string from = " 'lora={adapter: out/final}'";
  const Outcome eval = folder.run("eval run.yaml --json lora=null" + from);
  ASSERT_EQ(eval.exit_code, 0) << eval.err;
  // The last evaluation of the training, of the same weights.
  const std::string loss = first.out.substr(first.out.rfind("\"loss\": "));
  EXPECT_THAT(eval.out, HasSubstr(loss.substr(0, loss.find(','))));
  const Outcome other = folder.run("train run.yaml output.dir=two training.max_steps=1 lora=null" + from +
                                   " debug.dump_dir=dump debug.dump=[parameters]");
  ASSERT_EQ(other.exit_code, 0) << other.err;
  const Tensors begun = under(read_tensors(folder.read("dump/step-000000.safetensors")), "param.");
  for (const auto& [name, tensor] : adapter) EXPECT_TRUE(begun.at(name) == tensor) << name;
  EXPECT_THAT(folder.read("out/final/README.md"),
              HasSubstr("A LoRA adapter of a language model of the llama family"));
  // What names nothing has no effect in PEFT either, which opens it; here a note says so.
  std::string odd = folder.read("out/final/adapter_config.json");
  const std::string none = "\"exclude_modules\": null";
  ASSERT_NE(odd.find(none), std::string::npos) << odd;
  folder.write("out/final/adapter_config.json",
               std::string(odd).replace(odd.find(none), none.size(), "\"exclude_modules\": [\"zip\"]"));
  const Outcome told = folder.run("eval run.yaml --json lora=null" + from);
  EXPECT_THAT(told.out, HasSubstr(loss.substr(0, loss.find(','))));
  EXPECT_THAT(told.err, HasSubstr("exclude_modules: no module matches 'zip': it has no effect"));
  folder.write("out/final/adapter_config.json", odd);
  const Outcome disagrees = folder.run("train run.yaml lora=null 'lora={adapter: out/final, r: 7}'");
  EXPECT_EQ(disagrees.exit_code, 2);
  EXPECT_THAT(disagrees.err, HasSubstr("lora.r is 7"));
  const Outcome misfit =
      folder.run("train run.yaml output.dir=three model.config.hidden_size=48 lora=null" + from);
  EXPECT_EQ(misfit.exit_code, 65) << misfit.err;
  EXPECT_THAT(misfit.err, HasSubstr("base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight"));
}

/// Of a base in a folder: the merged model is what was evaluated with the adapter beside it.
TEST(Lora, MergesAndGenerates) {
  const Folder folder;
  prepare_lora(folder, "training: {global_batch_size: 4, max_steps: 1}\n");
  ASSERT_EQ(folder.run("train run.yaml output.dir=base output.max_shard_size=60KB").exit_code, 0);
  folder.write("lora.yaml",
               "model: {path: base/final}\ndata: {train: train.txt, eval: eval.txt, sequence_length: "
               "300}\noutput: {dir: out}\n" +
                   std::string(kLora));
  const Outcome trained = folder.run("train lora.yaml --json");
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const std::string merge = "merge --model base/final --adapter out/final --output ";
  const Outcome merged = folder.run(merge + "merged --json");
  ASSERT_EQ(merged.exit_code, 0) << merged.err;
  EXPECT_EQ(number(merged.out, "changed"), 14);
  EXPECT_EQ(number(merged.out, "proven_rows"), 14 * 8);
  const std::string loss = trained.out.substr(trained.out.rfind("\"loss\": ")).substr(0, 14);
  const Outcome beside = folder.run("eval lora.yaml --json --adapter out/final");
  EXPECT_THAT(beside.out, HasSubstr(loss)) << beside.err;
  const Outcome within = folder.run("eval lora.yaml --json lora=null model.path=merged");
  EXPECT_THAT(within.out, HasSubstr(loss)) << within.err;
  for (const char* named : {"out", "out/final"}) {
    const Outcome opened = folder.run(std::string("eval lora.yaml --json lora=null model.path=") + named);
    EXPECT_THAT(opened.out, HasSubstr(loss)) << opened.err;
    EXPECT_THAT(opened.err, HasSubstr("out/final is an adapter: its base is base/final"));
  }
  const std::string prompt = " --prompt-ids 3,4,5 --max-new-tokens 8 --temperature 0 --json";
  const Outcome one = folder.run("generate --model base/final --adapter out/final" + prompt);
  const Outcome two = folder.run("generate --model merged" + prompt);
  ASSERT_EQ(one.exit_code, 0) << one.err;
  const auto ids = [](const std::string& out) { return out.substr(out.find("\"ids\""), 60); };
  EXPECT_EQ(ids(one.out), ids(two.out));
  const Outcome in_bf16 = folder.run("generate --dtype bf16 --model base/final --adapter out/final" + prompt);
  EXPECT_EQ(in_bf16.exit_code, 0) << in_bf16.err << "the adapter lies in fp32 beside a model in bf16";
  for (const char* named : {"--model out", "--model out/final", "--model base --adapter out"}) {
    const Outcome opened = folder.run(std::string("generate ") + named + prompt);
    EXPECT_EQ(opened.exit_code, 0) << opened.err;
    EXPECT_EQ(ids(opened.out), ids(one.out)) << named;
  }
  const Outcome exported = folder.run("export --model out --format gguf --output out.gguf");
  EXPECT_EQ(exported.exit_code, 65);
  EXPECT_THAT(exported.err, HasSubstr("plimsoll merge --model base/final --adapter out/final --output DIR"));
  EXPECT_EQ(folder.run("inspect out").exit_code, 0);
  EXPECT_EQ(folder.run("train lora.yaml output.dir=on max_steps=1 lora=null 'lora={adapter: out}'").exit_code,
            0)
      << folder.read("err.txt");
  const Outcome own = folder.run(merge + "own --json");
  EXPECT_THAT(own.err, Not(HasSubstr("note: the adapter")));
  ASSERT_EQ(folder.run("train run.yaml output.dir=twin training.seed=3").exit_code, 0);
  for (const char* command :
       {"merge --output other", "generate --prompt-ids 3,4", "eval lora.yaml lora=null"}) {
    const bool evaluates = std::string(command).starts_with("eval");
    const Outcome other =
        folder.run(std::string(command) + (evaluates ? " model.path=twin/final" : " --model twin/final") +
                   " --adapter out");
    EXPECT_EQ(other.exit_code, 0) << other.err;
    EXPECT_THAT(other.err, HasSubstr("was trained on base/final, which is another model than")) << command;
  }
  folder.write("wide.yaml", run_file("training: {global_batch_size: 4, max_steps: 1}\n"));
  ASSERT_EQ(folder.run("train wide.yaml output.dir=wide model.config.hidden_size=64").exit_code, 0);
  const Outcome misfit = folder.run("generate --model wide --adapter out" + prompt);
  EXPECT_EQ(misfit.exit_code, 65);
  EXPECT_THAT(misfit.err, HasSubstr("this adapter was trained on base/final"));
  const Outcome again = folder.run(merge + "merged");
  EXPECT_EQ(again.exit_code, 2);
  EXPECT_THAT(again.err, HasSubstr("exists already"));
  const Outcome source = folder.run(merge + "base/../base/final");
  EXPECT_EQ(source.exit_code, 2);
  EXPECT_THAT(source.err, HasSubstr("would overwrite its source"));
  folder.write("out/final/adapter_config.json", R"({"peft_type": "VERA", "r": 4})");
  const Outcome other = folder.run(merge + "three");
  EXPECT_EQ(other.exit_code, 65);
  EXPECT_THAT(other.err, HasSubstr("VERA"));
  EXPECT_FALSE(std::filesystem::exists(folder.path("three")));
}

/// Over a base that is a language model: how many labels there are is what the adapter's head says.
TEST(Lora, AClassifiersAdapterPredictsAndIsLookedAt) {
  const Folder folder;
  prepare_lora(folder, "training: {global_batch_size: 2, max_steps: 1}\n");
  ASSERT_EQ(folder.run("train run.yaml output.dir=base").exit_code, 0);
  std::string labels;
  for (const char* label : {"0", "1", "2", "1"})
    labels += "{\"input_ids\": [3, 4, 5], \"label\": " + std::string(label) + "}\n";
  folder.write("labels.jsonl", labels);
  folder.write(
      "lora.yaml",
      "task: sequence_classification\nmodel: {path: base/final}\ndata: {train: labels.jsonl, "
      "sequence_length: 8}\nclassification: {num_labels: 3, problem_type: single_label}\nlora: {r: 2}\n"
      "training: {global_batch_size: 2, max_steps: 1}\noutput: {dir: out}\n");
  const Outcome trained = folder.run("train lora.yaml");
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const Outcome predicted = folder.run("predict --model base/final --adapter out/final --data labels.jsonl");
  EXPECT_EQ(predicted.exit_code, 0) << predicted.err;
  EXPECT_EQ(std::count(predicted.out.begin(), predicted.out.end(), '\n'), 4);
  EXPECT_THAT(predicted.out, HasSubstr("\"label\": \"LABEL_"));
  const Outcome by_run = folder.run("predict --model out --data labels.jsonl");
  EXPECT_EQ(by_run.out, predicted.out) << by_run.err;
  const Outcome named = folder.run(
      "train lora.yaml output.dir=named 'classification.label_names=[entailment, neutral, contradiction]'");
  ASSERT_EQ(named.exit_code, 0) << named.err;
  for (const char* model : {"--model named", "--model base --adapter named/final"}) {
    const Outcome answers = folder.run(std::string("predict --data labels.jsonl ") + model);
    EXPECT_EQ(answers.exit_code, 0) << answers.err;
    EXPECT_THAT(answers.out, Not(HasSubstr("LABEL_")));
    EXPECT_THAT(answers.out,
                AnyOf(HasSubstr("entailment"), HasSubstr("neutral"), HasSubstr("contradiction")));
  }
  const Outcome looked = folder.run("inspect out/final --json");
  EXPECT_THAT(looked.out, HasSubstr("\"base\": \"base/final\"")) << looked.err;
  EXPECT_THAT(looked.out, HasSubstr("\"whole\": [\"score.weight\"]"));
  folder.write("out/final/adapter_config.json", R"({"peft_type": "IA3"})");
  EXPECT_THAT(folder.run("inspect out/final").err, HasSubstr("IA3"));
}

TEST(Lora, ThePlanHasStateForTheAdaptersAlone) {
  const Folder folder;
  prepare_lora(folder,
               "lora: {r: 2, target_modules: [q_proj]}\ntraining: {global_batch_size: 2, max_steps: 2}\n");
  const Outcome outcome = folder.run("plan run.yaml --json training.micro_batch_size=1");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto plan = io::parse_json(outcome.out);
  ASSERT_TRUE(plan);
  const int64_t trained = 2 * 2 * (60 + 60);  // two layers
  EXPECT_EQ(plan->find("model")->find("trained")->integer, trained);
  EXPECT_EQ(plan->find("classes")->find("gradients")->integer, 4 * trained);
  EXPECT_EQ(plan->find("classes")->find("optimizer_state")->integer, 8 * trained);
}

/// The bytes that every guide begins with: 16 a parameter of Llama-2-7B, or 2 and the adapters' 16.
TEST(Lora, ThePlanTellsTheStoryOfSevenBillionParameters) {
  const Folder folder;
  const auto state_bytes = [&](const std::string& settings) {
    folder.write(
        "7b.yaml",
        "model:\n  init: random\n  config: {model_type: llama, vocab_size: 32000, hidden_size: 4096, "
        "intermediate_size: 11008, num_hidden_layers: 32, num_attention_heads: 32, "
        "num_key_value_heads: 32, max_position_embeddings: 4096, rms_norm_eps: 1.0e-5, "
        "tie_word_embeddings: false}\n"
        "data: {sequence_length: 64}\nmemory: {budget: 300GiB}\n" +
            settings);
    const Outcome outcome = folder.run("plan 7b.yaml --json training.micro_batch_size=1");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    const auto plan = io::parse_json(outcome.out);
    int64_t bytes = 0;
    for (const char* kind : {"parameters", "gradients", "optimizer_state"})
      if (const auto* of_class = plan->find("classes")->find(kind)) bytes += of_class->integer;
    return bytes;
  };
  const int64_t base = 6'738'415'616, adapters = 32 * 4 * 16 * (4096 + 4096);
  EXPECT_EQ(state_bytes("training: {global_batch_size: 1, max_steps: 1}\n"), 16 * base);
  EXPECT_EQ(
      state_bytes("lora: {r: 16, target_modules: [q_proj, k_proj, v_proj, o_proj]}\n"
                  "training: {global_batch_size: 2, max_steps: 1, precision: bf16, state: {weights: bf16, "
                  "master_weights: false}}\n"),
      2 * base + 16 * adapters);
}

}  // namespace
}  // namespace plimsoll::e2e
