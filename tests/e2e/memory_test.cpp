// The plan against the kernel's own count.
#include <gtest/gtest.h>

#include <algorithm>

#include "program.h"

namespace plimsoll::e2e {
namespace {

Outcome train_large(const Folder& folder, const std::string& overrides) {
  folder.write("train.txt", some_text(60'000));
  folder.write("eval.txt", some_text(2'000));
  folder.write("run.yaml",
               "model:\n  config: {model_type: llama, vocab_size: 1000, hidden_size: 256, intermediate_size: "
               "700, num_hidden_layers: 6,\n"
               "    num_attention_heads: 4, num_key_value_heads: 2, max_position_embeddings: 512, "
               "rms_norm_eps: 1.0e-5}\n  init: random\n"
               "data: {train: train.txt, eval: eval.txt, sequence_length: 256}\noutput: {dir: out}\n"
               "training: {global_batch_size: 8, max_steps: 2, learning_rate: 1.0e-3, lr_scheduler: "
               "constant, eval_steps: 2}\n");
  return folder.run("train run.yaml --json --resume never " + overrides);
}

class PlannedPeak : public testing::TestWithParam<const char*> {};

TEST_P(PlannedPeak, IsNeverBelowTheMeasuredOneAndClose) {
  if (sanitized()) GTEST_SKIP();
  Folder folder;
  const Outcome outcome = train_large(folder, std::string("training.max_steps=3 ") + GetParam());
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const int64_t planned = number(outcome.out, "planned_peak_bytes"),
                measured = number(outcome.out, "measured_peak_bytes");
  EXPECT_LE(measured, planned);
  EXPECT_LE(planned - measured, std::max<int64_t>(32 << 20, measured * 3 / 100));
  EXPECT_GT(number(outcome.out, "arena_bytes"), 0);
  EXPECT_EQ(outcome.out.find("touched"), std::string::npos) << "nothing measures it";
  EXPECT_EQ(number(outcome.out, "allocations_after_first_step"), 0);
  // A step asks the heap for nothing at all; files that are written beside it do.
  const std::string settings = GetParam();
  const bool writes =
      settings.find("dump_dir") != settings.npos || settings.find("save_steps") != settings.npos;
  if (!writes) {
    EXPECT_EQ(number(outcome.out, "small_allocations_per_step"), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Runs, PlannedPeak,
                         testing::ValuesIn(part_of<const char*>(
                             {"runtime.threads=1", "runtime.threads=2", "training.micro_batch_size=2",
                              "debug.dump_dir=dump", "memory.recompute=full", "memory.recompute=segments",
                              "memory.recompute=mlp training.micro_batch_size=2",
                              "memory.recompute=full training.max_grad_norm=0 "
                              "memory.optimizer_in_backward=true output.save_steps=2",
                              "training.precision=bf16 training.state.weights=bf16 "
                              "training.state.gradients=bf16 output.save_steps=2",
                              "training.precision=bf16 training.state.weights=bf16 "
                              "training.state.gradients=bf16 training.state.moments=bf16 "
                              "training.state.master_weights=false"},
                             2)));

TEST(BudgetTest, TheLeastThatIsNamedWouldDo) {
  if (sanitized()) GTEST_SKIP();
  Folder folder;
  const Outcome refused = train_large(folder, "memory.budget=20MiB training.micro_batch_size=8");
  EXPECT_EQ(refused.exit_code, 69);
  const size_t at = refused.err.find('(');
  ASSERT_NE(at, std::string::npos) << refused.err;
  const std::string least = std::to_string(std::strtoll(refused.err.c_str() + at + 1, nullptr, 10));
  EXPECT_EQ(train_large(folder, "training.micro_batch_size=8 memory.budget=" + least).exit_code, 0);
  const std::string less = std::to_string(std::strtoll(refused.err.c_str() + at + 1, nullptr, 10) - 1);
  EXPECT_EQ(train_large(folder, "training.micro_batch_size=8 memory.budget=" + less).exit_code, 69);
}

/// From the least budget that is named to one that is enough: nothing is exceeded, the bits stay, and what
/// is computed again falls.
TEST(BudgetTest, IsMetByComputingAgain) {
  if (sanitized()) GTEST_SKIP();
  Folder folder;
  const std::string whole =
      "training.micro_batch_size=8 training.eval_strategy=no "
      "memory.offload=none ";
  const Outcome plain = train_large(folder, whole + "memory.budget=4GiB");
  ASSERT_EQ(plain.exit_code, 0) << plain.err;
  const int64_t most = number(plain.out, "process_peak_bytes");
  const Outcome refused = train_large(folder, whole + "memory.budget=20MiB");
  ASSERT_EQ(refused.exit_code, 69);
  const int64_t least = std::strtoll(refused.err.c_str() + refused.err.find('(') + 1, nullptr, 10);
  EXPECT_LT(least, most - (int64_t{8} << 20));
  double last = 1e30;
  for (int i = 0; i <= 2; ++i) {
    const int64_t budget = least + (most - least) * i / 2;
    const Outcome run = train_large(folder, whole + "memory.budget=" + std::to_string(budget));
    ASSERT_EQ(run.exit_code, 0) << budget << run.err;
    EXPECT_LE(number(run.out, "measured_peak_bytes"), budget);
    EXPECT_LE(number(run.out, "planned_peak_bytes"), budget);
    EXPECT_EQ(number(run.out, "allocations_after_first_step"), 0);
    EXPECT_EQ(events_of(run.out), events_of(plain.out)) << budget;
    const auto again = static_cast<double>(number(run.out, "recompute_flops"));
    EXPECT_LE(again, last) << budget;
    last = again;
  }
  EXPECT_EQ(last, static_cast<double>(number(plain.out, "recompute_flops")));
}

/// What auto has chosen, given by hand, is the same plan.
TEST(BudgetTest, ComputesAgainWhatItSays) {
  if (sanitized()) GTEST_SKIP();
  Folder folder;
  folder.write(
      "run.yaml",
      "model: {preset: smollm-135m, init: random, overrides: {num_hidden_layers: 6}}\n"
      "data: {train: x.txt, sequence_length: 512, tokenizer: bytes}\n"
      "training: {global_batch_size: 4, micro_batch_size: 4, max_steps: 3}\nmemory: {budget: 1000MiB}\n");
  const Outcome chosen = folder.run("plan run.yaml --json");
  ASSERT_EQ(chosen.exit_code, 0) << chosen.err << chosen.out;
  const size_t at = chosen.out.find("\"recompute_set\": [") + 17;
  const std::string layers = chosen.out.substr(at, chosen.out.find(']', at) + 1 - at);
  ASSERT_GT(layers.size(), 10U) << chosen.out;
  const Outcome given = folder.run("plan run.yaml --json 'memory.recompute={layers: " + layers + "}'");
  ASSERT_EQ(given.exit_code, 0) << given.err;
  for (const char* key : {"process_peak_bytes", "recompute_flops", "arena_bytes"})
    EXPECT_EQ(number(given.out, key), number(chosen.out, key)) << key;
}

/// auto: where the plan does not fit otherwise; true: whatever else is chosen beside it.
TEST(BudgetTest, PutsTheOptimizerInBackwardWhereItIsNeeded) {
  if (sanitized()) GTEST_SKIP();
  Folder folder;
  folder.write("run.yaml",
               "model: {preset: smollm-135m, init: random, overrides: {num_hidden_layers: 6}}\n"
               "data: {train: x.txt, sequence_length: 512, tokenizer: bytes}\n"
               "training: {global_batch_size: 4, micro_batch_size: 4, max_steps: 3, max_grad_norm: 0}\n");
  for (const auto& [how, is_in] : {std::pair("auto memory.budget=4GiB", false),
                                   {"auto memory.budget=850MiB", true},
                                   {"true memory.budget=4GiB", true},
                                   {"true memory.budget=1050MiB", true},
                                   {"false memory.budget=1050MiB", false}}) {
    const Outcome plan = folder.run("plan run.yaml --json memory.optimizer_in_backward=" + std::string(how));
    ASSERT_EQ(plan.exit_code, 0) << how << plan.err;
    const std::string choices = plan.out.substr(plan.out.find("\"choices\""));
    EXPECT_TRUE(choices.find(is_in ? "\"optimizer_in_backward\": true" : "\"optimizer_in_backward\": false") <
                choices.find("\"why\""))
        << how << plan.out;
  }
}

TEST(BudgetTest, AutoTakesTheLargestMicroBatchThatFits) {
  if (sanitized()) GTEST_SKIP();
  Folder folder;
  const Outcome wide = train_large(folder, "memory.budget=4GiB");
  ASSERT_EQ(wide.exit_code, 0) << wide.err;
  EXPECT_EQ(number(wide.out, "micro_batch_size"), 8);
  const int64_t peak = number(wide.out, "planned_peak_bytes");
  const Outcome narrow = train_large(folder, "memory.budget=" + std::to_string(peak - (20 << 20)));
  ASSERT_EQ(narrow.exit_code, 0) << narrow.err;
  EXPECT_LT(number(narrow.out, "micro_batch_size"), 8);
  EXPECT_TRUE(folder.read("out/final/config.json").size() > 2);
}

}  // namespace
}  // namespace plimsoll::e2e
