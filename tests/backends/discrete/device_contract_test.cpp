// Each line of runtime/device.h, on the CPU, on discrete devices - plain, checking, and under adversaries -
// and on this machine's card, where it has one.
#include <algorithm>

#include "backends/cuda/card.h"
#include "devices.h"

namespace plimsoll::discrete::fixtures {
namespace {

struct Kind {
  const char* name;
  bool discrete = false;
  bool check = false;
  std::optional<uint64_t> seed = {};
  bool card = false;
};

class DeviceContract : public ::testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    const Kind& kind = GetParam();
    if (kind.card && !cuda::card_info(0)) GTEST_SKIP() << "no card";
    if (kind.card) {
      auto made = cuda::CudaDevice::create({.compiles_within = cuda::fixtures::compiles_within()});
      ASSERT_OK(made);
      device_ = std::move(*made);
    } else if (kind.discrete)
      device_ = make_discrete(
          {.num_threads = 2, .seed = kind.seed, .check = kind.check, .disk_folder = folder_.path()});
    else
      device_ = std::make_unique<cpu::CpuDevice>(2, folder_.path());
    program_ = std::make_unique<Program>(*device_);
  }
  Device& device() { return *device_; }
  /// Those that the device has: beside a card there is no disk.
  static std::vector<MemorySpace> spaces() {
    std::vector<MemorySpace> all(std::begin(kSpaces), std::end(kSpaces));
    if (GetParam().card) all.pop_back();
    return all;
  }
  Program& program() { return *program_; }
  Program::Array on_device(int64_t count) { return program().array(MemorySpace::kDevice, count); }

 private:
  const io::TemporaryFolder folder_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Program> program_;
};
INSTANTIATE_TEST_SUITE_P(Devices, DeviceContract,
                         ::testing::Values(Kind{"cpu"}, Kind{"discrete", true}, Kind{"check", true, true},
                                           Kind{"seed1", true, false, 1}, Kind{"seed2", true, true, 2},
                                           Kind{"seed3", true, true, 3},
                                           Kind{"card", false, false, {}, true}),
                         [](const auto& kind) { return std::string(kind.param.name); });

TEST_P(DeviceContract, MemoryHasItsSpaceSizeAndAddress) {
  for (const MemorySpace space : spaces())
    for (const int64_t bytes : {0, 1, 5000, (5 << 20) + 17}) {
      const auto memory = allocate(device(), space, bytes);
      EXPECT_EQ(memory->space(), space);
      EXPECT_EQ(memory->size().count, bytes);
      EXPECT_EQ(memory->address() != nullptr, space != MemorySpace::kDisk && bytes > 0);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(memory->address()) % runtime::kAlignment, 0U);
      const bool is_host = space == MemorySpace::kHostPinned || space == MemorySpace::kHostPageable ||
                           (space == MemorySpace::kDevice && device().target().shares_host_memory());
      EXPECT_EQ(static_cast<int64_t>(memory->host().size()), is_host ? bytes : 0);
      if (is_host && bytes > 0) {
        EXPECT_EQ(memory->host().data(), memory->address());
      }
    }
}

TEST_P(DeviceContract, MoreHostMemoryThanThereIsIsAnError) {
  for (const MemorySpace space : {MemorySpace::kDevice, MemorySpace::kHostPinned}) {
    const auto memory = device().allocate(space, Bytes(int64_t{1} << 46));
    ASSERT_FALSE(memory.ok());
    EXPECT_EQ(memory.error().code, ErrorCode::kIo);
    EXPECT_FALSE(memory.error().hint.empty());
  }
  EXPECT_TRUE(device().synchronize(Queue::kCompute).ok()) << "such an error does not stop the device";
}

TEST_P(DeviceContract, WorkOfAQueueRunsInTheOrderOfIssue) {
  constexpr int kRounds = 700;  // more than a ring holds
  for (const Queue queue : kQueues) {
    const auto x = program().filled(1000, 1), y = program().filled(1000, 0);
    for (int i = 0; i < kRounds; ++i) ASSERT_OK(program().add(y, y, x, queue));
    EXPECT_EQ(program().read(y), std::vector<float>(1000, kRounds));
  }
}

