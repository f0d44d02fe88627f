// Devices and small programs for them, for tests that hold any device to its contract.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "backends/cpu/cpu_device.h"
#include "backends/discrete/discrete_device.h"
#include "io/temporary_folder.h"
#include "ops/op_list.h"

namespace plimsoll::discrete::fixtures {

using ir::MemorySpace;
using ir::Queue;
using runtime::Device;
using runtime::Location;
using runtime::Memory;

inline constexpr MemorySpace kSpaces[] = {MemorySpace::kDevice, MemorySpace::kHostPinned,
                                          MemorySpace::kHostPageable, MemorySpace::kDisk};
inline constexpr Queue kQueues[] = {Queue::kCompute, Queue::kCopyIn, Queue::kCopyOut};

#define ASSERT_OK(expr)                                         \
  do {                                                          \
    const auto& assert_ok = (expr);                             \
    ASSERT_TRUE(assert_ok.ok()) << assert_ok.error().message(); \
  } while (false)

inline std::unique_ptr<DiscreteDevice> make_discrete(const DiscreteOptions& options) {
  auto device = DiscreteDevice::create(options);
  PLIMSOLL_CHECK(device.ok(), device ? "" : device.error().message());
  return std::move(*device);
}

inline std::unique_ptr<Memory> allocate(Device& device, MemorySpace space, int64_t bytes) {
  auto memory = device.allocate(space, Bytes(bytes));
  PLIMSOLL_CHECK(memory.ok(), memory ? "" : memory.error().message());
  return std::move(*memory);
}

/// f32 values on a device, and kernels over them: y = a + b.
class Program {
 public:
  explicit Program(Device& device) : device_(device) {}

  struct Array {
    std::unique_ptr<Memory> memory;
    int64_t count = 0;
    [[nodiscard]] Location at(int64_t index = 0) const { return {memory.get(), 4 * index}; }
    [[nodiscard]] Bytes bytes() const { return Bytes(4 * count); }
    [[nodiscard]] runtime::TensorRef ref() const {
      const ir::Shape shape{count};
      return {memory->address(), {ir::DType::kF32, shape}, ir::dense_strides(shape)};
    }
    [[nodiscard]] std::span<float> host() const {
      return {reinterpret_cast<float*>(memory->host().data()), static_cast<size_t>(count)};
    }
  };

  Array array(MemorySpace space, int64_t count) { return {allocate(device_, space, 4 * count), count}; }
  /// Pinned memory with the value everywhere.
  Array pinned(int64_t count, float value) {
    Array a = array(MemorySpace::kHostPinned, count);
    std::fill(a.host().begin(), a.host().end(), value);
    return a;
  }
  /// Device memory with the value everywhere, whoever asks.
  Array filled(int64_t count, float value) {
    Array a = array(MemorySpace::kDevice, count);
    const Status status = fill(a, value, Queue::kCompute);
    PLIMSOLL_CHECK(status.ok() && device_.synchronize(Queue::kCompute).ok());
    return a;
  }

  Status add(const Array& y, const Array& a, const Array& b, Queue queue = Queue::kCompute,
             const std::string& layer = "") {
    Bound& bound = bound_.emplace_back();
    bound.op.def = ops::find_op("add");
    bound.op.layer = layer;
    bound.in = {a.ref(), b.ref()};
    bound.out = {y.ref()};
    return device_.launch({&bound.op, bound.in, bound.out, {}}, queue);
  }
  Status copy(const Array& to, const Array& from, Queue queue, const ir::Op* op = nullptr) {
    return device_.copy(to.at(), from.at(), to.bytes(), queue, op);
  }
  Status fill(const Array& to, float value, Queue queue) {
    return device_.fill(to.at(), to.bytes(), std::bit_cast<uint32_t>(value), queue);
  }
  /// What lies there once all queues have ended.
  std::vector<float> read(const Array& from) {
    for (const Queue queue : kQueues) PLIMSOLL_CHECK(device_.synchronize(queue).ok());
    const Array staging = array(MemorySpace::kHostPinned, from.count);
    PLIMSOLL_CHECK(copy(staging, from, Queue::kCopyOut).ok() && device_.synchronize(Queue::kCopyOut).ok());
    return {staging.host().begin(), staging.host().end()};
  }

 private:
  struct Bound {
    ir::Op op;
    std::vector<runtime::TensorRef> in, out;
  };
  Device& device_;
  std::deque<Bound> bound_;  // outlives every launch and replay
};

}  // namespace plimsoll::discrete::fixtures
