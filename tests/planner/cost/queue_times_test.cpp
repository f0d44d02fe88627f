// Programs of a few copies and kernels, whose times are reckoned by hand.
#include "planner/cost/queue_times.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "ir/builder.h"
#include "ir/network_queue.h"
#include "ops/op_list.h"
#include "ops/ops.h"
#include "ops/ranks.h"

namespace plimsoll::planner {
namespace {

using ir::MemorySpace;

/// A copy of 400 bytes takes 4 s in, 8 s out; from the disk 40 s, to it 400 s.
MachineProfile link() {
  MachineProfile profile;
  profile.copy_in_bandwidth = 100;
  profile.copy_out_bandwidth = 50;
  profile.disk_read_bandwidth = 10;
  profile.disk_write_bandwidth = 1;
  return profile;
}

TEST(CopyRates, AreByDirectionAndPlace) {
  using enum MemorySpace;
  EXPECT_EQ(copy_rates(link(), kHostPinned, kDevice).alone, 100);
  EXPECT_EQ(copy_rates(link(), kDevice, kHostPinned).alone, 50);
  EXPECT_EQ(copy_rates(link(), kDisk, kDevice).alone, 10);
  EXPECT_EQ(copy_rates(link(), kDevice, kDisk).alone, 1);
  EXPECT_EQ(copy_rates({}, kDisk, kDevice).alone, kUnknownDiskBandwidth) << "of which nothing is known";
  MachineProfile quick = link();
  quick.disk_read_bandwidth = quick.disk_write_bandwidth = 1000;
  EXPECT_EQ(copy_rates(quick, kDisk, kDevice).alone, 100) << "a disk is behind the link";
  EXPECT_EQ(copy_rates(quick, kDevice, kDisk).alone, 50);
}

TEST(CopyRates, WhatIsNotKnownCostsNothing) {
  using enum MemorySpace;
  const CopyRates rates = copy_rates(link(), kDisk, kDevice);
  EXPECT_EQ(rates.beside_copy, 1);
  EXPECT_EQ(rates.beside_kernels, 1);
  EXPECT_EQ(rates.kernel_seconds, 0);
}

class Queues : public testing::Test {
 protected:
  Queues() : b_(graph_, ops::find_op) {}
  ir::ValueId state(const std::string& name, MemorySpace space) {
    return b_.state({name, {ir::DType::kF32, {100}}, ir::StateClass::kParameter, space});
  }
  /// A kernel of that many seconds.
  ir::ValueId kernel(ir::ValueId x, double seconds) {
    const ir::ValueId y = ops::silu(b_, x);
    at_[y.index] = seconds;
    return y;
  }
  /// One that the host runs.
  ir::ValueId on_host(ir::ValueId x, double seconds) {
    const ir::OpId id = graph_.append(
        ir::Op{.def = ops::find_op("silu"), .inputs = {x}, .queue = ir::Queue::kHost}, {graph_.type(x)});
    const ir::ValueId y = graph_.op(id).outputs[0];
    at_[y.index] = seconds;
    return y;
  }
  double waiting(bool network_is_apart = true) {
    EXPECT_TRUE(b_.status().ok());
    std::vector<double> seconds;
    for (const ir::OpId id : graph_.order()) {
      const auto& outputs = graph_.op(id).outputs;
      seconds.push_back(outputs.empty() || !at_.contains(outputs[0].index) ? 0 : at_[outputs[0].index]);
    }
    return waiting_seconds(queue_program(graph_), seconds, profile_, network_is_apart);
  }

