// A device that errs once: one bit of one result of one kernel or copy.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "ir/op_def.h"
#include "runtime/device.h"

namespace plimsoll::session_testing {

/// On a device whose memory the host reaches, and that is done when a call returns.
class FlippingDevice : public runtime::Device {
 public:
  explicit FlippingDevice(runtime::Device& device) : device_(device) {}

  /// What runs `after` calls from now gives a bit of its result `result` (counted round) wrongly; negative:
  /// nothing does. `bit` is counted round too.
  void flip(int64_t after, uint64_t result = 0, uint64_t bit = 0) {
    left_ = after, result_ = result, bit_ = bit, calls_ = 0, flipped_.clear();
  }
  /// Kernels and ops' copies that have run since flip().
  [[nodiscard]] int64_t calls() const { return calls_; }
  /// The op that was given a wrong result; empty: none.
  [[nodiscard]] const std::string& flipped() const { return flipped_; }

  [[nodiscard]] const runtime::Target& target() const override { return device_.target(); }
  Result<std::unique_ptr<runtime::Memory>> allocate(ir::MemorySpace space, Bytes bytes) override {
    return device_.allocate(space, bytes);
  }
  [[nodiscard]] Bytes peak_memory() const override { return device_.peak_memory(); }
  Status launch(const runtime::KernelCall& call, ir::Queue queue) override {
    PLIMSOLL_TRY(device_.launch(call, queue));
    if (capturing_ || !is_next()) return Ok{};
    const runtime::TensorRef& out = call.outputs[result_ % call.outputs.size()];
    const int64_t row = out.type.shape.dim(-1);  // contiguous, also of a view
    const ir::TensorType first{out.type.dtype, out.is_dense() ? out.type.shape : ir::Shape{row}};
    change(out.data, first.bytes().count, *call.op);
    return Ok{};
  }
  Status copy(runtime::Location to, runtime::Location from, Bytes bytes, ir::Queue queue,
              const ir::Op* op) override {
    PLIMSOLL_TRY(device_.copy(to, from, bytes, queue, op));
    if (capturing_ || op == nullptr || !is_next()) return Ok{};
    change(to.memory->address() + to.offset, bytes.count, *op);
    return Ok{};
  }
  Status fill(runtime::Location to, Bytes bytes, uint32_t pattern, ir::Queue queue) override {
    return device_.fill(to, bytes, pattern, queue);
  }
  runtime::EventId make_event() override { return device_.make_event(); }
  Status record(runtime::EventId event, ir::Queue queue) override { return device_.record(event, queue); }
  Status wait(ir::Queue queue, runtime::EventId event) override { return device_.wait(queue, event); }
  Status synchronize(ir::Queue queue) override { return device_.synchronize(queue); }
  Status synchronize(runtime::EventId event) override { return device_.synchronize(event); }
  Status begin_capture() override {
    capturing_ = true;
    return device_.begin_capture();
  }
  Result<std::unique_ptr<runtime::CapturedGraph>> end_capture() override {
    capturing_ = false;
    return device_.end_capture();
  }
  Status replay(const runtime::CapturedGraph& graph) override { return device_.replay(graph); }

 private:
  bool is_next() {
    ++calls_;
    return left_ >= 0 && left_-- == 0;
  }
  void change(std::byte* data, int64_t bytes, const ir::Op& op) {
    const uint64_t bit = bit_ % (static_cast<uint64_t>(bytes) * 8);
    data[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    flipped_ = std::string(op.def->name);
  }

  runtime::Device& device_;
  bool capturing_ = false;
  int64_t left_ = -1, calls_ = 0;
  uint64_t result_ = 0, bit_ = 0;
  std::string flipped_;
};

}  // namespace plimsoll::session_testing
