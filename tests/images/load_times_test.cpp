// Where the time of loading images goes.
#include "images/load_times.h"

#include <gtest/gtest.h>

#include <thread>

namespace plimsoll::images {
namespace {

TEST(LoadTimes, AreCountedByPartOverThreads) {
  const LoadTimes before = load_times();
  const auto wait = [](LoadPart part) {
    const LoadTimer timer(part);
    std::this_thread::sleep_for(std::chrono::milliseconds(4));
  };
  std::thread other(wait, LoadPart::kDecoding);
  wait(LoadPart::kDecoding);
  wait(LoadPart::kReading);
  other.join();
  const LoadTimes passed = load_times().since(before);
  EXPECT_GE(passed.decoding, 0.008);
  EXPECT_GE(passed.reading, 0.004);
  EXPECT_EQ(passed.augmenting, 0);
}

TEST(LoadTimes, TheLongestPartIsNamed) {
  EXPECT_EQ((LoadTimes{3, 2, 1}).longest(), LoadPart::kReading);
  EXPECT_EQ((LoadTimes{1, 2, 1}).longest(), LoadPart::kDecoding);
  EXPECT_EQ((LoadTimes{1, 2, 3}).longest(), LoadPart::kAugmenting);
}

}  // namespace
}  // namespace plimsoll::images
