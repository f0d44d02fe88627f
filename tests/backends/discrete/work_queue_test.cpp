// Errors and faults of what is queued, the rate of copies, and that queueing allocates nothing.
#include "backends/discrete/work_queue.h"

#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <thread>
#include <vector>

#include "base/process.h"
#include "devices.h"
#include "sanitizer.h"

constexpr bool kCounts = !plimsoll::kSanitizer;

namespace plimsoll::discrete::fixtures {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Three rounds of in → x; y += x; y → out over all queues, as captured work or call by call. Each round has a
// piece of work on each queue, and a fill.
struct Rounds {
  Program program;
  Device& device;
  Program::Array in, x, y, out;
  runtime::EventId arrived, summed, left;
  ir::OpDef copy_def;
  ir::Op copy_op;

  explicit Rounds(Device& d)
      : program(d),
        device(d),
        in(program.pinned(4000, 1)),
        x(program.array(MemorySpace::kDevice, 4000)),
        y(program.array(MemorySpace::kDevice, 4000)),
        out(program.pinned(4000, -1)),
        arrived(d.make_event()),
        summed(d.make_event()),
        left(d.make_event()) {
    copy_def.name = "copy_start";
    copy_op.def = &copy_def;
    copy_op.layer = "layers.7";
  }
  Status issue() {
    PLIMSOLL_TRY(program.fill(y, 0, Queue::kCompute));
    for (int round = 0; round < 3; ++round) {
      PLIMSOLL_TRY(program.copy(x, in, Queue::kCopyIn, &copy_op));
      PLIMSOLL_TRY(device.record(arrived, Queue::kCopyIn));
      PLIMSOLL_TRY(device.wait(Queue::kCompute, arrived));
      PLIMSOLL_TRY(program.add(y, y, x, Queue::kCompute, "layers.5"));
      PLIMSOLL_TRY(device.record(summed, Queue::kCompute));
      PLIMSOLL_TRY(device.wait(Queue::kCopyIn, summed));
      PLIMSOLL_TRY(device.wait(Queue::kCopyOut, summed));
      PLIMSOLL_TRY(program.copy(out, y, Queue::kCopyOut, &copy_op));
      PLIMSOLL_TRY(device.record(left, Queue::kCopyOut));
      PLIMSOLL_TRY(device.wait(Queue::kCompute, left));
    }
    return Ok{};
  }
};

void expect_injected(const Error& error, const std::string& place) {
  EXPECT_EQ(error.code, ErrorCode::kIo);
  EXPECT_NE(error.what.find("fault was injected"), std::string::npos) << error.what;
  EXPECT_EQ(error.where.rfind(place, 0), 0U) << error.where;
}

TEST(DiscreteFaults, EachItemOfEachQueueStopsTheDeviceAndNothingHangs) {
  for (const Queue queue : kQueues)
    for (uint64_t number = 1; number <= (queue == Queue::kCompute ? 4U : 3U); ++number)
      for (const bool captures : {false, true})
        for (const std::optional<uint64_t> seed :
             {std::optional<uint64_t>(), std::optional<uint64_t>(number)}) {
          const auto device = make_discrete({.num_threads = 2, .seed = seed, .fault = Fault{queue, number}});
          Rounds rounds(*device);
          Status status = Ok{};
          if (captures) {
            ASSERT_OK(device->begin_capture());
            ASSERT_OK(rounds.issue());
            auto graph = device->end_capture();
            ASSERT_OK(graph);
            status = device->replay(**graph);
            ASSERT_OK(status);
          } else {
            status = rounds.issue();
          }
          if (status.ok()) status = device->synchronize(Queue::kCompute);
          ASSERT_FALSE(status.ok()) << "the error has not come";
          expect_injected(status.error(), queue != Queue::kCompute ? "copy_start (layers.7)"
                                          : number == 1            ? "fill"
                                                                   : "add (layers.5)");
          const float rounds_done = number == 1 ? 0.0F : static_cast<float>(number) - 1;
          const float last = *std::max_element(rounds.out.host().begin(), rounds.out.host().end());
          EXPECT_LE(last, rounds_done + 1) << "what was queued behind the fault has run";
        }
}

TEST(DiscreteLog, OfAReplayEachPieceOfWorkWithItsTimes) {
  const auto device = make_discrete({.num_threads = 2});
  Rounds rounds(*device);
  ASSERT_OK(device->begin_capture());
  ASSERT_OK(rounds.issue());
  auto graph = device->end_capture();
  ASSERT_OK(graph);
  device->log_queues(true);
  const double begin = now_seconds();
  ASSERT_OK(device->replay(**graph));
  for (const Queue queue : kQueues) ASSERT_OK(device->synchronize(queue));
  const double end = now_seconds();
  const std::vector<runtime::QueueWork> log = device->take_queue_log();
  const auto count = [&](Queue queue) {
    return std::ranges::count_if(log, [&](const auto& work) { return work.queue == queue; });
  };
  EXPECT_EQ(count(Queue::kCompute), 4);  // a fill, then a sum a round
  EXPECT_EQ(count(Queue::kCopyIn), 3);
  EXPECT_EQ(count(Queue::kCopyOut), 3);
  for (const runtime::QueueWork& work : log) {
    EXPECT_LE(begin, work.start);
    EXPECT_LE(work.start + work.seconds, end);
    EXPECT_EQ(work.is_copy, work.queue != Queue::kCompute);
    if (work.is_copy) {
      EXPECT_EQ(work.bytes, 4 * 4000);
      EXPECT_EQ(work.op->layer, "layers.7");
    }
  }
  device->log_queues(false);
  ASSERT_OK(device->replay(**graph));
  for (const Queue queue : kQueues) ASSERT_OK(device->synchronize(queue));
  EXPECT_TRUE(device->take_queue_log().empty());
}

TEST(DiscreteFaults, EveryLaterCallBringsTheError) {
  const auto device = make_discrete({.fault = Fault{Queue::kCopyIn, 1}});
  Rounds rounds(*device);
  const auto& error = rounds.issue();
  const Status first = device->synchronize(Queue::kCompute);
  ASSERT_FALSE(first.ok());
  expect_injected(first.error(), "copy_start (layers.7)");
  const auto same = [&](const Status& status) {
    return !status.ok() && status.error().message() == first.error().message();
  };
  EXPECT_TRUE(error.ok() || same(error));
  EXPECT_TRUE(same(rounds.program.add(rounds.y, rounds.y, rounds.x)));
  EXPECT_TRUE(same(rounds.program.copy(rounds.x, rounds.in, Queue::kCopyOut)));
  EXPECT_TRUE(same(rounds.program.fill(rounds.x, 1, Queue::kCompute)));
  EXPECT_TRUE(same(device->record(rounds.left, Queue::kCopyIn)));
  EXPECT_TRUE(same(device->wait(Queue::kCopyIn, rounds.left)));
  EXPECT_TRUE(same(device->synchronize(rounds.left)));
  for (const Queue queue : kQueues) EXPECT_TRUE(same(device->synchronize(queue)));
  EXPECT_TRUE(same(device->begin_capture()));
  const auto memory = device->allocate(MemorySpace::kHostPinned, Bytes(1));
  EXPECT_TRUE(!memory.ok() && memory.error().message() == first.error().message());
}

/// What a queue may be writing at this moment: nobody else may look, so no sanitizer either.
#if defined(__SANITIZE_THREAD__)
__attribute__((no_sanitize("thread"), noinline))
#endif
float peeked(const float& value) {
  return *static_cast<const volatile float*>(&value);
}

TEST(DiscreteFaults, WhatHadBegunHasEndedWhenTheErrorComes) {
  constexpr int64_t kElements = 50'000;
  constexpr double kSeconds = 0.2;
  const auto device =
      make_discrete({.copy_bandwidth = 4 * kElements / kSeconds, .fault = Fault{Queue::kCompute, 2}});
  Program program(*device);
  const auto x = program.filled(kElements, 1), out = program.pinned(kElements, 0);
  const auto begin = Clock::now();
  ASSERT_OK(program.copy(out, x, Queue::kCopyOut));
  while (peeked(out.host().back()) == 0) std::this_thread::yield();  // it runs, and takes its time
  Status status = program.fill(x, 2, Queue::kCompute);
  while (status.ok()) status = device->record(device->make_event(), Queue::kCompute);
  EXPECT_GE(seconds_since(begin), kSeconds) << "its arrays would be freed under the copy";
}

TEST(DiscreteFaults, ACopyIsCutInTheMiddle) {
  const auto device = make_discrete({.fault = Fault{Queue::kCopyOut, 1}});
  Program program(*device);
  const auto x = program.filled(1000, 1), out = program.pinned(1000, 0);
  ASSERT_OK(program.copy(out, x, Queue::kCopyOut));
  EXPECT_FALSE(device->synchronize(Queue::kCopyOut).ok());
  EXPECT_EQ(std::count(out.host().begin(), out.host().end(), 1.0F), 500);
}

TEST(DiscreteFaults, ADiskThatFailsComesWithTheOpAndTheFileSystem) {
  const io::TemporaryFolder folder;
  const auto device = make_discrete({.disk_folder = folder.path()});
  Rounds rounds(*device);
  const auto disk = allocate(*device, MemorySpace::kDisk, 16'000);
  const auto previous = std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit{}, small{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
  small = {2048, limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status queued =
      device->copy({disk.get(), 0}, rounds.x.at(), Bytes(16'000), Queue::kCopyOut, &rounds.copy_op);
  const Status status = device->synchronize(Queue::kCopyOut);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  std::signal(SIGXFSZ, previous);
  EXPECT_TRUE(queued.ok());
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kIo);
  EXPECT_EQ(status.error().where.rfind("copy_start (layers.7): " + folder.path(), 0), 0U)
      << status.error().where;
}

TEST(DiscreteDevice, GoesWithWorkInItsQueues) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    auto device = make_discrete({.copy_bandwidth = 1e9, .seed = seed, .check = seed % 2 == 1});
    auto rounds = std::make_unique<Rounds>(*device);
    ASSERT_OK(device->begin_capture());
    ASSERT_OK(rounds->issue());
    auto graph = device->end_capture();
    ASSERT_OK(graph);
    for (int i = 0; i < 3; ++i) ASSERT_OK(device->replay(**graph));
    (*graph).reset();  // waits for its own; a piece of work behind it is dropped
    ASSERT_OK(rounds->issue());
    device.reset();
  }
}

TEST(DiscreteDevice, QueueingAllocatesNothing) {
  if (!kCounts) GTEST_SKIP() << "a sanitizer's malloc is not counted";
  for (const bool troubled : {false, true}) {
    DiscreteOptions options{.num_threads = 2, .check = troubled};
    if (troubled) options.seed = 5;
    const auto device = make_discrete(options);
    Rounds rounds(*device);
    ASSERT_OK(device->begin_capture());
    ASSERT_OK(rounds.issue());
    auto graph = device->end_capture();
    ASSERT_OK(graph);
    ir::Op op;
    op.def = ops::find_op("add");
    const runtime::TensorRef in[] = {rounds.y.ref(), rounds.x.ref()}, out[] = {rounds.y.ref()};
    const auto round = [&] {
      bool ok = device->replay(**graph).ok();
      for (int i = 0; i < 300; ++i)  // more than a ring holds
        ok = ok && device->launch({&op, in, out, {}}, Queue::kCompute).ok();
      ok = ok && rounds.program.copy(rounds.out, rounds.y, Queue::kCopyOut).ok();
      ok = ok && rounds.program.fill(rounds.x, 1, Queue::kCopyIn).ok();
      for (const Queue queue : kQueues) ok = ok && device->synchronize(queue).ok();
      return ok;
    };
    ASSERT_TRUE(round());
    const int64_t before = num_allocations();
    ASSERT_GT(before, 0);
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(round());
    EXPECT_EQ(num_allocations(), before) << (troubled ? "with checks and a seed" : "plain");
  }
}

// Lower bounds always hold; upper ones in one of a few tries, for the machine does other things too.
// Only lower bounds are near what they bound: what must not take long has a second or a minute to be late in.
TEST(DiscreteDevice, ACopyTakesNoLessThanItsBandwidth) {
  constexpr int64_t kLong = 1 << 14, kShort = 64;                 // elements
  constexpr double kSeconds = 0.5, kRate = 4 * kLong / kSeconds;  // of a long copy; bytes a second
  for (const uint64_t seed : {0, 1, 2}) {
    DiscreteOptions options{.copy_bandwidth = kRate};
    if (seed > 0) options.seed = seed;
    const auto device = make_discrete(options);
    Program program(*device);
    const auto x = program.filled(kLong, 1), y = program.filled(kShort, 1);
    const auto in = program.pinned(kLong, 2), out = program.pinned(kShort, 3);
    const auto begin = Clock::now();
    for (int i = 0; i < 2; ++i) ASSERT_OK(program.copy(x, in, Queue::kCopyIn));
    ASSERT_OK(program.copy(out, y, Queue::kCopyOut));
    ASSERT_OK(device->synchronize(Queue::kCopyOut));
    EXPECT_LT(seconds_since(begin), 2 * kSeconds) << "both directions run beside each other";
    ASSERT_OK(device->synchronize(Queue::kCopyIn));
    EXPECT_GE(seconds_since(begin), 2 * kSeconds) << "a queue copies one after the other";
  }
}

TEST(DiscreteDevice, WithinTheDeviceAndWithinTheHostCopiesHaveNoBound) {
  constexpr int64_t kElements = 1 << 14;
  constexpr double kSeconds = 60;
  const auto device = make_discrete({.copy_bandwidth = 4 * kElements / kSeconds});
  Program program(*device);
  const auto x = program.filled(kElements, 1), y = program.filled(kElements, 2);
  const auto in = program.pinned(kElements, 3), out = program.pinned(kElements, 4);
  const auto begin = Clock::now();
  ASSERT_OK(program.copy(x, y, Queue::kCompute));
  ASSERT_OK(program.copy(in, out, Queue::kCopyIn));
  for (const Queue queue : kQueues) ASSERT_OK(device->synchronize(queue));
  EXPECT_LT(seconds_since(begin), kSeconds);
}

}  // namespace
}  // namespace plimsoll::discrete::fixtures
