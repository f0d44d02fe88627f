#include "reports/follow.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>

#include "io/file.h"

namespace plimsoll::reports {
namespace {

using testing::ElementsAre;

class Follow : public testing::Test {
 protected:
  Follow() {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void append(std::string_view text) const {
    std::ofstream(folder_ + "/events.jsonl", std::ios::app) << text;
  }
  void process(int64_t number) const {
    std::array<char, 256> host{};
    ::gethostname(host.data(), host.size() - 1);
    ASSERT_TRUE(io::write_file_atomically(
        folder_ + "/environment.json",
        fmt::format(R"({{"host": "{}", "process": {}, "total_steps": 9}})", host.data(), number)));
  }
  const std::string folder_ = testing::TempDir() + "follow";
};

TEST_F(Follow, TakesWhatIsAppended) {
  process(::getpid());
  append(
      "{\"event\": \"plan\", \"device\": {\"budget_bytes\": 100}}\n{\"event\": \"step\", \"step\": 1, \"lo");
  auto run = RunFollower::open(folder_);
  ASSERT_TRUE(run);
  ASSERT_TRUE(run->look());
  EXPECT_FALSE(run->last());
  EXPECT_EQ(run->state(), RunState::kRuns);
  EXPECT_GT(run->resident_bytes(), 0);
  EXPECT_EQ(run->budget_bytes(), 100);
  append("ss\": 2.5}\n{\"event\": \"checkpoint\", \"step\": 1, \"path\": \"a\\u001bb\"}\n");
  ASSERT_TRUE(run->look());
  EXPECT_EQ((*run->last())[Figure::kLoss], 2.5);
  EXPECT_EQ(run->total_steps(), 9);
  EXPECT_THAT(run->take_messages(), ElementsAre("saved a\\x1bb at step 1"));
  append("{\"event\": \"summary\", \"seconds\": 3}\n");
  ASSERT_TRUE(run->look());
  EXPECT_EQ(run->state(), RunState::kEnded);
}

TEST_F(Follow, AProcessThatIsGoneIsNoEnd) {
  process((int64_t{1} << 30) - 1);
  append("{\"event\": \"step\", \"step\": 1, \"loss\": 2}\n");
  auto run = RunFollower::open(folder_);
  ASSERT_TRUE(run && run->look());
  EXPECT_EQ(run->state(), RunState::kGone);
  EXPECT_EQ(run->last()->step, 1);
}

/// Of a process on another machine, or one that nothing is known of: a line that stays torn is its last.
TEST_F(Follow, ALineThatStaysTornIsTheEndOfItsProcess) {
  const std::string step = "{\"event\": \"step\", \"step\": 1, \"loss\": 2}\n";
  const auto age = [&] {
    const std::string path = folder_ + "/events.jsonl";
    std::filesystem::last_write_time(path, std::filesystem::last_write_time(path) - std::chrono::seconds(60));
  };
  append(step + "{\"event\": \"st");
  auto run = RunFollower::open(folder_);
  ASSERT_TRUE(run && run->look());
  EXPECT_EQ(run->state(), RunState::kRuns);  // it may be being written
  age();
  ASSERT_TRUE(run->look());
  EXPECT_EQ(run->state(), RunState::kGone);
  EXPECT_EQ(run->last()->step, 1);

  std::filesystem::remove(folder_ + "/events.jsonl");
  append(step + "{\"event\": \"summary\", \"seconds\": 3}");
  age();
  auto ended = RunFollower::open(folder_);
  ASSERT_TRUE(ended && ended->look());
  EXPECT_EQ(ended->state(), RunState::kEnded);

  std::filesystem::remove(folder_ + "/events.jsonl");
  process(::getpid());
  append(step + "{\"event\": \"st");
  age();
  auto running = RunFollower::open(folder_);
  ASSERT_TRUE(running && running->look());
  EXPECT_EQ(running->state(), RunState::kRuns);
}

TEST_F(Follow, AResumeTakesEventsOut) {
  process(::getpid());
  append(
      "{\"event\": \"step\", \"step\": 1, \"loss\": 2}\n{\"event\": \"step\", \"step\": 2, \"loss\": 2}\n");
  auto run = RunFollower::open(folder_);
  ASSERT_TRUE(run && run->look());
  std::filesystem::resize_file(folder_ + "/events.jsonl", 40);
  ASSERT_TRUE(run->look());
  EXPECT_EQ(run->last()->step, 1);
  EXPECT_FALSE(RunFollower::open(folder_ + "/none"));
}

}  // namespace
}  // namespace plimsoll::reports
