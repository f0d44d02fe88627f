// A device whose memory the host cannot touch: the CPU's bits, what an error on each of its queues leaves,
// and what is said where it is too small.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "program.h"

namespace plimsoll::e2e {
namespace {

using testing::HasSubstr;
using testing::Not;

/// That of the environment, or one with its checks and an adversary.
std::string discrete() {
  return on_discrete() ? device_overrides()
                       : "runtime.device=discrete runtime.discrete.seed=11 runtime.discrete.check=true";
}

/// Six steps, evaluated and saved in pairs.
void prepare_saved(const Folder& folder) {
  folder.write("train.txt", some_text(20'000));
  folder.write("eval.txt", some_text(700));
  folder.write("run.yaml", run_file("training: {global_batch_size: 4, max_steps: 6, learning_rate: 1.0e-3, "
                                    "lr_scheduler: linear, warmup_steps: 1, eval_steps: 2}\n"));
}

Result train_saved(const std::string& overrides) {
  const Folder folder;
  prepare_saved(folder);
  return result_of(folder, folder.run("train run.yaml --json output.save_steps=2 " + overrides));
}

const Result& saved_on_cpu() {
  static const Result result = train_saved("runtime.device=cpu");
  return result;
}

class OnDiscrete : public testing::TestWithParam<const char*> {};

TEST_P(OnDiscrete, ARunHasTheBitsOfTheCpu) {
  const std::string overrides = GetParam();
  const Result cpu = train_saved("runtime.device=cpu " + overrides),
               other = train_saved(discrete() + " " + overrides);
  ASSERT_GT(cpu.model.size(), 100'000U);
  EXPECT_EQ(std::count(cpu.events.begin(), cpu.events.end(), '\n'), 6 + 3);
  EXPECT_EQ(other.events, cpu.events);
  EXPECT_TRUE(other.model == cpu.model);
}

INSTANTIATE_TEST_SUITE_P(
    Runs, OnDiscrete,
    testing::Values("", "training.micro_batch_size=1 runtime.threads=1", "debug.poison=true",
                    "debug.dump_dir=dump training.gradient_accumulation_steps=2",
                    "training.freeze=model.layers.0.*", "training.optimizer=sgd",
                    "training.precision=fp16 training.loss_scale.growth_interval=2",
                    "training.precision=bf16 training.state.weights=bf16 training.state.gradients=bf16"));

/// The checkpoints in out/, by step; all else there but the run's own files is an error.
std::set<int> checkpoints(const Folder& folder) {
  std::set<int> steps;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path("out"))) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("checkpoint-"))
      steps.insert(std::stoi(name.substr(11)));
    else
      EXPECT_TRUE(name == ".lock" || name == "run.yaml" || name == "plan.json" || name == "events.jsonl" ||
                  name == "environment.json" || name == "trainer_state.json")
          << name << " is left";
  }
  return steps;
}

/// Runs until work `number` of a queue fails, then goes on; the step that it went on from, 0: from the start.
int fail_and_go_on(const std::string& queue, int number) {
  const std::string fault = queue + ":" + std::to_string(number);
  SCOPED_TRACE(fault);
  const Folder folder;
  prepare_saved(folder);
  // With one micro-batch size every instruction set's plan has the same number of works.
  const std::string command =
      "train run.yaml --json output.save_steps=2 training.micro_batch_size=1 " + discrete();
  const Outcome outcome = folder.run(command, "PLIMSOLL_FAULT=" + fault);
  EXPECT_EQ(outcome.exit_code, 74) << outcome.err;
  EXPECT_THAT(outcome.err, testing::ContainsRegex("a fault was injected into work " + std::to_string(number) +
                                                  " of " + queue + ": [a-z_]+"))
      << "with the op";
  const std::set<int> saved = checkpoints(folder);
  const int last = saved.empty() ? 0 : *saved.rbegin();
  const Outcome rest = folder.run(command);
  EXPECT_EQ(rest.exit_code, 0) << rest.err;
  const size_t going_on = rest.err.find("resuming after step ");
  EXPECT_EQ(going_on == rest.err.npos ? 0 : std::stoi(rest.err.substr(going_on + 20)), last);
  EXPECT_THAT(rest.err, Not(HasSubstr("skipped"))) << "what is there is whole";
  EXPECT_TRUE(folder.read("out/final/model.safetensors") == saved_on_cpu().model);
  return last;
}

TEST(Fault, OfComputeKeepsWhatWasSaved) {
  EXPECT_EQ(fail_and_go_on("compute", 1), 0);
  EXPECT_EQ(fail_and_go_on("compute", 100), 0) << "within the first steps";
  fail_and_go_on("compute", 270);
  EXPECT_GT(fail_and_go_on("compute", 1100), 0) << "within the later steps";
}

TEST(Fault, OfCopyOutKeepsWhatWasSaved) {
  EXPECT_EQ(fail_and_go_on("copy_out", 1), 0);
  EXPECT_EQ(fail_and_go_on("copy_out", 50), 0) << "within the first save";
  EXPECT_GT(fail_and_go_on("copy_out", 120), 0) << "within a later one";
}

// What is read into the device goes in order with what computes (docs/architecture.md, pools and queues);
// copy_in is of programs that copy between spaces, which a run has where something is offloaded.
TEST(Fault, OfCopyInHasNothingToMeet) {
  const Folder folder;
  prepare_saved(folder);
  const Outcome outcome = folder.run("train run.yaml --json " + discrete(), "PLIMSOLL_FAULT=copy_in:1");
  EXPECT_TRUE(result_of(folder, outcome).model == saved_on_cpu().model);
}

TEST(Fault, OfEvaluationIsAnErrorToo) {
  const Folder folder;
  prepare_saved(folder);
  ASSERT_EQ(folder.run("train run.yaml --json " + discrete()).exit_code, 0);
  const std::string command = "eval run.yaml --json " + discrete();
  const Outcome whole = folder.run(command);
  EXPECT_EQ(whole.exit_code, 0) << whole.err;
  const Outcome outcome = folder.run(command, "PLIMSOLL_FAULT=compute:20");
  EXPECT_EQ(outcome.exit_code, 74) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("a fault was injected into work 20 of compute"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("perplexity")));
}

