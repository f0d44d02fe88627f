// What lies elsewhere: the bits of the plain run, planned bytes, and what is said where the disk is too small
// or fails.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "program.h"

namespace plimsoll::e2e::offloaded {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kAllOnDisk =
    "'memory.offload={activations: disk, optimizer: disk, gradients: disk, parameters: disk}'";
constexpr const char* kDiscrete =
    "runtime.device=discrete runtime.discrete.seed=5 runtime.discrete.check=true ";

constexpr const char* kHostUpdates = "memory.update_on_host=true 'memory.offload={optimizer: host}'";

void prepare(const Folder& folder) {
  folder.write("train.txt", some_text(20'000));
  folder.write("eval.txt", some_text(700));
  folder.write("run.yaml", run_file("training: {global_batch_size: 4, max_steps: 6, learning_rate: 1.0e-3, "
                                    "eval_steps: 2}\n"));
}

Outcome train(const Folder& folder, const std::string& overrides, const std::string& environment = "") {
  return folder.run("train run.yaml --json output.save_steps=2 " + overrides, environment);
}

struct Trained {
  std::string events, model;
};

const Trained& plain() {
  static const Trained result = [] {
    const Folder folder;
    prepare(folder);
    const Outcome outcome = train(folder, "runtime.device=cpu");
    return Trained{events_of(outcome.out), folder.read("out/final/model.safetensors")};
  }();
  return result;
}

class Elsewhere : public testing::TestWithParam<std::string> {};

TEST_P(Elsewhere, KeepsEveryBitAndAllocatesNothing) {
  const Folder folder;
  prepare(folder);
  const Outcome outcome = train(folder, GetParam());
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(events_of(outcome.out), plain().events);
  EXPECT_TRUE(folder.read("out/final/model.safetensors") == plain().model);
  if (sanitized()) return;
  // A step that runs twice asks the queues of this device for more work at once than the first step did.
  const bool runs_twice = std::string(GetParam()).find("verify_steps") != std::string::npos;
  EXPECT_LE(number(outcome.out, "allocations_after_first_step"), runs_twice ? 1 : 0);
  EXPECT_LE(number(outcome.out, "measured_peak_bytes"), number(outcome.out, "planned_peak_bytes"));
}

INSTANTIATE_TEST_SUITE_P(
    Runs, Elsewhere,
    testing::Values(std::string("runtime.device=cpu ") + kAllOnDisk,
                    std::string("runtime.device=cpu training.micro_batch_size=1 memory.recompute=full ") +
                        kAllOnDisk,
                    std::string(kDiscrete) + kAllOnDisk + " training.micro_batch_size=2",
                    std::string(kDiscrete) + "'memory.offload={activations: host, optimizer: host}'",
                    std::string(kDiscrete) + kHostUpdates + " training.micro_batch_size=2",
                    std::string(kDiscrete) + kHostUpdates + " debug.verify_steps=2",
                    std::string(kDiscrete) + "memory.update_on_host=true 'memory.offload={optimizer: host, "
                                             "gradients: host, parameters: host, activations: disk}'"));

/// A table of three windows, and little beside it.
void prepare_large_table(const Folder& folder) {
  folder.write("train.txt", some_text(2000));
  std::string file = run_file("training: {global_batch_size: 2, max_steps: 2, learning_rate: 1.0e-3}\n");
  const auto replace = [&](std::string_view from, std::string_view to) {
    file.replace(file.find(from), from.size(), to);
  };
  replace("vocab_size: 259", "vocab_size: 40000");
  replace("num_hidden_layers: 2", "num_hidden_layers: 1");
  replace(", eval: eval.txt, sequence_length: 300", ", sequence_length: 16");
  folder.write("run.yaml", file);
}

class Windows : public testing::TestWithParam<std::string> {};

TEST_P(Windows, HaveTheBitsOfTheWholeUpdate) {
  const std::string what = "train run.yaml --json output.save_steps=100 " + GetParam();
  const Folder folder;
  prepare_large_table(folder);
  const e2e::Result whole = result_of(folder, folder.run(what + " runtime.device=cpu memory.offload=none"));
  const std::string on_host =
      "'memory.offload={optimizer: host, masters: host, gradients: host}' memory.update_on_host=true";
  for (const auto& [device, offload] : std::vector<std::pair<std::string, std::string>>{
           {"runtime.device=cpu", kAllOnDisk},
           {"runtime.device=discrete runtime.discrete.seed=3", kAllOnDisk},
           {"runtime.device=discrete runtime.discrete.seed=4 runtime.discrete.check=true", kAllOnDisk},
           {"runtime.device=discrete runtime.discrete.seed=5 runtime.discrete.check=true", on_host}}) {
    const std::string command = what + " --resume=never " + device + " " + offload;
    const e2e::Result windows = result_of(folder, folder.run(command + " --dump-ir ir"));
    EXPECT_EQ(windows.events, whole.events) << device;
    EXPECT_TRUE(windows.model == whole.model) << device;
    const std::filesystem::path dumps = folder.path("ir");
    std::string programs;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(dumps))
      if (entry.path().string().ends_with("-update-windows.ir"))
        programs += folder.read(std::filesystem::relative(entry.path(), folder.path()).string());
    EXPECT_THAT(programs, HasSubstr("first=2097152")) << device;
    std::filesystem::remove_all(dumps);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Runs, Windows,
    testing::ValuesIn(part_of<std::string>(
        {"training.optimizer=adamw", "training.optimizer=lion training.micro_batch_size=1",
         "training.optimizer=sgd training.momentum=0.9", "training.optimizer=adamw_8bit",
         "training.optimizer=adamw training.precision=bf16 training.state.weights=bf16 "
         "training.state.moments=bf16",
         "training.optimizer=adam training.precision=bf16",
         "training.optimizer=adamw training.max_grad_norm=0 memory.optimizer_in_backward=true"},
        2)));

TEST(OffloadPlan, SaysWhatIsMovedAndWhere) {
  const Folder folder;
  prepare(folder);
  const Outcome outcome = folder.run(
      "plan run.yaml --json runtime.device=discrete 'memory.offload={optimizer: disk, activations: host}'");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("\"offload\": \"activations host, optimizer disk\""));
  EXPECT_GT(number(outcome.out, "offload_out_bytes"), 0);
  EXPECT_GE(number(outcome.out, "offload_in_bytes"), number(outcome.out, "offload_out_bytes"));
}

TEST(OffloadPlan, TheHostUpdatesWhereThatIsQuickerThanToMoveTheStates) {
  const Folder folder;
  prepare(folder);
  const auto updates = [&](const std::string& how) {
    const Outcome outcome = folder.run(
        "plan run.yaml --json runtime.profile=built-in runtime.device=discrete training.micro_batch_size=4 "
        "'memory.offload={optimizer: host}' " +
        how);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    const bool on = outcome.out.find("\"update_on_host\": true") != std::string::npos;
    EXPECT_NE(on, outcome.out.find("\"update_on_host\": false") != std::string::npos);
    return on;
  };
  const std::string slow = "runtime.discrete.copy_bandwidth=20MB/s ";
  EXPECT_TRUE(updates(slow));
  EXPECT_FALSE(updates(slow + "memory.update_on_host=false"));
  EXPECT_FALSE(updates("runtime.discrete.copy_bandwidth=900GB/s"));
  EXPECT_TRUE(updates("runtime.discrete.copy_bandwidth=900GB/s memory.update_on_host=true"));
  EXPECT_FALSE(updates("memory.update_on_host=true 'memory.offload={activations: host}'"));
}

TEST(OffloadPlan, HostIsNothingOnTheCpuInOneLine) {
  const Folder folder;
  prepare(folder);
  const Outcome outcome =
      folder.run("plan run.yaml --json runtime.device=cpu 'memory.offload={activations: host}'");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.err, HasSubstr("memory.offload: host has no effect"));
  EXPECT_THAT(outcome.out, HasSubstr("\"offload\": \"none\""));
}

TEST(Disk, BudgetThatIsTooSmallIsRefusedWithTheLeast) {
  const Folder folder;
  prepare(folder);
  const std::string command =
      std::string("train run.yaml --json runtime.device=cpu ") + kAllOnDisk + " memory.disk_budget=";
  const Outcome refused = folder.run(command + "8KiB");
  ASSERT_EQ(refused.exit_code, 69) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr("of disk and the budget is 8.00 KiB"));
  const size_t at = refused.err.rfind('(');
  ASSERT_NE(at, std::string::npos);
  const int64_t least = std::strtoll(refused.err.c_str() + at + 1, nullptr, 10);
  EXPECT_EQ(folder.run(command + std::to_string(least - 1)).exit_code, 69);
  EXPECT_EQ(folder.run(command + std::to_string(least)).exit_code, 0);
}

