// profile --queues as its user calls it.
#include "cli/profile/profile_queues.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "cli/run_plimsoll.h"
#include "io/file.h"
#include "io/temporary_folder.h"
#include "ir/network_queue.h"

namespace plimsoll::cli {
namespace {

using testing::HasSubstr;

class ProfileQueues : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(io::write_file_atomically(
        run_,
        "model: {preset: gpt2, init: random, overrides: {n_layer: 2, n_embd: 48, vocab_size: 97}}\n"
        "data: {sequence_length: 16}\ntraining: {global_batch_size: 2, max_steps: 9}\nruntime: {threads: "
        "1}\n"));
  }
  Outcome profile(std::vector<std::string> more) const {
    std::vector<std::string> words = {
        "profile", run_, "--queues", "--active", "2", "--output", folder_.path() + "/out"};
    words.insert(words.end(), more.begin(), more.end());
    return run_plimsoll(words);
  }

  io::TemporaryFolder folder_;
  std::string run_ = folder_.path() + "/run.yaml";
};

TEST_F(ProfileQueues, TellsWhatRanBesideKernels) {
  const Outcome outcome = profile(
      {"--json", "runtime.device=discrete", "memory.offload={optimizer: host}", "training.optimizer=adamw"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::vector<io::Tree> events = objects(outcome.out);
  const io::Tree& queues = events.back();
  EXPECT_EQ(queues.find("event")->text, "queues");
  EXPECT_EQ(queues.find("steps")->integer, 2);
  const std::vector<io::Tree>& list = queues.find("queues")->items;
  ASSERT_EQ(list.size(), ir::kNumAllQueues);
  EXPECT_EQ(list[0].find("queue")->text, "compute");
  EXPECT_EQ(list[2].find("queue")->text, "copy_out");
  // A step's stores are the plan's; inputs come in beside its loads.
  const io::Tree* choices = events.front().find("choices");
  EXPECT_GE(list[2].find("bytes")->integer, choices->find("offload_out_bytes")->integer);
  EXPECT_GE(list[1].find("bytes")->integer, choices->find("offload_in_bytes")->integer);
  EXPECT_GT(choices->find("offload_in_bytes")->integer, 0);
  EXPECT_TRUE(std::filesystem::exists(folder_.path() + "/out/queues.json"));
}

TEST_F(ProfileQueues, InWords) {
  const Outcome outcome = profile({"runtime.device=discrete", "memory.offload={optimizer: host}"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("during kernels"));
  EXPECT_THAT(outcome.out, HasSubstr("copy_out"));
}

TEST_F(ProfileQueues, ADeviceWithoutQueuesIsNamed) {
  const Outcome outcome = profile({});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("runtime.device"));
}

}  // namespace
}  // namespace plimsoll::cli
