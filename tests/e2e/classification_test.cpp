// Classification of sequences: the same bits however it is carried out, what a user gets wrong, what comes of
// it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>

#include "io/json.h"
#include "program.h"
#include "tensors.h"

namespace plimsoll::e2e {
namespace {

using testing::HasSubstr;
using testing::Not;

/// `count` rows of a few to many tokens with a label each, from a generator of 32 bits.
std::string examples(int count, const std::string& problem, unsigned seed = 1) {
  const auto draw = [&seed](unsigned end) {
    seed = seed * 1664525U + 1013904223U;
    return (seed >> 8) % end;
  };
  std::string lines;
  for (int i = 0; i < count; ++i) {
    std::string ids;
    for (unsigned t = 0, length = 1 + draw(60); t < length; ++t)
      ids += (t == 0 ? "" : ", ") + std::to_string(draw(200));
    const std::string label = problem == "single" ? std::to_string(i < 3 ? i : static_cast<int>(draw(3)))
                              : problem == "multi"
                                  ? "[" + std::to_string(draw(2)) + ", " + std::to_string(draw(2)) + "]"
                                  : "0." + std::to_string(draw(1000));
    lines += "{\"input_ids\": [" + ids + "], \"label\": " + label + "}\n";
  }
  return lines;
}

std::string classifier(const std::string& family = "llama", const std::string& more = "") {
  const std::string sizes =
      family == "gpt2"
          ? "n_embd: 48, n_head: 3, n_layer: 2, n_positions: 64, resid_pdrop: 0.1, embd_pdrop: 0.1, "
            "attn_pdrop: 0.1"
          : "hidden_size: 60, intermediate_size: 70, num_hidden_layers: 2, num_attention_heads: 3, "
            "num_key_value_heads: 1, head_dim: 20, max_position_embeddings: 64";
  return "task: sequence_classification\n"
         "model:\n  config: {model_type: " +
         family + ", vocab_size: 200, pad_token_id: 3, " + sizes +
         "}\n"
         "data: {train: train.jsonl, eval: eval.jsonl, sequence_length: 50}\n"
         "training: {global_batch_size: 8, max_steps: 4, learning_rate: 1.0e-3, lr_scheduler: constant}\n"
         "output: {dir: out}\n" +
         more;
}

void write_data(const Folder& folder, const std::string& problem) {
  folder.write("train.jsonl", examples(37, problem));
  folder.write("eval.jsonl", examples(13, problem, 9));
}

Result train_classifier(const std::string& problem, const std::string& overrides,
                        const std::string& environment = "", const std::string& family = "llama") {
  const Folder folder;
  write_data(folder, problem);
  folder.write("run.yaml", classifier(family));
  return result_of(folder, folder.run("train run.yaml --json " + overrides, environment));
}

class Classification : public testing::TestWithParam<const char*> {};

TEST_P(Classification, HasTheSameBitsHoweverItIsCarriedOut) {
  const Result whole = train_classifier(GetParam(), "runtime.threads=1");
  EXPECT_EQ(std::count(whole.events.begin(), whole.events.end(), '\n'), 5);
  EXPECT_THAT(whole.events, HasSubstr("\"metrics\": {"));
  for (const char* how :
       {"training.micro_batch_size=1", "training.micro_batch_size=4 runtime.threads=3",
        "training.micro_batch_size=2 debug.poison=true", "memory.recompute=none", "memory.recompute=full",
        "debug.dump_dir=dump", "debug.plan=separate debug.poison=true"}) {
    const Result other = train_classifier(GetParam(), how);
    EXPECT_EQ(other.events, whole.events) << how;
    EXPECT_TRUE(other.model == whole.model) << how;
  }
}

INSTANTIATE_TEST_SUITE_P(Problems, Classification, testing::Values("single", "multi", "regression"));

TEST(ClassificationBits, HoldInBf16AndWithDropout) {
  for (const std::string how :
       {"training.precision=bf16 ", "training.precision=bf16 training.state.weights=bf16 "})
    EXPECT_TRUE(
        train_classifier("multi", how + "runtime.threads=1").model ==
        train_classifier("multi", how + "runtime.threads=3 training.micro_batch_size=2 debug.poison=true")
            .model)
        << how;
  const Result whole = train_classifier("single", "runtime.threads=1", "", "gpt2");
  const Result split = train_classifier(
      "single", "runtime.threads=3 training.micro_batch_size=2 debug.poison=true", "", "gpt2");
  EXPECT_EQ(whole.events, split.events);
  EXPECT_TRUE(whole.model == split.model);
}

TEST(ClassificationBits, HoldAcrossAResume) {
  const Folder folder;
  write_data(folder, "single");
  folder.write("run.yaml", classifier());
  const Result whole = train_classifier("single", "");
  ASSERT_EQ(folder.run("train run.yaml training.max_steps=2 output.save_steps=2").exit_code, 0);
  const Result rest = result_of(folder, folder.run("train run.yaml output.save_steps=2 --json"));
  EXPECT_TRUE(rest.model == whole.model);
}

/// Of ids without a tokenizer nothing says which token may fill up a row: config.json keeps its null.
TEST(ClassificationOutput, OfIdsAloneNamesNoPadToken) {
  const Folder folder;
  write_data(folder, "single");
  std::string run = classifier();
  const std::string pad = "pad_token_id: 3";
  run.replace(run.find(pad), pad.size(), "eos_token_id: 2");
  folder.write("run.yaml", run);
  ASSERT_EQ(folder.run("train run.yaml").exit_code, 0);
  const auto config = io::parse_json(folder.read("out/final/config.json"));
  ASSERT_TRUE(config);
  EXPECT_TRUE(config->find("pad_token_id") == nullptr || config->find("pad_token_id")->is_null());
}

TEST(ClassificationOutput, DumpsHeadAndLogitsOfEachSequence) {
  const Folder folder;
  write_data(folder, "single");
  folder.write("run.yaml", classifier());
  const Outcome outcome =
      folder.run("train run.yaml debug.dump_dir=dump \"debug.dump=[loss, gradients, logits, parameters]\"");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Tensors tensors = read_tensors(folder.read("dump/step-000001.safetensors"));
  EXPECT_EQ(tensors.at("logits").shape, (std::vector<int64_t>{8, 3}));
  EXPECT_EQ(tensors.at("grad.score.weight").shape, (std::vector<int64_t>{3, 60}));
  EXPECT_EQ(tensors.at("param.score.weight").shape, (std::vector<int64_t>{3, 60}));
}

TEST(ClassificationOutput, FinalIsAClassifierThatEvaluatesAndPredicts) {
  const Folder folder;
  folder.write("train.jsonl",
               "{\"input_ids\": [1, 2], \"label\": \"pos\"}\n{\"input_ids\": [4], \"label\": \"neg\"}\n");
  folder.write("eval.jsonl", "{\"input_ids\": [4], \"label\": \"neg\"}\n");
  folder.write("run.yaml", classifier());
  const Outcome trained = folder.run("train run.yaml training.global_batch_size=2 --json");
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const std::string config = folder.read("out/final/config.json");
  EXPECT_THAT(config, HasSubstr(R"("architectures": ["LlamaForSequenceClassification"])"));
  EXPECT_THAT(config, HasSubstr(R"("id2label": {"0": "neg", "1": "pos"}, "label2id": {"neg": 0, "pos": 1})"));
  EXPECT_THAT(config, HasSubstr(R"("problem_type": "single_label_classification")"));
  const Outcome evaluated =
      folder.run("eval run.yaml model.path=out/final model.config=null task=auto --json");
  ASSERT_EQ(evaluated.exit_code, 0) << evaluated.err;
  const std::string event = trained.out.substr(trained.out.find("{\"event\": \"eval\""));
  EXPECT_THAT(evaluated.out,
              HasSubstr(event.substr(event.find("\"loss\""), event.find('\n') - event.find("\"loss\""))));
  EXPECT_THAT(event, Not(HasSubstr("perplexity")));
  const Outcome predicted = folder.run("predict --model out/final --data train.jsonl --output lines.jsonl");
  ASSERT_EQ(predicted.exit_code, 0) << predicted.err;
  EXPECT_THAT(folder.run("predict --model out/final --data train.jsonl --memory-budget 900TiB").err,
              HasSubstr("memory.budget is 900.0 TiB, and "));
  const std::string lines = folder.read("lines.jsonl");
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 2);
  EXPECT_THAT(lines, HasSubstr("{\"label\": \"pos\", \"score\": 0."));
  EXPECT_THAT(folder.run("generate --model out/final --prompt x").err, HasSubstr("plimsoll predict"));
}

TEST(ClassificationOutput, ThePlanKnowsTheLabelsBeforeAndAfter) {
  const Folder folder;
  write_data(folder, "regression");
  folder.write("run.yaml", classifier());
  const Outcome before = folder.run("plan run.yaml --json");
  ASSERT_EQ(folder.run("train run.yaml").exit_code, 0);
  const Outcome after = folder.run("plan run.yaml --json"),
                none = folder.run("plan run.yaml data.train=none.jsonl");
  ASSERT_EQ(before.exit_code, 0) << before.err;
  EXPECT_EQ(none.exit_code, 0) << none.err;
  const auto parameters = [](const std::string& out) { return out.substr(out.find("\"parameters\""), 30); };
  EXPECT_EQ(parameters(before.out), parameters(after.out));
}

TEST(ClassificationOutput, ThePeakIsThePlanned) {
  if (sanitized()) GTEST_SKIP();
  for (const std::string problem : {"single", "multi", "regression"}) {
    const Folder folder;
    write_data(folder, problem);
    folder.write("run.yaml", classifier());
    const std::string discrete = "runtime.device=discrete runtime.discrete.check=true";
    const Outcome there = folder.run("train run.yaml --json " + discrete);
    ASSERT_EQ(there.exit_code, 0) << there.err;
    EXPECT_GT(number(there.out, "planned_peak_bytes"), 0);
    EXPECT_EQ(number(there.out, "measured_peak_bytes"), number(there.out, "planned_peak_bytes")) << problem;
    EXPECT_LE(number(there.out, "host_measured_peak_bytes"), number(there.out, "host_planned_peak_bytes"));
    const std::string on_discrete = folder.read("out/final/model.safetensors");
    const Outcome here = folder.run("train run.yaml --json runtime.device=cpu output.dir=here");
    ASSERT_EQ(here.exit_code, 0) << here.err;
    EXPECT_LE(number(here.out, "measured_peak_bytes"), number(here.out, "planned_peak_bytes")) << problem;
    EXPECT_EQ(number(here.out, "allocations_after_first_step"), 0);
    EXPECT_TRUE(folder.read("here/final/model.safetensors") == on_discrete) << problem;
  }
}

struct Wrong {
  const char* train;
  const char* overrides;
  int exit_code;
  const char* message;
};

TEST(ClassificationErrors, SayWhatIsWrongWhere) {
  const std::string two = "{\"input_ids\": [1], \"label\": 0}\n{\"input_ids\": [2], \"label\": 1}\n";
  const Wrong rows[] = {
      {"{\"input_ids\": [1], \"label\": 0}\n{\"input_ids\": [2], \"label\": 5}\n",
       "classification.num_labels=2", 65,
       "label is 5, and there are 2: LABEL_0, LABEL_1: train.jsonl: line 2"},
      {"{\"input_ids\": [1], \"label\": 0}\n{\"input_ids\": [2], \"label\": 2}\n", "", 65,
       "label LABEL_1 (1) has no example: data.train"},
      {"{\"input_ids\": [1], \"label\": 0.5}\n{\"input_ids\": [2], \"label\": \"good\"}\n",
       "classification.problem_type=regression", 65,
       "label is 'good', expected a number: train.jsonl: line 2"},
      {"{\"input_ids\": [1], \"label\": \"a\"}\n{\"input_ids\": [1], \"label\": \"b\"}\n",
       "classification.label_names=[a,c]", 65, "label is 'b', and the labels are a, c: train.jsonl: line 2"},
      {"{\"input_ids\": [1], \"label\": 0.5}\n{\"input_ids\": [2], \"label\": \"good\"}\n", "", 65,
       "label is 'good', expected a number: train.jsonl: line 2"},
      {"{\"input_ids\": [1], \"label\": [0, 1]}\n{\"input_ids\": [2], \"label\": 1}\n", "", 65,
       "label is a single value, the first one a list of 2: train.jsonl: line 2"},
      {two.c_str(), "classification.problem_type=multi_label", 65,
       "label is 0, expected a list of values 0 or 1: train.jsonl: line 1"},
      {"{\"input_ids\": [1], \"label\": [0, 1]}\n", "classification.problem_type=single_label", 65,
       "label is a list, expected a class: train.jsonl: line 1"},
      {"{\"input_ids\": [1], \"label\": true}\n", "", 65, "label is true, expected"},
      {"{\"input_ids\": [1]}\n", "", 65, "the line has no \"label\": train.jsonl: line 1"},
      {"{\"input_ids\": [200], \"label\": 1}\n", "", 65,
       "\"input_ids\" holds 200, expected ids below 200: train.jsonl"},
      {"{\"text\": \"a\", \"label\": 1}\n", "", 65,
       "the line is a text, and there is no tokenizer: train.jsonl: line 1"},
      {two.c_str(), "classification.num_labels=3 classification.label_names=[a,b]", 2,
       "num_labels is 3, and label_names has 2"},
      {two.c_str(), "classification.num_labels=1 classification.problem_type=single_label", 2,
       "one label, which leaves nothing to tell apart"},
      {two.c_str(), "classification.label_names=[a,a]", 2, "classification.label_names has 'a' twice"},
      {two.c_str(), "data.packing=best_fit", 2, "data.packing is best_fit"},
      {two.c_str(), "task=causal_lm classification.num_labels=2", 2, "classification.num_labels"},
      {two.c_str(), "data.eval=eval.txt", 2, "holds no examples with labels: eval.txt"},
  };
  for (const Wrong& row : rows) {
    const Folder folder;
    folder.write("train.jsonl", row.train);
    folder.write("eval.jsonl", two);
    folder.write("eval.txt", "text");
    folder.write("run.yaml", classifier());
    const Outcome outcome = folder.run("train run.yaml " + std::string(row.overrides));
    EXPECT_EQ(outcome.exit_code, row.exit_code) << row.message << ": " << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(row.message));
    EXPECT_THAT(outcome.err, HasSubstr("\nhint: ")) << row.message;
    EXPECT_THAT(outcome.err, Not(HasSubstr("hint: see plimsoll"))) << row.message;
    EXPECT_FALSE(std::filesystem::exists(folder.path("out/final")));
  }
}

