// What the host may not do to a device's memory, and how much of it there is.
#include <sys/resource.h>

#include <csignal>
#include <cstdlib>

#include "devices.h"

namespace plimsoll::discrete::fixtures {
namespace {

constexpr uint32_t kUndefined = 0x7fa5a5a5;

TEST(DeviceMemoryDeathTest, WithChecksTheHostsTouchFaults) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto touch = [](bool write) {
    const auto device = make_discrete({.check = true});
    const auto memory = allocate(*device, MemorySpace::kDevice, 10'000);
    volatile std::byte* at = memory->address() + 5000;
    if (write)
      *at = std::byte{1};
    else
      std::exit(static_cast<int>(*at));
    std::exit(0);
  };
  const auto faulted = [](int status) { return !WIFEXITED(status) || WEXITSTATUS(status) != 0; };
  EXPECT_EXIT(touch(false), faulted, "");
  EXPECT_EXIT(touch(true), faulted, "");
}

TEST(DeviceMemory, WithoutChecksItIsMappedOnce) {
  const auto device = make_discrete({});
  const auto memory = allocate(*device, MemorySpace::kDevice, 10'000);
  EXPECT_EQ(static_cast<DeviceMemory&>(*memory).reach(), memory->address());
  EXPECT_TRUE(memory->host().empty());
}

TEST(DeviceMemory, ComesUndefinedWithChecksOrASeed) {
  for (const DiscreteOptions& options : {DiscreteOptions{.check = true}, DiscreteOptions{.seed = 3}}) {
    const auto device = make_discrete(options);
    Program program(*device);
    for (const MemorySpace space :
         {MemorySpace::kDevice, MemorySpace::kHostPinned, MemorySpace::kHostPageable})
      for (const float value : program.read(program.array(space, 3000)))
        ASSERT_EQ(std::bit_cast<uint32_t>(value), kUndefined) << ir::name(space);
  }
}

TEST(DeviceMemory, NoMoreThanTheDeviceHas) {
  for (const bool check : {false, true}) {
    const auto device = make_discrete({.memory = 1_MiB, .check = check});
    EXPECT_EQ(device->target().memory_bytes(), 1 << 20);
    auto first = allocate(*device, MemorySpace::kDevice, 1'000'000);
    const auto second = device->allocate(MemorySpace::kDevice, Bytes(48'577));
    ASSERT_FALSE(second.ok());
    EXPECT_EQ(second.error().code, ErrorCode::kDoesNotFit);
    EXPECT_EQ(second.error().where, "device memory");
    EXPECT_NE(second.error().hint.find("runtime.discrete.memory"), std::string::npos);
    EXPECT_NE(second.error().hint.find("(1048577 bytes)"), std::string::npos) << second.error().hint;
    allocate(*device, MemorySpace::kHostPinned, 2 << 20);  // which is none of the device's
    allocate(*device, MemorySpace::kDevice, 48'576);
    first.reset();
    allocate(*device, MemorySpace::kDevice, 1 << 20);
    EXPECT_TRUE(device->synchronize(Queue::kCompute).ok()) << "what does not fit does not stop the device";
  }
}

TEST(DeviceMemory, LimitsOfFileSizesAreNoneOfIts) {
  const auto device = make_discrete({.check = true});
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlimit small{2048, limit.rlim_max};
  const auto previous = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto memory = device->allocate(MemorySpace::kDevice, Bytes(100'000));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  std::signal(SIGXFSZ, previous);
  ASSERT_OK(memory);
}

// The address sanitizer sees what it would touch of a device that is gone.
TEST(DeviceMemory, MayGoAfterItsDevice) {
  for (const bool check : {false, true}) {
    auto device = make_discrete({.memory = 1_MiB, .check = check});
    const auto first = allocate(*device, MemorySpace::kDevice, 10'000);
    const auto second = allocate(*device, MemorySpace::kDevice, 20'000);
    device.reset();
  }
}

TEST(DeviceMemoryDeathTest, AnOperandElsewhereIsABug) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto launch = [] {
    const auto device = make_discrete({.check = true});
    Program program(*device);
    const auto y = program.array(MemorySpace::kDevice, 10), x = program.pinned(10, 1);
    (void)program.add(y, y, x, Queue::kCompute, "layers.3");
  };
  EXPECT_DEATH(launch(), "no device memory: add \\(layers.3\\)");
}

TEST(DiscreteTarget, KernelsReachTheDeviceAlone) {
  const DiscreteTarget target(2, 1_GiB);
  EXPECT_EQ(target.name(), "discrete");
  EXPECT_FALSE(target.shares_host_memory());
  EXPECT_EQ(target.memory_bytes(), 1 << 30);
  EXPECT_EQ(target.num_threads(), 2);
  for (const MemorySpace space : kSpaces)
    EXPECT_EQ(target.reaches(space), space == MemorySpace::kDevice) << ir::name(space);
  EXPECT_TRUE(target.accepts({"linear", {}, {}, {}}));
  EXPECT_FALSE(target.accepts({"no_such_op", {}, {}, {}}));
}

}  // namespace
}  // namespace plimsoll::discrete::fixtures
