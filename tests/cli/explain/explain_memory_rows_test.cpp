// plan --explain memory: every row's settings, planned by themselves as their user would, give the row's
// figures.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "cli/run_plimsoll.h"
#include "io/file.h"
#include "io/temporary_folder.h"

namespace plimsoll::cli {
namespace {

using testing::HasSubstr;

constexpr const char* kLlama =
    "model: {config: {model_type: llama, vocab_size: 211, hidden_size: 64, intermediate_size: 96, "
    "num_hidden_layers: 2, num_attention_heads: 4, num_key_value_heads: 2, max_position_embeddings: 64, "
    "tie_word_embeddings: true}}\n";
constexpr const char* kClassifier =
    "model: {preset: gpt2, overrides: {n_layer: 1, n_embd: 32, n_head: 2, vocab_size: 97, pad_token_id: 0}}\n"
    "task: sequence_classification\nclassification: {num_labels: 3}\n";

struct RunCase {
  const char* name;
  std::string text;
};

class TechniquesTest : public testing::TestWithParam<RunCase> {
 protected:
  void SetUp() override { ASSERT_TRUE(io::write_file_atomically(run_, GetParam().text)); }

  io::Tree plan(const io::Tree& settings) const {
    std::vector<std::string> words = {"plan", run_, "--json"};
    for (const auto& [path, value] : settings.members) words.push_back(path + "=" + value.text);
    const Outcome outcome = run_plimsoll(words);
    EXPECT_TRUE(outcome.code == 0 || outcome.code == 69) << outcome.err;
    return objects(outcome.out).at(0);
  }

  const io::TemporaryFolder folder_;
  const std::string run_ = folder_.path() + "/run.yaml";
};

TEST_P(TechniquesTest, EveryRowIsThePlanOfItsSettings) {
  const Outcome outcome = run_plimsoll({"plan", run_, "--explain", "memory", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::vector<io::Tree> events = objects(outcome.out);
  ASSERT_GE(events.size(), 3u);
  const int64_t peak = events[0].find("process_peak_bytes")->integer;
  const double seconds = events[0].find("step")->find("seconds_estimated")->number;
  const io::Tree &techniques = events[events.size() - 2], &dimensions = events.back();
  ASSERT_EQ(techniques.find("event")->text, "techniques");
  std::set<std::string> names;
  size_t planned = 0;
  for (const io::Tree& row : techniques.find("rows")->items) {
    const std::string& name = row.find("name")->text;
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_FALSE(row.find("note")->text.empty()) << name;
    const int64_t row_peak = row.find("peak_bytes")->integer;
    EXPECT_EQ(row.find("saved_bytes")->integer, peak - row_peak) << name;
    if (row.find("settings")->members.empty()) {
      EXPECT_EQ(row_peak, peak) << name;
      EXPECT_EQ(row.find("seconds")->number, seconds) << name;
      continue;
    }
    ++planned;
    const io::Tree alone = plan(*row.find("settings"));
    EXPECT_EQ(alone.find("process_peak_bytes")->integer, row_peak) << name;
    EXPECT_EQ(alone.find("step")->find("seconds_estimated")->number, row.find("seconds")->number) << name;
  }
  EXPECT_GT(planned, 15u);
  ASSERT_EQ(dimensions.find("event")->text, "dimensions");
  EXPECT_EQ(dimensions.find("rows")->items.size(), 5u);
  for (const io::Tree& row : dimensions.find("rows")->items) {
    const std::string& name = row.find("name")->text;
    const int64_t row_peak = row.find("peak_bytes")->integer;
    EXPECT_EQ(plan(*row.find("settings")).find("process_peak_bytes")->integer, row_peak) << name;
    EXPECT_EQ(row.find("added_bytes")->integer, row_peak - peak) << name;
    EXPECT_GT(row_peak, peak) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Runs, TechniquesTest,
    testing::Values(
        RunCase{"accumulated", std::string(kLlama) +
                                   "data: {sequence_length: 32, eval: [e.npy], train: [x.npy]}\n"
                                   "training: {global_batch_size: 8, micro_batch_size: 2, max_steps: 2}\n"
                                   "memory: {budget: 1GiB}\nruntime: {threads: 2}\n"},
        RunCase{
            "bf16",
            std::string(kLlama) +
                "data: {sequence_length: 32}\n"
                "training: {per_device_train_batch_size: 4, gradient_accumulation_steps: 2, max_steps: 2, "
                "precision: bf16, optimizer: sgd, momentum: 0.9, freeze: [\"*.0.*\"], state: {weights: bf16, "
                "gradients: bf16}}\n"
                "memory: {budget: 1GiB, recompute: full}\nruntime: {threads: 2}\n"},
        RunCase{"classifier",
                std::string(kClassifier) +
                    "data: {sequence_length: 16}\ntraining: {global_batch_size: 4, max_steps: 2}\n"
                    "memory: {budget: 1GiB}\nruntime: {threads: 2}\n"}),
    [](const auto& run) { return std::string(run.param.name); });

TEST(TechniquesTable, SaysTheSame) {
  const io::TemporaryFolder folder;
  const std::string run = folder.path() + "/run.yaml";
  ASSERT_TRUE(io::write_file_atomically(run, std::string(kClassifier) + "data: {sequence_length: 16}\n"));
  const Outcome outcome = run_plimsoll({"plan", run, "--explain", "memory"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("Techniques, each planned for this run, over a peak of "));
  EXPECT_THAT(outcome.out, HasSubstr("Bit-identical: recompute in backward\n"));
  EXPECT_THAT(outcome.out, HasSubstr("  empty_cache\n      no effect: there is no cache"));
  EXPECT_THAT(outcome.out, HasSubstr(" dominates: one percent more adds "));
}

}  // namespace
}  // namespace plimsoll::cli
