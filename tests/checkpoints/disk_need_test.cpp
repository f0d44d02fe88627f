#include "checkpoints/disk_need.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "io/atomic_directory.h"

namespace plimsoll::checkpoints {
namespace {

SaveSchedule schedule(int64_t total, int64_t every, std::optional<int64_t> limit) {
  return {.total_steps = total, .save_steps = every, .total_limit = limit, .bytes = {100, 30}};
}

TEST(DiskNeedTest, CountsAllThatAreThereAtOnceAndFinal) {
  // n of them and the one that is being written; final/ comes when one has gone.
  EXPECT_EQ(disk_need(schedule(100, 10, 2))->bytes, 300);
  EXPECT_EQ(disk_need(schedule(100, 10, 2))->checkpoints, 3);
  EXPECT_EQ(disk_need(schedule(100, 10, 1))->bytes, 200);
  EXPECT_EQ(disk_need(schedule(20, 10, 2))->bytes, 230);
  EXPECT_EQ(disk_need(schedule(21, 10, 2))->bytes, 300) << "the last step's too";
  EXPECT_EQ(disk_need(schedule(100, 10, {}))->bytes, 1030);
  EXPECT_EQ(disk_need(schedule(100, 10, {}))->checkpoints, 10);
  EXPECT_EQ(disk_need(schedule(100, 0, {}))->bytes, 30);
  EXPECT_EQ(disk_need(schedule(1'000'000'000, 1, 1'000'000))->checkpoints, 1'000'001);
}

TEST(DiskNeedTest, WhatLiesThereIsNotCountedAgain) {
  SaveSchedule s = schedule(100, 10, 2);
  s.step = 50;
  s.present = {{100}, {100}};
  EXPECT_EQ(disk_need(s)->bytes, 100);
  EXPECT_EQ(disk_need(s)->checkpoints, 3);
  s.present = {{500, true}, {500, true}};
  EXPECT_EQ(disk_need(s)->bytes, 100) << "and what is stale goes with the first new one";
  s.step = 100;
  EXPECT_EQ(disk_need(s)->bytes, 30);
  s.total_limit.reset();
  s.present.clear();
  s.step = 95;
  EXPECT_EQ(disk_need(s)->bytes, 130);
}

TEST(DiskNeedTest, CountsTheLogsAndTheirCopies) {
  SaveSchedule s = schedule(100, 10, 2);
  s.state_bytes = 7, s.events_bytes = 11;
  EXPECT_EQ(disk_need(s)->bytes, 3 * (100 + 7) + 2 * 7 + 11);
  s.total_limit.reset();
  EXPECT_EQ(disk_need(s)->bytes, 10 * 100 + 30 + 2 * 7 + 11);
  s.save_steps = 0;
  EXPECT_EQ(disk_need(s)->bytes, 30 + 2 * 7 + 11);
}

TEST(DiskNeedTest, TheLogsGrowWithTheLinesThatAreTold) {
  settings::RunConfig config;
  const SaveSchedule each = save_schedule(config, 10'000, 0, {});
  EXPECT_GT(each.state_bytes, 10'000 * 160);
  EXPECT_GT(each.events_bytes, 10'000 * 340);
  config.training.logging_steps = 100;
  EXPECT_LT(save_schedule(config, 10'000, 0, {}).state_bytes, each.state_bytes / 50);
  EXPECT_LT(save_schedule(config, {}, 0, {}).state_bytes, 2000);
}

TEST(DiskNeedTest, UnknownWhereTheDataDecides) {
  SaveSchedule s = schedule(0, 10, {});
  s.total_steps.reset();
  EXPECT_FALSE(disk_need(s));
  s.total_limit = 3;
  EXPECT_EQ(disk_need(s)->bytes, 400);
}

TEST(DiskNeedTest, ARefusalNamesTheBytesAndALimitThatFits) {
  const std::string folder = std::filesystem::temp_directory_path().string();
  const int64_t free = *io::free_space(folder);
  SaveSchedule s = schedule(1000, 10, {});
  s.bytes = {free / 4, free / 16};
  const Status refused = check_disk(s, folder);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kIo);
  EXPECT_THAT(refused.error().what, testing::HasSubstr("100 checkpoints of "));
  EXPECT_THAT(refused.error().hint, testing::HasSubstr("output.save_total_limit=2 fits"));
  s.total_limit = 2;
  EXPECT_TRUE(check_disk(s, folder));
}

}  // namespace
}  // namespace plimsoll::checkpoints