TEST(Disk, FailureInTheMiddleEndsTheRunAndKeepsTheCheckpoint) {
  for (const char* on : {"runtime.device=cpu ", kDiscrete})
    for (const std::string fault : {"copy_in:400", "copy_out:270"}) {
      const std::string device = on;
      const Folder folder;
      prepare(folder);
      const Outcome outcome = train(folder, device + kAllOnDisk, "PLIMSOLL_FAULT=" + fault);
      EXPECT_EQ(outcome.exit_code, 74) << device << fault << outcome.err;
      EXPECT_THAT(outcome.err, HasSubstr("a fault was injected"));
      EXPECT_TRUE(std::filesystem::exists(folder.path("out/checkpoint-2/checkpoint.json")))
          << device << fault;
      const Outcome rest = train(folder, device + kAllOnDisk);
      EXPECT_EQ(rest.exit_code, 0) << rest.err;
      EXPECT_THAT(rest.err, HasSubstr("resuming after step "));
      EXPECT_TRUE(folder.read("out/final/model.safetensors") == plain().model) << device << fault;
    }
}

TEST(Host, AFailureOfItsKernelsEndsTheRunAndKeepsTheCheckpoint) {
  const Folder folder;
  prepare(folder);
  const std::string how = std::string(kDiscrete) + kHostUpdates;
  const Outcome outcome = train(folder, how, "PLIMSOLL_FAULT=host:45");
  EXPECT_EQ(outcome.exit_code, 74) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("a fault was injected into work 45 of host"));
  EXPECT_TRUE(std::filesystem::exists(folder.path("out/checkpoint-2/checkpoint.json")));
  const Outcome rest = train(folder, how);
  EXPECT_EQ(rest.exit_code, 0) << rest.err;
  EXPECT_TRUE(folder.read("out/final/model.safetensors") == plain().model);
}

TEST(Auto, OffloadsWhereNothingElseFits) {
  const Folder folder;
  prepare(folder);
  const std::string command = "train run.yaml --json runtime.device=discrete runtime.discrete.memory=";
  const auto least = [&](const std::string& more) {
    const Outcome refused = folder.run(command + "100KiB " + more);
    EXPECT_EQ(refused.exit_code, 69) << refused.err;
    const size_t at = refused.err.rfind('(');
    return std::strtoll(refused.err.c_str() + at + 1, nullptr, 10);
  };
  const int64_t with = least(""), without = least("memory.offload=none");
  EXPECT_LT(with, without);
  const Outcome some = folder.run(command + std::to_string(without - 1));
  EXPECT_EQ(some.exit_code, 0) << some.err;
  EXPECT_THAT(some.out, Not(HasSubstr("\"offload\": \"none\"")));
  EXPECT_TRUE(folder.read("out/final/model.safetensors") == plain().model);
  EXPECT_EQ(folder.run(command + std::to_string(with) + " output.dir=other").exit_code, 0);
  EXPECT_EQ(folder.run(command + std::to_string(with - 1) + " output.dir=third").exit_code, 69);
}

}  // namespace
}  // namespace plimsoll::e2e::offloaded
