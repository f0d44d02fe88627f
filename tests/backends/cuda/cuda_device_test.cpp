// What goes wrong with a card, on the fake one of fake/: see tests/CMakeLists.txt.
#include "backends/cuda/cuda_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>

#include "backends/cuda/source.h"
#include "base/thread.h"
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
    unsetenv("PLIMSOLL_FAKE_CUDA_FAULT");
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
  const io::TemporaryFolder cache_;
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
  ASSERT_EQ(cached().size(), module_names().size());
  be("broken");  // it need not compile now
  EXPECT_TRUE(CudaDevice::create({}));
  std::string image = *io::read_small_file(cached()[0], 1 << 20);
  image.back() ^= 1;
  ASSERT_TRUE(io::write_file_atomically(cached()[0], image));
  EXPECT_FALSE(CudaDevice::create({}));
}

/// Waits for all queues at its end, whichever wait is refused.
struct Finished {
  CudaDevice& device;
  explicit Finished(CudaDevice& of) : device(of) {}
  Finished(const Finished&) = delete;
  Finished& operator=(const Finished&) = delete;
  ~Finished() {
    for (int i = 0; i < 2; ++i)
      for (const ir::Queue queue :
           {ir::Queue::kCompute, ir::Queue::kCopyIn, ir::Queue::kCopyOut, ir::Queue::kHost})
        (void)device.synchronize(queue);
  }
};

/// What a session does with a device: memory, a capture on several queues, replays, work beside it. The first
/// error.
Status use(CudaDevice& device) {
  PLIMSOLL_ASSIGN(const auto card, device.allocate(ir::MemorySpace::kDevice, Bytes(4096)));
  PLIMSOLL_ASSIGN(const auto host, device.allocate(ir::MemorySpace::kHostPageable, Bytes(4096)));
  const Finished finished{device};  // memory outlives the work queued on it
  const runtime::EventId event = device.make_event(), outside = device.make_event();
  const auto captured = [&]() -> Status {
    PLIMSOLL_TRY(device.fill({card.get(), 0}, Bytes(1024), 7, ir::Queue::kCompute));
    PLIMSOLL_TRY(device.fill({host.get(), 0}, Bytes(1023), 0x01020304, ir::Queue::kCopyOut));
    PLIMSOLL_TRY(device.record(event, ir::Queue::kCompute));
    PLIMSOLL_TRY(device.wait(ir::Queue::kCopyIn, event));
    return device.copy({card.get(), 1024}, {card.get(), 0}, Bytes(1024), ir::Queue::kCopyIn);
  };
  PLIMSOLL_TRY(device.begin_capture());
  Status issued = captured();
  auto graph = device.end_capture();
  PLIMSOLL_TRY(std::move(issued));
  if (!graph) return std::move(graph).error();
  for (int i = 0; i < 3; ++i) PLIMSOLL_TRY(device.replay(**graph));
  PLIMSOLL_TRY(device.fill({host.get(), 0}, Bytes(1024), 0, ir::Queue::kCopyOut));
  PLIMSOLL_TRY(device.record(outside, ir::Queue::kCopyOut));
  PLIMSOLL_TRY(device.wait(ir::Queue::kCompute, outside));
  PLIMSOLL_TRY(device.synchronize(outside));
  return device.synchronize(ir::Queue::kCompute);
}

// A device that refuses anything at all leaves an error, a capture that has ended, and a process that goes
// on.
TEST_F(FakeCard, EachCallThatIsRefusedIsAnError) {
  int refused = 0;
  for (int n = 1; n < 400; ++n) {
    setenv("PLIMSOLL_FAKE_CUDA_FAULT", std::to_string(n).c_str(), 1);
    auto made = CudaDevice::create({.host_threads = 2, .compiles_within = true});
    Status status = Ok{};
    if (!made) status = std::move(made).error();
    if (status) status = use(**made);
    if (status) {  // what was refused was the end of something, or came behind the last call
      made = Error{};
      setenv("PLIMSOLL_FAKE_CUDA_FAULT", "", 1);
      if (n > 60) break;
      continue;
    }
    ++refused;
    EXPECT_EQ(status.error().code, ErrorCode::kIo) << n << ": " << status.error().message();
    EXPECT_THAT(status.error().message(), HasSubstr("error 999")) << n << ": the first error is the one told";
    if (!made) continue;
    for (const ir::Queue queue :
         {ir::Queue::kCompute, ir::Queue::kCopyIn, ir::Queue::kCopyOut, ir::Queue::kHost})
      (void)(*made)->synchronize(queue);  // as who cleans up does
    setenv("PLIMSOLL_FAKE_CUDA_FAULT", "", 1);
  }
  EXPECT_GT(refused, 40);
}

TEST_F(FakeCard, FillsMemoryOfTheHostByWords) {
  auto made = CudaDevice::create({.host_threads = 2});
  ASSERT_TRUE(made);
  const auto host = (*made)->allocate(ir::MemorySpace::kHostPageable, Bytes(4096));
  ASSERT_TRUE(host);
  ASSERT_TRUE((*made)->fill({host->get(), 0}, Bytes(11), 0x04030201, ir::Queue::kCopyOut));
  ASSERT_TRUE((*made)->synchronize(ir::Queue::kCopyOut));
  const std::span<std::byte> bytes = (*host)->host();
  for (size_t i = 0; i < 11; ++i) EXPECT_EQ(bytes[i], static_cast<std::byte>(i % 4 + 1)) << i;
}

// Threads of this process may hold locks that a child would never see released.
TEST_F(FakeCard, CompilesWithinWhereThreadsRun) {
  std::atomic<bool> stop{false};
  auto thread = Thread::start("waiting", [&] { stop.wait(false); });
  ASSERT_TRUE(thread);
  EXPECT_TRUE(CudaDevice::create({.host_threads = 4}));
  EXPECT_EQ(cached().size(), module_names().size());
  stop = true;
  stop.notify_all();
}

TEST_F(FakeCard, CompilesInAChildBesideManyThreadsOfTheHostToCome) {
  EXPECT_TRUE(
      CudaDevice::create({.host_threads = 16}));  // an empty cache: its threads begin behind the child
  EXPECT_EQ(cached().size(), module_names().size());
}

}  // namespace
}  // namespace plimsoll::cuda
