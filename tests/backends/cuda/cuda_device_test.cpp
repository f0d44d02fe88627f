// What goes wrong with a card, on the fake one of fake/: see tests/CMakeLists.txt.
#include "backends/cuda/cuda_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "io/file.h"
#include "io/temporary_folder.h"

namespace plimsoll::cuda {
namespace {

using ::testing::HasSubstr;

class FakeCard : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::getenv("PLIMSOLL_FAKE_CARD") == nullptr) GTEST_SKIP() << "ctest runs this with a fake card";
    setenv("XDG_CACHE_HOME", cache_.path().c_str(), 1);
  }
  void TearDown() override {
    unsetenv("PLIMSOLL_FAKE_CUDA");
    unsetenv("XDG_CACHE_HOME");
  }
  static void be(const char* what) { setenv("PLIMSOLL_FAKE_CUDA", what, 1); }
  /// Images in the cache.
  [[nodiscard]] std::vector<std::string> cached() const {
    std::vector<std::string> files;
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(cache_.path() + "/plimsoll/cuda", none))
      files.push_back(entry.path());
    return files;
  }
  const TemporaryFolder cache_;
};

TEST_F(FakeCard, IsDescribed) {
  const auto info = card_info(0);
  ASSERT_TRUE(info) << info.error().message();
  EXPECT_EQ(info->name, "Fake card");
  EXPECT_EQ(info->capability, 90);
  EXPECT_EQ(info->memory.count, int64_t{8} << 30);
}

TEST_F(FakeCard, AMachineWithoutACardSaysSo) {
  be("no-card");
  const auto made = CudaDevice::create({});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, ErrorCode::kIo);
  EXPECT_THAT(made.error().message(), HasSubstr("CUDA_ERROR_NO_DEVICE"));
  EXPECT_THAT(made.error().hint, HasSubstr("runtime.device=cpu"));
}

TEST_F(FakeCard, AnotherCardThanThereIsIsRefused) {
  const auto made = CudaDevice::create({.ordinal = 3});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(made.error().message(), HasSubstr("no card 3, this machine has 1"));
}

TEST_F(FakeCard, MoreThanItHasIsRefusedWithWhatToDo) {
  be("small");
  const auto made = CudaDevice::create({});
  ASSERT_TRUE(made) << made.error().message();
  const auto memory = (*made)->allocate(ir::MemorySpace::kDevice, 2_MiB);
  ASSERT_FALSE(memory);
  EXPECT_THAT(memory.error().message(), HasSubstr("OUT_OF_MEMORY"));
  EXPECT_THAT(memory.error().hint, HasSubstr("memory.device_budget"));
  EXPECT_EQ((*made)->peak_memory().count, 0);
}

TEST_F(FakeCard, CountsWhatPlansTake) {
  auto made = CudaDevice::create({});
  ASSERT_TRUE(made);
  {
    const auto one = (*made)->allocate(ir::MemorySpace::kDevice, 3_MiB);
    const auto host = (*made)->allocate(ir::MemorySpace::kHostPinned, 5_MiB);
    ASSERT_TRUE(one && host);
  }
  const auto two = (*made)->allocate(ir::MemorySpace::kDevice, 1_MiB);
  EXPECT_EQ((*made)->peak_memory().count, (3_MiB).count);
}

TEST_F(FakeCard, KernelsThatDoNotCompileShowTheCompilersWords) {
  be("broken");
  const auto made = CudaDevice::create({});
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().hint, HasSubstr("error: as asked"));
  EXPECT_TRUE(cached().empty());
}

TEST_F(FakeCard, KernelsAreCompiledOnceAndDamageIsSeen) {
  ASSERT_TRUE(CudaDevice::create({}));
  ASSERT_EQ(cached().size(), 1U);
  be("broken");  // it need not compile now
  EXPECT_TRUE(CudaDevice::create({}));
  std::string image = *read_small_file(cached()[0], 1 << 20);
  image.back() ^= 1;
  ASSERT_TRUE(write_file_atomically(cached()[0], image));
  EXPECT_FALSE(CudaDevice::create({}));
}

}  // namespace
}  // namespace plimsoll::cuda
