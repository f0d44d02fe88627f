// The log of a card's queues on the fake one, whose clock is a function of the work: see
// tests/CMakeLists.txt.
#include "backends/cuda/queue_timer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "backends/cuda/cuda_device.h"
#include "base/process.h"

namespace plimsoll::cuda {
namespace {

using ir::Queue;
using runtime::QueueWork;

constexpr Bytes kCopied(int64_t{1} << 20);
/// A copy on the fake card: 10 GB/s, and a microsecond.
constexpr double kCopySeconds = (1 << 20) * 1e-10 + 1e-6, kExact = 1e-8;

class LogOfACard : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::getenv("PLIMSOLL_FAKE_CARD") == nullptr) GTEST_SKIP() << "ctest runs this with a fake card";
    auto made = CudaDevice::create({.host_threads = 1, .compiles_within = true});
    ASSERT_TRUE(made) << made.error().message();
    device_ = std::move(*made);
    memory_ = *device_->allocate(ir::MemorySpace::kDevice, Bytes(4 * kCopied.count));
  }
  void TearDown() override {
    unsetenv("PLIMSOLL_FAKE_CUDA_FAULT");
    memory_.reset();
  }
  /// A fill, then two copies of different queues beside each other.
  Status issue(Queue second = Queue::kCopyIn) {
    PLIMSOLL_TRY(device_->fill({memory_.get(), 0}, kCopied, 7, Queue::kCompute));
    PLIMSOLL_TRY(device_->record(event_, Queue::kCompute));
    PLIMSOLL_TRY(device_->wait(second, event_));
    PLIMSOLL_TRY(device_->copy(at(2), at(0), kCopied, second));
    return device_->copy(at(3), at(0), kCopied, Queue::kCompute);
  }
  [[nodiscard]] runtime::Location at(int64_t part) const { return {memory_.get(), part * kCopied.count}; }
  Result<std::unique_ptr<runtime::CapturedGraph>> captured() {
    PLIMSOLL_TRY(device_->begin_capture());
    Status issued = issue();
    auto graph = device_->end_capture();
    PLIMSOLL_TRY(std::move(issued));
    return graph;
  }
  Status wait() {
    for (const Queue queue : {Queue::kCompute, Queue::kCopyIn, Queue::kCopyOut, Queue::kHost})
      PLIMSOLL_TRY(device_->synchronize(queue));
    return Ok{};
  }
  static auto count(const std::vector<QueueWork>& log, Queue queue) {
    return std::ranges::count_if(log, [&](const QueueWork& work) { return work.queue == queue; });
  }

  std::unique_ptr<CudaDevice> device_;
  std::unique_ptr<runtime::Memory> memory_;
  runtime::EventId event_ = {0};
};

TEST_F(LogOfACard, HasEachPieceOfWorkWithItsTime) {
  event_ = device_->make_event();
  device_->log_queues(true);
  ASSERT_TRUE(issue());
  ASSERT_TRUE(wait());
  const std::vector<QueueWork> log = device_->take_queue_log();
  ASSERT_EQ(log.size(), 3u);
  EXPECT_FALSE(log[0].is_copy);
  EXPECT_EQ(log[0].bytes, kCopied.count);
  EXPECT_EQ(log[2].queue, Queue::kCopyIn);
  for (const size_t copy : {1, 2}) {
    EXPECT_TRUE(log[copy].is_copy);
    EXPECT_NEAR(log[copy].seconds, kCopySeconds, kExact);
    EXPECT_GE(log[copy].start, log[0].start + log[0].seconds - kExact);
  }
  EXPECT_NEAR(log[1].start, log[2].start, kExact) << "they run beside each other";
  EXPECT_TRUE(device_->take_queue_log().empty()) << "it is taken once";
}

TEST_F(LogOfACard, HasEachReplayOfWhatWasCapturedWhileItWasOn) {
  event_ = device_->make_event();
  const auto before = captured();
  ASSERT_TRUE(before);
  device_->log_queues(true);
  const auto graph = captured();
  ASSERT_TRUE(graph);
  ASSERT_TRUE(device_->replay(**before));
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(device_->replay(**graph));
  ASSERT_TRUE(wait());
  const std::vector<QueueWork> log = device_->take_queue_log();
  EXPECT_EQ(count(log, Queue::kCompute), 6);
  EXPECT_EQ(count(log, Queue::kCopyIn), 3);
  for (size_t i = 1; i < log.size(); ++i)
    if (log[i].queue == log[i - 1].queue) {
      EXPECT_GE(log[i].start, log[i - 1].start + log[i - 1].seconds - kExact) << "in its queue's order";
    }
  device_->log_queues(false);
  ASSERT_TRUE(device_->replay(**graph));
  ASSERT_TRUE(wait());
  EXPECT_TRUE(device_->take_queue_log().empty());
}

TEST_F(LogOfACard, BeginsFromNothing) {
  event_ = device_->make_event();
  device_->log_queues(true);
  ASSERT_TRUE(issue());
  ASSERT_TRUE(wait());
  device_->log_queues(true);
  EXPECT_TRUE(device_->take_queue_log().empty());
}

// Whichever call of the driver is refused, an error says so or the work has no time.
TEST_F(LogOfACard, OfADriverThatRefusesIsAnErrorOrShorter) {
  event_ = device_->make_event();
  int refused = 0;
  for (int n = 1; n < 80; ++n) {
    setenv("PLIMSOLL_FAKE_CUDA_FAULT", std::to_string(n).c_str(), 1);
    device_->log_queues(true);
    Status status = issue();
    auto graph = status ? captured() : Result<std::unique_ptr<runtime::CapturedGraph>>(Error{});
    if (status && graph) status = device_->replay(**graph);
    if (status && graph) status = device_->replay(**graph);
    if (!status || !graph) ++refused;
    setenv("PLIMSOLL_FAKE_CUDA_FAULT", "", 1);
    (void)wait();
    EXPECT_LE(device_->take_queue_log().size(), 9u);
    device_->log_queues(false);
  }
  EXPECT_GT(refused, 20);
}

}  // namespace
}  // namespace plimsoll::cuda
