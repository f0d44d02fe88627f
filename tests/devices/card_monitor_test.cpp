#include "devices/card_monitor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace plimsoll::devices {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class CardMonitorTest : public testing::Test {
 protected:
  void SetUp() override { setenv("PLIMSOLL_CUDA_LIBRARIES", PLIMSOLL_FAKE_NVML, 1); }
  void TearDown() override {
    unsetenv("PLIMSOLL_CUDA_LIBRARIES");
    unsetenv("CUDA_VISIBLE_DEVICES");
  }
};

TEST_F(CardMonitorTest, TellsWhatTheLibraryDoes) {
  const auto card = open_card_monitor(0);
  ASSERT_TRUE(card) << card.error().message();
  const CardSample s = (*card)->sample();
  EXPECT_EQ(s.busy_percent, 87);
  EXPECT_EQ(s.memory_busy_percent, 41);
  EXPECT_EQ(s.memory_used_bytes, int64_t{20} << 30);
  EXPECT_EQ(s.memory_total_bytes, int64_t{80} << 30);
  EXPECT_EQ(s.clock_mhz, 1755);
  EXPECT_EQ(s.memory_clock_mhz, 2619);
  EXPECT_EQ(s.milliwatts, 412500);
  EXPECT_EQ(s.celsius, 71);
  EXPECT_THAT(s.slowed_by, ElementsAre("power cap", "heat"));
}

TEST_F(CardMonitorTest, WhatACardDoesNotTellIsUnknown) {
  const auto card = open_card_monitor(1);
  ASSERT_TRUE(card);
  const CardSample s = (*card)->sample();
  EXPECT_EQ(s.busy_percent, -1);
  EXPECT_EQ(s.memory_used_bytes, -1);
  EXPECT_EQ(s.milliwatts, -1);
  EXPECT_EQ(s.celsius, -1);
  EXPECT_EQ(s.clock_mhz, 1755);
  EXPECT_THAT(s.slowed_by, IsEmpty());
}

TEST_F(CardMonitorTest, CountsAsTheRunDoes) {
  EXPECT_FALSE(open_card_monitor(2));
  setenv("CUDA_VISIBLE_DEVICES", "1,0", 1);
  EXPECT_EQ((*open_card_monitor(1))->sample().celsius, 71);
  EXPECT_EQ((*open_card_monitor(0))->sample().celsius, -1);
  setenv("CUDA_VISIBLE_DEVICES", "GPU-first", 1);
  EXPECT_EQ((*open_card_monitor(0))->sample().celsius, 71);
  setenv("CUDA_VISIBLE_DEVICES", "GPU-gone", 1);
  EXPECT_FALSE(open_card_monitor(0));
}

}  // namespace
}  // namespace plimsoll::devices
