// A description makes a target, and a device whose target answers the same.
#include "devices/devices.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "ops/op_list.h"

namespace plimsoll::devices {
namespace {

TEST(Devices, ATargetAnswersAsItsDeviceDoes) {
  for (const DeviceKind kind : {DeviceKind::kCpu, DeviceKind::kDiscrete}) {
    const DeviceSpec spec{.kind = kind, .num_threads = 3, .discrete = {.memory = 1_MiB}};
    const auto target = make_target(spec);
    auto device = make_device(spec);
    ASSERT_TRUE(device.ok());
    const runtime::Target& other = (*device)->target();
    EXPECT_EQ(target->name(), kind == DeviceKind::kCpu ? "cpu" : "discrete");
    EXPECT_EQ(target->name(), other.name());
    EXPECT_EQ(target->num_threads(), 3);
    EXPECT_EQ(target->num_threads(), other.num_threads());
    EXPECT_EQ(target->memory_bytes(), kind == DeviceKind::kCpu ? 0 : 1 << 20);
    EXPECT_EQ(target->memory_bytes(), other.memory_bytes());
    EXPECT_EQ(target->shares_host_memory(), other.shares_host_memory());
    EXPECT_EQ(target->instruction_set(), other.instruction_set());
    EXPECT_EQ(target->has_matrix_units(ir::DType::kBf16), other.has_matrix_units(ir::DType::kBf16));
    for (size_t s = 0; s < ir::kNumSpaces; ++s)
      EXPECT_EQ(target->reaches(static_cast<ir::MemorySpace>(s)),
                other.reaches(static_cast<ir::MemorySpace>(s)));
    for (const ir::OpDef* def : ops::all_ops()) {
      EXPECT_EQ(target->accepts({def->name, {}, {}, {}}).ok(), other.accepts({def->name, {}, {}, {}}).ok());
      EXPECT_EQ(target->accepts_strided(def->name, 0), other.accepts_strided(def->name, 0)) << def->name;
    }
  }
}

TEST(Devices, TheEnvironmentsFaultStopsADiscreteDevice) {
  ASSERT_EQ(setenv("PLIMSOLL_FAULT", "compute:2", 1), 0);
  auto discrete = make_device({.kind = DeviceKind::kDiscrete});
  auto cpu = make_device({});
  ASSERT_EQ(setenv("PLIMSOLL_FAULT", "compute", 1), 0);
  const auto refused = make_device({.kind = DeviceKind::kDiscrete});
  unsetenv("PLIMSOLL_FAULT");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  ASSERT_TRUE(discrete.ok() && cpu.ok());
  for (const auto* device : {&*discrete, &*cpu}) {
    auto memory = (*device)->allocate(ir::MemorySpace::kDevice, Bytes(100));
    ASSERT_TRUE(memory.ok());
    Status status = Ok{};
    for (int i = 0; i < 2 && status; ++i)
      status = (*device)->fill({memory->get(), 0}, Bytes(100), 0, ir::Queue::kCompute);
    if (status) status = (*device)->synchronize(ir::Queue::kCompute);
    EXPECT_EQ(status.ok(), device == &*cpu);
  }
}

}  // namespace
}  // namespace plimsoll::devices
