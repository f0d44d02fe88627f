// That each rate is measured and a profile takes it; how large it is hangs on what else the machine does.
#include "measuring/copy_rates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "devices/devices.h"
#include "io/temporary_folder.h"
#include "planner/cost/known_profiles.h"

namespace plimsoll::measuring {
namespace {

const Shown kSilent = [](double, const std::string&) {};
constexpr CopyPlan kShort{.seconds = 0.01, .memory_bytes = 32 << 20, .disk_bytes = 32 << 20};

TEST(CopyRates, AreMeasuredEachWayAndBesideKernels) {
  planner::MachineProfile p = planner::generic_cpu("avx2");
  const Status done = measure_copies(kShort, p, kSilent);
  ASSERT_TRUE(done) << done.error().message();
  EXPECT_GT(p.copy_in_bandwidth, 0);
  EXPECT_GT(p.copy_out_bandwidth, 0);
  EXPECT_GT(p.copy_in_beside_kernels, 0);
  EXPECT_GT(p.copy_out_beside_kernels, 0);
  EXPECT_TRUE(planner::parse_profile(planner::profile_json(p)));
}

TEST(CopyRates, OfACardAreByItsOwnClock) {
  const auto device = devices::make_device({.kind = devices::DeviceKind::kCuda});
  ASSERT_TRUE(device) << device.error().message();
  planner::MachineProfile p = *planner::find_card("h100");
  // The kernel beside the copies takes long on the fake card.
  const Status done = measure_copies({.seconds = 1e-4, .memory_bytes = 32 << 20}, **device, p, kSilent);
  ASSERT_TRUE(done) << done.error().message();
  for (const double rate :
       {p.copy_in_bandwidth, p.copy_out_bandwidth, p.copy_in_beside_kernels, p.copy_out_beside_kernels})
    EXPECT_NEAR(rate, 1e10, 1e8) << "what the fake card copies in a second";
}

TEST(CopyRates, OfADiskLeaveNothingBehind) {
  const io::TemporaryFolder folder;
  planner::MachineProfile p = planner::generic_cpu("avx2");
  const Status done = measure_disk(kShort, folder.path(), p, kSilent);
  ASSERT_TRUE(done) << done.error().message();
  for (const double rate :
       {p.disk_read_bandwidth, p.disk_write_bandwidth, p.disk_read_beside_write, p.disk_write_beside_read,
        p.disk_read_beside_kernels, p.disk_write_beside_kernels})
    EXPECT_GT(rate, 0);
  EXPECT_EQ(p.disk, folder.path());
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  EXPECT_TRUE(planner::parse_profile(planner::profile_json(p)));
}

TEST(CopyRates, ADiskThatCannotBeWrittenIsAnErrorAndStaysUnknown) {
  planner::MachineProfile p = planner::generic_cpu("avx2");
  const Status done = measure_disk(kShort, "/dev/null/nowhere", p, kSilent);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::kIo);
  EXPECT_EQ(p.disk_read_bandwidth, 0);
  EXPECT_TRUE(p.disk.empty());
}

}  // namespace
}  // namespace plimsoll::measuring
