// What is kept of the programs that ran.
#include "telemetry/run_snapshot.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "io/temporary_folder.h"
#include "io/unpickle.h"
#include "planner/small_plan.h"

namespace plimsoll::telemetry {
namespace {

TEST(RunSnapshotTest, KeepsTheFirstRunsThatFit) {
  constexpr int64_t kMost = 3000;
  const io::TemporaryFolder folder;
  const std::string path = folder.path() + "/run.pickle";
  const passes::SessionPlan session = planner::planned_small({.num_layers = 1}).session;
  const int step = session.find_program({passes::ProgramRole::kStep}),
            init = session.find_program({passes::ProgramRole::kInit});
  auto snapshot = RunSnapshot::create(path, kMost);
  ASSERT_TRUE(snapshot);
  (*snapshot)->begin(session);
  (*snapshot)->ran(init);
  (*snapshot)->ran(step);
  EXPECT_EQ((*snapshot)->left_out(), "");
  const int64_t each = planner::trace_entries(session)[static_cast<size_t>(step)];
  const int64_t fit = kMost / each;
  for (int64_t i = 0; i < fit + 5; ++i) (*snapshot)->ran(step);
  (*snapshot)->ran(init);  // which would fit, but is behind the hole
  EXPECT_TRUE((*snapshot)->left_out().starts_with("the first ")) << (*snapshot)->left_out();
  EXPECT_FALSE(std::filesystem::exists(path)) << "not before it is whole";
  ASSERT_TRUE((*snapshot)->write(session));
  const auto bytes = io::read_small_file(path, 1 << 28);
  ASSERT_TRUE(bytes);
  const io::Tree tree = io::Unpickler(*bytes).read();
  const std::vector<io::Tree>& entries = tree.find("device_traces")->items[0].items;
  EXPECT_LE(static_cast<int64_t>(entries.size()), kMost + 200);
  EXPECT_GT(static_cast<int64_t>(entries.size()), kMost - 2 * each);
  EXPECT_EQ(entries.back().find("frames")->items.back().find("name")->text, "step");
}

TEST(RunSnapshotTest, AFolderThatIsNotThereIsToldAtOnce) {
  const auto snapshot = RunSnapshot::create("/no/such/folder/run.pickle");
  ASSERT_FALSE(snapshot);
  EXPECT_EQ(snapshot.error().code, ErrorCode::kIo);
}

}  // namespace
}  // namespace plimsoll::telemetry
