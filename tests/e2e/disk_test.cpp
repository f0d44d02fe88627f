// Runs on a small disk of their own, where this process may mount one: refused before step 1, or through to
// the end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>

#include <filesystem>
#include <string>

#include "program.h"

namespace plimsoll::e2e {
namespace {

namespace fs = std::filesystem;

int64_t bytes_of(const std::string& folder) {
  int64_t bytes = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) bytes += static_cast<int64_t>(entry.file_size());
  return bytes;
}

/// A file system in memory with so many bytes.
class SmallDisk {
 public:
  SmallDisk(const Folder& folder, int64_t bytes) : path_(folder.path("disk")) {
    fs::create_directories(path_);
    mounted_ = ::mount("tmpfs", path_.c_str(), "tmpfs", 0, ("size=" + std::to_string(bytes)).c_str()) == 0;
  }
  ~SmallDisk() {
    if (mounted_) ::umount(path_.c_str());
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  [[nodiscard]] bool mounted() const { return mounted_; }

 private:
  std::string path_;
  bool mounted_ = false;
};

constexpr const char* kRun = "train run.yaml --json output.save_steps=1 ";

TEST(SmallDiskTest, IsRefusedBeforeStepOneOrSuffices) {
  const Folder folder;
  folder.write("train.txt", some_text(20'000));
  folder.write("eval.txt", some_text(1'000));
  folder.write("run.yaml", run_file("training: {global_batch_size: 2, max_steps: 5}\n"));
  const Outcome free = folder.run(std::string(kRun) + "output.save_total_limit=2");
  ASSERT_EQ(free.exit_code, 0) << free.err;
  const int64_t checkpoint = bytes_of(folder.path("out/checkpoint-5"));
  // Blocks of small files; trainer_state.json, which grows with the run, is not in the plan.
  EXPECT_NEAR(static_cast<double>(number(free.out, "checkpoint_bytes")), static_cast<double>(checkpoint),
              24'576);
  EXPECT_EQ(number(free.out, "checkpoints"), 3);

  for (const auto& [limit, room] : {std::pair(2, 3 * checkpoint), std::pair(1, 2 * checkpoint)}) {
    const std::string run = kRun + ("output.dir=disk/out output.save_total_limit=" + std::to_string(limit));
    {
      const SmallDisk disk(folder, room + (2 << 20));
      if (!disk.mounted()) GTEST_SKIP() << "no file system can be mounted here";
      const Outcome through = folder.run(run);
      EXPECT_EQ(through.exit_code, 0) << through.err;
      EXPECT_TRUE(fs::exists(folder.path("disk/out/final/model.safetensors")));
    }
    const SmallDisk disk(folder, room - checkpoint / 2);
    const Outcome refused = folder.run(run);
    EXPECT_EQ(refused.exit_code, 74) << refused.err;
    EXPECT_THAT(refused.err, testing::HasSubstr(" are needed ("));
    EXPECT_THAT(refused.err, testing::HasSubstr(std::to_string(limit + 1) + " checkpoints of "));
    EXPECT_THAT(refused.out, testing::Not(testing::HasSubstr("\"event\": \"step\"")));
    EXPECT_FALSE(fs::exists(folder.path("disk/out"))) << "before anything was tokenized or packed";
  }
  // Without a limit all are counted, and the hint says which would do.
  const SmallDisk disk(folder, 4 * checkpoint + (1 << 20));
  const Outcome all = folder.run(std::string(kRun) + "output.dir=disk/out");
  EXPECT_EQ(all.exit_code, 74);
  EXPECT_THAT(all.err, testing::HasSubstr("output.save_total_limit=2 fits"));
}

}  // namespace
}  // namespace plimsoll::e2e