TEST_P(DeviceContract, EventsOrderQueues) {
  const auto event = device().make_event(), copied = device().make_event();
  auto host = program().pinned(50'000, 0);
  const auto x = on_device(50'000), y = on_device(50'000), out = program().pinned(50'000, 0);
  for (int i = 1; i <= 20; ++i) {
    ASSERT_OK(device().synchronize(copied));  // the host may write only behind the copy
    std::fill(host.host().begin(), host.host().end(), static_cast<float>(i));
    ASSERT_OK(program().copy(x, host, Queue::kCopyIn));
    ASSERT_OK(device().record(copied, Queue::kCopyIn));
    ASSERT_OK(device().wait(Queue::kCompute, copied));
    ASSERT_OK(program().add(y, x, x));
    ASSERT_OK(device().record(event, Queue::kCompute));
    ASSERT_OK(device().wait(Queue::kCopyIn, event));  // x is written again
    ASSERT_OK(device().wait(Queue::kCopyOut, event));
    ASSERT_OK(program().copy(out, y, Queue::kCopyOut));
    ASSERT_OK(device().synchronize(Queue::kCopyOut));
    ASSERT_EQ(std::count(out.host().begin(), out.host().end(), 2.0F * static_cast<float>(i)), 50'000);
  }
}

TEST_P(DeviceContract, AnEventThatWasNeverRecordedHoldsNobody) {
  const auto event = device().make_event();
  ASSERT_OK(device().wait(Queue::kCompute, event));
  ASSERT_OK(device().synchronize(event));
  ASSERT_OK(device().synchronize(Queue::kCompute));
}

TEST_P(DeviceContract, AnEventStandsForItsLastRecordBeforeTheWait) {
  const auto event = device().make_event();
  const auto x = program().filled(100'000, 1), y = program().filled(100'000, 0), z = on_device(100'000);
  ASSERT_OK(program().fill(z, 9, Queue::kCopyIn));
  ASSERT_OK(device().record(event, Queue::kCopyIn));
  ASSERT_OK(device().wait(Queue::kCompute, event));
  for (int i = 0; i < 20; ++i) ASSERT_OK(program().add(y, y, x));
  ASSERT_OK(device().record(event, Queue::kCompute));
  ASSERT_OK(device().wait(Queue::kCopyOut, event));
  ASSERT_OK(program().copy(z, y, Queue::kCopyOut));
  ASSERT_OK(device().record(event, Queue::kCopyIn));  // too late for that wait
  EXPECT_EQ(program().read(z), std::vector<float>(100'000, 20));
}

// in → x on kCopyIn; kCompute does nothing but wait for it; kCopyOut waits for kCompute alone: x → out.
TEST_P(DeviceContract, AWaitIsAmongWhatAnEventStandsForAndWhatSynchronizeWaitsFor) {
  const auto arrived = device().make_event(), passed = device().make_event();
  const auto in = program().pinned(1 << 20, 5), out = program().pinned(1 << 20, 0);
  const auto x = program().filled(1 << 20, 0);
  const auto pass = [&] {
    ASSERT_OK(program().copy(x, in, Queue::kCopyIn));
    ASSERT_OK(device().record(arrived, Queue::kCopyIn));
    ASSERT_OK(device().wait(Queue::kCompute, arrived));
    ASSERT_OK(device().record(passed, Queue::kCompute));
    ASSERT_OK(device().wait(Queue::kCopyOut, passed));
    ASSERT_OK(program().copy(out, x, Queue::kCopyOut));
    ASSERT_OK(device().record(passed, Queue::kCopyOut));
    ASSERT_OK(device().wait(Queue::kCompute, passed));
  };
  pass();
  ASSERT_OK(device().synchronize(Queue::kCompute));
  EXPECT_EQ(std::count(out.host().begin(), out.host().end(), 5.0F), 1 << 20);
  std::fill(in.host().begin(), in.host().end(), 6.0F);
  ASSERT_OK(device().begin_capture());
  pass();
  auto graph = device().end_capture();
  ASSERT_OK(graph);
  ASSERT_OK(device().replay(**graph));
  ASSERT_OK(device().synchronize(Queue::kCompute));
  EXPECT_EQ(std::count(out.host().begin(), out.host().end(), 6.0F), 1 << 20);
}

TEST_P(DeviceContract, SynchronizeWaitsForTheQueueAndForTheEvent) {
  const auto event = device().make_event();
  const auto x = program().filled(1 << 20, 1), y = program().filled(1 << 20, 2);
  const auto out = program().pinned(1 << 20, 0), late = program().pinned(1 << 20, 0);
  ASSERT_OK(program().copy(out, x, Queue::kCopyOut));
  ASSERT_OK(device().record(event, Queue::kCopyOut));
  ASSERT_OK(program().copy(late, y, Queue::kCopyOut));
  ASSERT_OK(device().synchronize(event));
  EXPECT_EQ(std::count(out.host().begin(), out.host().end(), 1.0F), 1 << 20);
  ASSERT_OK(device().synchronize(Queue::kCopyOut));
  EXPECT_EQ(std::count(late.host().begin(), late.host().end(), 2.0F), 1 << 20);
}

TEST_P(DeviceContract, CopiesBetweenAnyTwoSpaces) {
  constexpr int64_t kBytes = (1 << 20) + 4093, kFrom = 3, kTo = 11;
  const auto source = allocate(device(), MemorySpace::kHostPageable, kBytes + 64);
  const auto result = allocate(device(), MemorySpace::kHostPageable, kBytes + 64);
  for (size_t i = 0; i < source->host().size(); ++i)
    source->host()[i] = static_cast<std::byte>(i * 13 + i / 253);
  for (const MemorySpace a : spaces())
    for (const MemorySpace b : spaces())
      for (const Queue queue : kQueues) {
        const auto from = allocate(device(), a, kBytes + 64), to = allocate(device(), b, kBytes + 64);
        std::fill(result->host().begin(), result->host().end(), std::byte{0});
        ASSERT_OK(device().copy({from.get(), 0}, {source.get(), 0}, Bytes(kBytes + 64), queue));
        ASSERT_OK(device().fill({to.get(), 0}, Bytes(kBytes + 64), 0, queue));
        ASSERT_OK(device().copy({to.get(), kTo}, {from.get(), kFrom}, Bytes(kBytes), queue));
        ASSERT_OK(device().copy({result.get(), 0}, {to.get(), 0}, Bytes(kBytes + 64), queue));
        ASSERT_OK(device().synchronize(queue));
        const auto got = result->host(), all = source->host();
        ASSERT_EQ(std::memcmp(got.data() + kTo, all.data() + kFrom, kBytes), 0)
            << ir::name(a) << " to " << ir::name(b);
        ASSERT_EQ(got[kTo - 1], std::byte{0});
        ASSERT_EQ(got[kTo + kBytes], std::byte{0});
      }
}

TEST_P(DeviceContract, FillsEverySpaceAndCutsTheLastWord) {
  const uint32_t pattern = std::bit_cast<uint32_t>(-1.5F);
  const auto result = allocate(device(), MemorySpace::kHostPageable, 100);
  for (const MemorySpace space : spaces())
    for (const Queue queue : kQueues) {
      const auto memory = allocate(device(), space, 100);
      ASSERT_OK(device().fill({memory.get(), 0}, Bytes(100), 0, queue));
      ASSERT_OK(device().fill({memory.get(), 8}, Bytes(42), pattern, queue));
      ASSERT_OK(device().copy({result.get(), 0}, {memory.get(), 0}, Bytes(100), queue));
      ASSERT_OK(device().synchronize(queue));
      std::vector<std::byte> expected(100);
      for (size_t i = 8; i < 48; i += 4) std::memcpy(&expected[i], &pattern, 4);
      std::memcpy(&expected[48], &pattern, 2);
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), result->host().begin())) << ir::name(space);
    }
}

// in → x on kCopyIn; y += x on kCompute; y → out on kCopyOut, joined to kCompute.
struct Pipeline {
  Program& program;
  Device& device;
  Program::Array in, x, y, out;
  runtime::EventId arrived, summed, left;

  Pipeline(Program& p, Device& d, int64_t count)
      : program(p),
        device(d),
        in(p.pinned(count, 1)),
        x(p.array(MemorySpace::kDevice, count)),
        y(p.filled(count, 0)),
        out(p.pinned(count, 0)),
        arrived(d.make_event()),
        summed(d.make_event()),
        left(d.make_event()) {}
  void issue() {
    ASSERT_OK(program.copy(x, in, Queue::kCopyIn));
    ASSERT_OK(device.record(arrived, Queue::kCopyIn));
    ASSERT_OK(device.wait(Queue::kCompute, arrived));
    ASSERT_OK(program.add(y, y, x));
    ASSERT_OK(device.record(summed, Queue::kCompute));
    ASSERT_OK(device.wait(Queue::kCopyOut, summed));
    ASSERT_OK(program.copy(out, y, Queue::kCopyOut));
    ASSERT_OK(device.record(left, Queue::kCopyOut));
    ASSERT_OK(device.wait(Queue::kCompute, left));
    ASSERT_OK(device.fill(x.at(), Bytes(4), 0, Queue::kCompute));
  }
};

// x → a on kCopyOut; a += b on kHost, in the host's memory; a → x on kCopyIn.
TEST_P(DeviceContract, TheHostsKernelsComputeInItsMemory) {
  const auto x = program().filled(20'000, 1), a = program().pinned(20'000, 0),
             b = program().pinned(20'000, 2);
  const auto out = device().make_event(), summed = device().make_event(), in = device().make_event();
  const auto issue = [&] {
    ASSERT_OK(program().copy(a, x, Queue::kCopyOut));
    ASSERT_OK(device().record(out, Queue::kCopyOut));
    ASSERT_OK(device().wait(Queue::kHost, out));
    ASSERT_OK(program().add(a, a, b, Queue::kHost));
    ASSERT_OK(device().record(summed, Queue::kHost));
    ASSERT_OK(device().wait(Queue::kCopyIn, summed));
    ASSERT_OK(program().copy(x, a, Queue::kCopyIn));
    ASSERT_OK(device().record(in, Queue::kCopyIn));
    ASSERT_OK(device().wait(Queue::kCompute, in));
  };
  issue();
  EXPECT_EQ(program().read(x), std::vector<float>(20'000, 3));
  ASSERT_OK(device().begin_capture());
  issue();
  auto graph = device().end_capture();
  ASSERT_OK(graph);
  for (int i = 0; i < 50; ++i) ASSERT_OK(device().replay(**graph));
  ASSERT_OK(device().synchronize(Queue::kCompute));
  EXPECT_EQ(program().read(x), std::vector<float>(20'000, 103));
}

TEST_P(DeviceContract, CaptureRecordsAndReplayRuns) {
  Pipeline pipeline(program(), device(), 40'000);
  ASSERT_OK(device().begin_capture());
  pipeline.issue();
  auto graph = device().end_capture();
  ASSERT_OK(graph);
  for (const Queue queue : kQueues) ASSERT_OK(device().synchronize(queue));
  EXPECT_EQ(pipeline.out.host()[39'999], 0.0F) << "what is captured does not run";
  ASSERT_OK(device().replay(**graph));
  ASSERT_OK(device().synchronize(Queue::kCompute));
  EXPECT_EQ(std::count(pipeline.out.host().begin(), pipeline.out.host().end(), 1.0F), 40'000);
  std::fill(pipeline.in.host().begin(), pipeline.in.host().end(), 2.0F);
  ASSERT_OK(device().replay(**graph));
  ASSERT_OK(device().synchronize(Queue::kCompute));
  EXPECT_EQ(std::count(pipeline.out.host().begin(), pipeline.out.host().end(), 3.0F), 40'000);
}

TEST_P(DeviceContract, ReplaysAgainBeforeTheFirstHasEnded) {
  Pipeline pipeline(program(), device(), 3000);
  ASSERT_OK(device().begin_capture());
  pipeline.issue();
  auto graph = device().end_capture();
  ASSERT_OK(graph);
  for (int i = 0; i < 400; ++i) ASSERT_OK(device().replay(**graph));
  ASSERT_OK(device().synchronize(Queue::kCompute));
  EXPECT_EQ(std::count(pipeline.out.host().begin(), pipeline.out.host().end(), 400.0F), 3000);
}

TEST_P(DeviceContract, AReplayBeginsBehindComputesWorkAndComputeGoesOnBehindIt) {
  const auto x = program().filled(1 << 18, 1), y = program().filled(1 << 18, 0);
  const auto out = program().pinned(1 << 18, 0);
  const auto done = device().make_event();
  ASSERT_OK(device().begin_capture());
  ASSERT_OK(program().copy(out, y, Queue::kCopyOut));  // waits for nothing within the capture
  ASSERT_OK(device().record(done, Queue::kCopyOut));
  ASSERT_OK(device().wait(Queue::kCompute, done));
  ASSERT_OK(program().add(y, y, x));
  auto graph = device().end_capture();
  ASSERT_OK(graph);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 9; ++i) ASSERT_OK(program().add(y, y, x));
    ASSERT_OK(device().replay(**graph));
    ASSERT_OK(program().add(y, y, x));
    ASSERT_OK(device().synchronize(Queue::kCompute));
    EXPECT_EQ(std::count(out.host().begin(), out.host().end(), static_cast<float>(11 * round + 9)), 1 << 18);
  }
}

TEST_P(DeviceContract, EventsOfACaptureAreItsOwn) {
  const auto event = device().make_event();
  const auto x = program().filled(1000, 1), y = program().filled(1000, 0), z = program().filled(1000, 0);
  ASSERT_OK(program().add(y, y, x));
  ASSERT_OK(device().record(event, Queue::kCompute));
  ASSERT_OK(device().begin_capture());
  ASSERT_OK(device().wait(Queue::kCopyIn, event));  // not recorded within it
  ASSERT_OK(program().copy(z, x, Queue::kCopyIn));
  ASSERT_OK(device().record(event, Queue::kCopyIn));
  ASSERT_OK(device().wait(Queue::kCompute, event));
  ASSERT_OK(program().add(y, y, z));
  auto graph = device().end_capture();
  ASSERT_OK(graph);
  ASSERT_OK(device().synchronize(event));  // the record before the capture
  ASSERT_OK(device().replay(**graph));
  EXPECT_EQ(program().read(y), std::vector<float>(1000, 2));
}

TEST_P(DeviceContract, AGraphThatGoesEndsFirst) {
  const auto x = program().filled(10'000, 1), y = program().filled(10'000, 0);
  for (int round = 0; round < 20; ++round) {
    ASSERT_OK(device().begin_capture());
    for (int i = 0; i < 5; ++i) ASSERT_OK(program().add(y, y, x));
    auto graph = device().end_capture();
    ASSERT_OK(graph);
    ASSERT_OK(device().replay(**graph));
  }
  EXPECT_EQ(program().read(y), std::vector<float>(10'000, 100));
}

TEST_P(DeviceContract, QueuesTakeCallsFromAThreadEach) {
  const auto x = program().filled(5000, 1), y = program().filled(5000, 0);
  const auto a = program().pinned(5000, 3), b = program().pinned(5000, 0), c = on_device(5000);
  std::thread copies([&] {
    for (int i = 0; i < 300; ++i) {
      const Status in = device().copy(c.at(), a.at(), c.bytes(), Queue::kCopyIn),
                   out = device().synchronize(Queue::kCopyIn);
      if (!in || !out) ADD_FAILURE();
    }
  });
  std::thread memories([&] {
    for (int i = 0; i < 50; ++i) allocate(device(), MemorySpace::kDevice, 100'000);
  });
  for (int i = 0; i < 300; ++i) ASSERT_OK(program().add(y, y, x));
  copies.join();
  memories.join();
  ASSERT_OK(program().copy(b, c, Queue::kCopyOut));
  ASSERT_OK(device().synchronize(Queue::kCopyOut));
  EXPECT_EQ(std::count(b.host().begin(), b.host().end(), 3.0F), 5000);
  EXPECT_EQ(program().read(y), std::vector<float>(5000, 300));
}

}  // namespace
}  // namespace plimsoll::discrete::fixtures