TEST(DiscreteMemory, LessThanThePlanIsRefusedWithItsPoolAndTheLeast) {
  const Folder folder;
  prepare_saved(folder);
  const std::string device = discrete() + " training.micro_batch_size=4 runtime.discrete.memory=";
  for (const std::string command : {"plan", "train"}) {
    const Outcome refused = folder.run(command + " run.yaml " + device + "200KiB");
    EXPECT_EQ(refused.exit_code, 69) << command;
    EXPECT_THAT(refused.err, HasSubstr("of device memory and the budget is 200.0 KiB")) << command;
    EXPECT_THAT(refused.err, HasSubstr(": runtime.discrete.memory\n")) << command;
    EXPECT_THAT(refused.out, HasSubstr("Does NOT fit: needs ")) << command;
    EXPECT_FALSE(std::filesystem::exists(folder.path("out/final")));
    const size_t at = refused.err.rfind('(');
    ASSERT_NE(at, std::string::npos) << refused.err;
    const int64_t least = std::strtoll(refused.err.c_str() + at + 1, nullptr, 10);
    EXPECT_EQ(folder.run(command + " run.yaml " + device + std::to_string(least - 1)).exit_code, 69);
    const Outcome fits = folder.run(command + " run.yaml " + device + std::to_string(least));
    EXPECT_EQ(fits.exit_code, 0) << fits.err;
  }
  EXPECT_TRUE(std::filesystem::exists(folder.path("out/final")));
}

TEST(DiscreteMemory, BoundsTheMicroBatch) {
  const Folder folder;
  prepare_saved(folder);
  const Outcome outcome = folder.run("train run.yaml --json runtime.threads=1 " + discrete() +
                                     " output.save_steps=2 runtime.discrete.memory=3MiB");
  EXPECT_TRUE(result_of(folder, outcome).model == saved_on_cpu().model) << outcome.err;
  // Not at once as without the bound: in smaller parts, or with what they keep elsewhere.
  EXPECT_THAT(outcome.out, testing::Not(HasSubstr("\"micro_batch_size\": 4,")));
}

}  // namespace
}  // namespace plimsoll::e2e