  ir::Graph graph_;
  ir::Builder b_;
  std::map<int32_t, double> at_;
  MachineProfile profile_ = link();
};

/// What comes of an exchange of four seconds beside a kernel of three.
TEST_F(Queues, RanksExchangeBesideKernels) {
  const ir::ValueId x = state("x", MemorySpace::kDevice);
  const ir::ValueId received = ops::exchange(b_, x, 2);
  graph_.op(graph_.value(received).producer).queue = ir::kNetworkQueue;
  at_[received.index] = 4;
  kernel(x, 3);
  kernel(ops::sum_ranks(b_, received), 5);
  EXPECT_EQ(waiting(), 1);
  EXPECT_EQ(waiting(/*network_is_apart=*/false), 4) << "the processor does both";
}

TEST_F(Queues, ALoadHidesBehindKernels) {
  const ir::ValueId x = state("x", MemorySpace::kDevice), w = state("w", MemorySpace::kHostPinned);
  const ir::ValueId copy = ops::copy_start(b_, w, MemorySpace::kDevice);
  kernel(x, 3);
  kernel(ops::copy_done(b_, copy), 5);
  EXPECT_EQ(waiting(), 1) << "of four seconds three are behind a kernel";
}

TEST_F(Queues, ALoadOnDemandIsWaitedFor) {
  const ir::ValueId x = state("x", MemorySpace::kDevice), w = state("w", MemorySpace::kHostPinned);
  kernel(x, 3);
  const ir::ValueId copy = ops::copy_start(b_, w, MemorySpace::kDevice);
  kernel(ops::copy_done(b_, copy), 5);
  EXPECT_EQ(waiting(), 4);
}

TEST_F(Queues, LoadsOfOneQueueComeOneAfterTheOther) {
  const ir::ValueId v = state("v", MemorySpace::kHostPinned), w = state("w", MemorySpace::kHostPinned);
  const ir::ValueId first = ops::copy_start(b_, v, MemorySpace::kDevice);
  const ir::ValueId second = ops::copy_start(b_, w, MemorySpace::kDevice);
  kernel(ops::copy_done(b_, first), 1);
  kernel(ops::copy_done(b_, second), 1);
  EXPECT_EQ(waiting(), 4 + 3);
}

TEST_F(Queues, AStoreRunsBesideKernelsUntilItsEnd) {
  const ir::ValueId x = state("x", MemorySpace::kDevice);
  const ir::ValueId y = kernel(x, 2);
  const ir::ValueId copy = ops::copy_start(b_, y, MemorySpace::kHostPinned);
  kernel(x, 5);
  ops::copy_done(b_, copy);
  kernel(x, 1);
  EXPECT_EQ(waiting(), 3) << "of eight seconds five are behind a kernel";
}

TEST_F(Queues, AStoreBeginsWhenItsSourceIsThereAndNotAtItsPlace) {
  const ir::ValueId x = state("x", MemorySpace::kDevice);
  const ir::ValueId y = kernel(x, 2);
  kernel(x, 5);
  ops::copy_done(b_, ops::copy_start(b_, y, MemorySpace::kHostPinned));
  EXPECT_EQ(waiting(), 3);
}

TEST_F(Queues, BothWaysOfADiskAreSlowerThanEach) {
  profile_.disk_read_bandwidth = profile_.disk_write_bandwidth = 10;
  profile_.disk_read_beside_write = 5;   // 40 s become 80 beside the write
  profile_.disk_write_beside_read = 10;  // which takes 40 s as ever
  const ir::ValueId x = state("x", MemorySpace::kDevice), w = state("w", MemorySpace::kDisk);
  const ir::ValueId out = ops::copy_start(b_, x, MemorySpace::kDisk);
  kernel(ops::copy_done(b_, ops::copy_start(b_, w, MemorySpace::kDevice)), 1);
  ops::copy_done(b_, out);
  EXPECT_EQ(waiting(), 60) << "40 s at half the rate, the other half in 20 s";
}

TEST_F(Queues, CopiesOfMemoryDoNotShareADisk) {
  profile_.disk_read_beside_write = 1;
  const ir::ValueId x = state("x", MemorySpace::kDevice), w = state("w", MemorySpace::kDisk);
  const ir::ValueId out = ops::copy_start(b_, x, MemorySpace::kHostPinned);
  kernel(ops::copy_done(b_, ops::copy_start(b_, w, MemorySpace::kDevice)), 1);
  ops::copy_done(b_, out);
  EXPECT_EQ(waiting(), 40);
}

TEST_F(Queues, KernelsAndCopiesTakeFromEachOther) {
  profile_.copy_in_beside_kernels = 50;  // half the rate: 4 s become 8
  profile_.copy_kernel_seconds = 0.5;    // and a kernel takes half as long again
  const ir::ValueId x = state("x", MemorySpace::kDevice), w = state("w", MemorySpace::kHostPinned);
  const ir::ValueId copy = ops::copy_start(b_, w, MemorySpace::kDevice);
  kernel(x, 4);  // 6 s, in which three quarters are copied
  kernel(ops::copy_done(b_, copy), 5);
  EXPECT_EQ(waiting(), 2 + 1) << "longer, and the last quarter at the whole rate";
}

TEST_F(Queues, TheHostComputesBesideTheDevice) {
  profile_.memory_bytes = 1;  // a card, whose host is another processor
  const ir::ValueId x = state("x", MemorySpace::kDevice);
  const ir::ValueId there = ops::copy_done(b_, ops::copy_start(b_, x, MemorySpace::kHostPinned));
  const ir::ValueId back = ops::copy_start(b_, on_host(there, 3), MemorySpace::kDevice);
  kernel(x, 10);  // out 0 to 8, the host 8 to 11, in 11 to 15
  kernel(ops::copy_done(b_, back), 1);
  EXPECT_EQ(waiting(), 5);
}

TEST_F(Queues, OfWhatTheHostReadsTheDevicesBytesAreWaitedForAlone) {
  profile_.memory_bytes = 1;
  const ir::ValueId x = state("x", MemorySpace::kDevice);
  const ir::ValueId made = kernel(x, 2);
  const ir::ValueId there = ops::copy_done(b_, ops::copy_start(b_, made, MemorySpace::kHostPinned));
  kernel(x, 10);  // from 10 on: the copy has the bytes of what was made until then; the host until 13
  on_host(there, 3);
  EXPECT_EQ(waiting(), 8);
}

TEST_F(Queues, OnOneProcessorHostAndDeviceGetHalfOfItEach) {
  const ir::ValueId x = state("x", MemorySpace::kDevice), w = state("w", MemorySpace::kHostPinned);
  on_host(w, 3);
  kernel(x, 10);
  EXPECT_EQ(waiting(), 3);
}

TEST_F(Queues, AKernelIsLongerOnlyWhileACopyIsUnderWay) {
  profile_.copy_kernel_seconds = 1;
  const ir::ValueId x = state("x", MemorySpace::kDevice), w = state("w", MemorySpace::kHostPinned);
  const ir::ValueId copy = ops::copy_start(b_, w, MemorySpace::kDevice);
  kernel(x, 10);  // 4 s at half the pace, then 8
  kernel(ops::copy_done(b_, copy), 5);
  EXPECT_EQ(waiting(), 2);
}

}  // namespace
}  // namespace plimsoll::planner
