#include "profiling/queue_trace.h"

#include <gtest/gtest.h>

#include "io/json.h"
#include "io/tree.h"

namespace plimsoll::profiling {
namespace {

using ir::Queue;

//  compute   ████    ████
//  copy_in     ███
//  copy_out       ██
//            0 . . . . 5 . . 8
QueueLog one_step() {
  return {.work = {{.queue = Queue::kCompute, .start = 100, .seconds = 2},
                   {.queue = Queue::kCompute, .start = 104, .seconds = 2},
                   {.queue = Queue::kCopyIn, .is_copy = true, .bytes = 30, .start = 101, .seconds = 2},
                   {.queue = Queue::kCopyOut, .is_copy = true, .bytes = 50, .start = 102.5, .seconds = 2}},
          .steps = 1,
          .start = 100,
          .seconds = 8};
}

TEST(QueueTrace, CopiesBesideKernelsAndWaits) {
  const QueueShares shares = queue_shares(one_step());
  const auto& [compute, in, out, host, network] = shares.queues;
  EXPECT_EQ(shares.step_seconds, 8);
  EXPECT_EQ(compute.busy_seconds, 4);
  EXPECT_EQ(compute.bytes, 0);
  EXPECT_EQ(in.busy_seconds, 2);
  EXPECT_EQ(in.beside_kernels_seconds, 1);
  EXPECT_EQ(in.bytes, 30);
  EXPECT_EQ(out.beside_kernels_seconds, 0.5);
  EXPECT_EQ(host.busy_seconds, 0);
  EXPECT_EQ(network.busy_seconds, 0);
  EXPECT_EQ(shares.waiting_seconds, 2);  // both at once count once
}

TEST(QueueTrace, SharesAreOfAStep) {
  QueueLog log = one_step();
  for (runtime::QueueWork work : one_step().work) {
    work.start += 8;
    log.work.push_back(work);
  }
  log.steps = 2, log.seconds = 16;
  const QueueShares shares = queue_shares(log);
  EXPECT_EQ(shares.step_seconds, 8);
  EXPECT_EQ(shares.queues[1].beside_kernels_seconds, 1);
  EXPECT_EQ(shares.queues[2].bytes, 50);
  EXPECT_EQ(shares.waiting_seconds, 2);
}

TEST(QueueTrace, ALaneAQueue) {
  const auto trace = io::parse_json(queue_trace(one_step()));
  ASSERT_TRUE(trace) << trace.error().message();
  std::string lanes, works;
  for (const io::Tree& e : trace->find("traceEvents")->items) {
    if (e.find("name")->text == "thread_name")
      lanes += e.find("tid")->text + ":" + e.find("args")->find("name")->text + " ";
    if (e.find("ph")->text == "X")
      works += e.find("tid")->text + "@" + e.find("ts")->text + "+" + e.find("dur")->text + " ";
  }
  EXPECT_EQ(lanes, "1:compute 2:copy_in 3:copy_out 4:host 5:network ");
  EXPECT_EQ(works,
            "1@0.000+2000000.000 1@4000000.000+2000000.000 2@1000000.000+2000000.000 "
            "3@2500000.000+2000000.000 ");
}

TEST(QueueTrace, NoStepsAreNoShares) { EXPECT_EQ(queue_shares({}).waiting_seconds, 0); }

}  // namespace
}  // namespace plimsoll::profiling
