#include "profiling/profile_trace.h"

#include <gtest/gtest.h>

#include <map>

#include "io/json.h"
#include "profiling/profile_testing.h"

namespace plimsoll::profiling {
namespace {

using planner::MemoryClass;
using profile_testing::two_steps;

std::vector<io::Tree> events_of(const Profile& profile, std::string_view phase) {
  const auto trace = io::parse_json(profile_trace(profile));
  EXPECT_TRUE(trace) << (trace ? "" : trace.error().message());
  std::vector<io::Tree> events;
  for (const io::Tree& e : trace->find("traceEvents")->items)
    if (e.find("ph")->text == phase) events.push_back(e);
  return events;
}

TEST(ProfileTrace, StepsWaitsAndOps) {
  std::map<std::string, int> categories;
  for (const io::Tree& e : events_of(profiling::profile_testing::two_steps(), "X"))
    ++categories[e.find("cat")->text];
  EXPECT_EQ(categories,
            (std::map<std::string, int>{{"user_annotation", 4}, {"cpu_op", 4}, {"gpu_memcpy", 2}}));
}

TEST(ProfileTrace, OpsOfADeviceAreKernelsOnALaneOfTheirOwn) {
  Profile profile = profiling::profile_testing::two_steps();
  profile.on_device = true;
  std::map<std::string, int> categories;
  std::string lane;
  for (const io::Tree& e : events_of(profile, "X")) {
    ++categories[e.find("cat")->text];
    if (e.find("name")->text == "linear") lane = e.find("tid")->text;
  }
  EXPECT_EQ(categories,
            (std::map<std::string, int>{{"user_annotation", 4}, {"kernel", 4}, {"gpu_memcpy", 2}}));
  std::string name;
  for (const io::Tree& e : events_of(profile, "M"))
    if (e.find("tid")->text == lane) name = e.find("args")->find("name")->text;
  EXPECT_EQ(name, "kernels");
}

TEST(ProfileTrace, KernelsThatTheHostRunsBesideADeviceAreItsOwn) {
  Profile profile = profiling::profile_testing::two_steps();
  profile.on_device = true;
  for (auto& facts : profile.facts) facts.on_host = facts.op == "linear";
  int found = 0;
  for (const io::Tree& e : events_of(profile, "X")) {
    if (e.find("name")->text != "linear") continue;
    ++found;
    EXPECT_EQ(e.find("cat")->text, "cpu_op");
    EXPECT_EQ(e.find("pid")->integer, 1);
  }
  EXPECT_GT(found, 0);
}

TEST(ProfileTrace, LiveBytesAreCountersByClass) {
  Profile profile = profiling::profile_testing::two_steps();
  const auto live = [](int64_t parameters, int64_t activations) {
    planner::ClassBytes bytes{};
    bytes[static_cast<size_t>(MemoryClass::kParameters)] = parameters;
    bytes[static_cast<size_t>(MemoryClass::kActivations)] = activations;
    return bytes;
  };
  profile.live = live(7, 0);
  profile.facts[0].live = live(7, 5), profile.facts[1].live = live(7, 5), profile.facts[2].live = live(7, 3);
  std::string course;
  for (const io::Tree& e : events_of(profile, "C")) {
    EXPECT_EQ(e.find("name")->text, "memory");
    const io::Tree* args = e.find("args");
    EXPECT_EQ(args->members.size(), planner::kNumMemoryClasses);
    EXPECT_EQ(args->find("parameters")->integer, 7);
    course += e.find("ts")->text + ":" + args->find("activations")->text + " ";
  }
  // Told where it changes: at the step's begin, at ops, behind the last one.
  EXPECT_EQ(
      course,
      "0.000:0 1000000.000:5 7000000.000:3 9000000.000:0 11000000.000:5 17000000.000:3 19000000.000:0 ");
}

TEST(ProfileTrace, LoadersAndCheckpointsHaveLanesOfTheirOwn) {
  Profile profile = profiling::profile_testing::two_steps();
  profile.steps[0].spans.push_back({"load a batch", SpanLane::kLoader, 1, 2, 3});
  profile.steps[1].spans.push_back({"write a checkpoint", SpanLane::kCheckpoint, 0, 12, 15});
  std::map<std::string, std::string> lanes, of;
  for (const io::Tree& e : events_of(profile, "M"))
    lanes[e.find("tid")->text] = e.find("args")->find("name")->text;
  for (const io::Tree& e : events_of(profile, "X")) of[e.find("name")->text] = lanes[e.find("tid")->text];
  EXPECT_EQ(of["load a batch"], "loader 1");
  EXPECT_EQ(of["write a checkpoint"], "checkpoints");
  EXPECT_EQ(of["copy_start"], "copies");
  EXPECT_EQ(of["linear"], "steps and ops");
  EXPECT_EQ(of["wait for data"], "steps and ops");
}

}  // namespace
}  // namespace plimsoll::profiling