TEST(ClassificationErrors, OfPredict) {
  const Folder folder;
  folder.write("x.jsonl", "{\"input_ids\": [1]}\n");
  std::filesystem::create_directory(folder.path("causal"));
  folder.write("causal/config.json", R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama"})");
  const Outcome causal = folder.run("predict --model causal --data x.jsonl");
  EXPECT_EQ(causal.exit_code, 65);
  EXPECT_THAT(causal.err, HasSubstr("a sequence classifier"));
  EXPECT_EQ(folder.run("predict --data x.jsonl").exit_code, 2);
  EXPECT_EQ(folder.run("predict --model absent --data x.jsonl").exit_code, 65);
}

TEST(ClassificationErrors, OfPredictOnceItRuns) {
  const Folder folder;
  write_data(folder, "single");
  folder.write("run.yaml", classifier());
  ASSERT_EQ(folder.run("train run.yaml training.max_steps=1").exit_code, 0);
  const Outcome nowhere = folder.run("predict --model out/final --data eval.jsonl --output none/lines.jsonl");
  EXPECT_EQ(nowhere.exit_code, 74) << nowhere.err;
  EXPECT_THAT(nowhere.err, HasSubstr("none/lines.jsonl"));
  ASSERT_EQ(::mkfifo(folder.path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(folder.run("predict --model out/final --data eval.jsonl --output pipe").exit_code, 74);
  EXPECT_TRUE(std::filesystem::is_fifo(folder.path("pipe")));
  folder.write("bad.jsonl", "{\"input_ids\": [1]}\n{\"txt\": \"a\"}\n");
  const Outcome bad = folder.run("predict --model out/final --data bad.jsonl --output lines.jsonl");
  EXPECT_EQ(bad.exit_code, 65);
  EXPECT_THAT(bad.err, HasSubstr("bad.jsonl: line 2"));
  EXPECT_THAT(bad.err, Not(HasSubstr("--on-error"))) << "predict answers every line";
  EXPECT_FALSE(std::filesystem::exists(folder.path("lines.jsonl")));
  const Outcome absent = folder.run("predict --model out/final --data none.jsonl");
  EXPECT_EQ(absent.exit_code, 65);
  EXPECT_THAT(absent.err, HasSubstr("hint: check the path"));
  // A reader that goes away ends it; no temporary stays.
  folder.write("many.jsonl", examples(3000, "single"));
  std::filesystem::create_directory(folder.path("tmp"));
  (void)folder.run("predict --model out/final --data many.jsonl | head -n 1 >first.txt; true", "TMPDIR=tmp");
  EXPECT_THAT(folder.read("first.txt"), HasSubstr("\"score\""));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path("tmp")));
}

}  // namespace
}  // namespace plimsoll::e2e
