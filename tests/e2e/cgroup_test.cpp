// Runs within a control group that has less memory than the machine: planned below its limit, and never
// killed. For real, where this process may make groups: as root, on version 1 or 2.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "program.h"
#include "sanitizer.h"

namespace plimsoll::e2e {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kLimit = 160'000'000;

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A group with a limit and one without below it, which the runs are in. Empty where that is not permitted.
class Group {
 public:
  Group() {
    const std::string name = "/plimsoll-e2e-" + std::to_string(getpid());
    const bool v1 = fs::exists("/sys/fs/cgroup/memory/memory.limit_in_bytes");
    outer_ = (v1 ? "/sys/fs/cgroup/memory" : "/sys/fs/cgroup") + name;
    limit_file_ = outer_ + (v1 ? "/memory.limit_in_bytes" : "/memory.max");
    std::error_code code;
    if (!fs::create_directory(outer_, code) || code) {
      outer_.clear();
      return;
    }
    std::ofstream(limit_file_) << kLimit;
    if (!v1) std::ofstream(outer_ + "/cgroup.subtree_control") << "+memory";
    fs::create_directory(outer_ + "/inner", code);
    const bool is_limited = std::strtoll(text_of(limit_file_).c_str(), nullptr, 10) > 0;
    const std::string probe = "exec 2>/dev/null; " + enter() + "grep -q " + name + " /proc/self/cgroup";
    if (!is_limited || std::system(probe.c_str()) != 0) remove();
  }
  ~Group() { remove(); }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  [[nodiscard]] bool made() const { return !outer_.empty(); }
  [[nodiscard]] const std::string& limit_file() const { return limit_file_; }
  /// For Folder::run: its shell, and so what it starts, moves into the inner group.
  [[nodiscard]] std::string enter() const { return "echo $$ > " + outer_ + "/inner/cgroup.procs && "; }

 private:
  void remove() {
    if (outer_.empty()) return;
    std::error_code ignored;  // rmdir, and not remove_all: the files are the kernel's
    fs::remove(outer_ + "/inner", ignored);
    fs::remove(outer_, ignored);
    outer_.clear();
  }
  std::string outer_, limit_file_;
};

class CgroupTest : public testing::Test {
 protected:
  void SetUp() override {
    if (kSanitizer) GTEST_SKIP() << "under a sanitizer memory is not what a plan says";
    if (!group_.made()) GTEST_SKIP() << "no control group with a limit can be made here";
    folder_.write("train.txt", some_text(60'000));
    folder_.write("eval.txt", some_text(2'000));
    folder_.write("run.yaml",
                  "model:\n  config: {model_type: llama, vocab_size: 1000, hidden_size: 256, "
                  "intermediate_size: 700, num_hidden_layers: 6,\n"
                  "    num_attention_heads: 4, num_key_value_heads: 2, max_position_embeddings: 512, "
                  "rms_norm_eps: 1.0e-5}\n  init: random\n"
                  "data: {train: train.txt, eval: eval.txt, sequence_length: 256}\n"
                  "output: {dir: out, save_steps: 1}\n"
                  "training: {global_batch_size: 16, max_steps: 2, learning_rate: 1.0e-3, lr_scheduler: "
                  "constant, eval_steps: 2}\n");
  }
  [[nodiscard]] Outcome run(const std::string& arguments) const {
    return folder_.run(arguments, group_.enter());
  }
  Group group_;
  Folder folder_;
};

TEST_F(CgroupTest, AutoPlansBelowTheGroupsLimitAndTrainsToTheEnd) {
  const Outcome outcome = run("train run.yaml --json memory.budget=auto");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_LE(number(outcome.out, "budget_bytes"), kLimit);
  EXPECT_GE(number(outcome.out, "budget_bytes"), kLimit / 2) << "the reserve leaves most of it";
  EXPECT_LE(number(outcome.out, "measured_peak_bytes"), number(outcome.out, "planned_peak_bytes"));
  EXPECT_TRUE(fs::exists(folder_.path("out/final/model.safetensors")));
}

TEST_F(CgroupTest, AShareIsOfTheLimitAndMoreIsWarnedOf) {
  const Outcome share = run("plan run.yaml --json memory.budget=80%");
  EXPECT_LE(number(share.out, "budget_bytes"), kLimit * 8 / 10);
  EXPECT_GE(number(share.out, "budget_bytes"), kLimit * 8 / 10 - 4096) << "limits are whole pages";
  EXPECT_THAT(share.err, testing::Not(testing::HasSubstr("allows")));
  const Outcome more = run("plan run.yaml memory.budget=1GiB");
  EXPECT_THAT(more.err, testing::HasSubstr("memory.budget is 1.00 GiB, and " + group_.limit_file()));
}

TEST_F(CgroupTest, ABudgetAboveTheGroupsEndsInWhatFits) {
  const Outcome outcome =
      run("train run.yaml --json memory.budget=1GiB training.micro_batch_size=16 memory.recompute=none");
  EXPECT_EQ(outcome.exit_code, 69) << outcome.err;
  EXPECT_THAT(outcome.err, testing::HasSubstr("are left now: " + group_.limit_file()));
  EXPECT_THAT(outcome.err, testing::HasSubstr("free memory, or set memory.budget="));
}

TEST_F(CgroupTest, DoctorNamesTheFileThatRules) {
  const Outcome outcome = run("doctor --json");
  EXPECT_THAT(outcome.out, testing::HasSubstr("\"limited_by\": \"" + group_.limit_file() + "\""));
  EXPECT_LE(number(outcome.out, "limit_bytes"), kLimit);
  EXPECT_LE(number(outcome.out, "available_bytes"), kLimit);
}

TEST_F(CgroupTest, FilesThatWereReadAreNoUsage) {
  folder_.write("large.bin", std::string(120'000'000, 'x'));
  const Outcome outcome = folder_.run("plan run.yaml --json memory.budget=auto",
                                      group_.enter() + "cat large.bin large.bin > /dev/null && ");
  EXPECT_GE(number(outcome.out, "budget_bytes"), kLimit / 2) << outcome.err;
}

}  // namespace
}  // namespace plimsoll::e2e
