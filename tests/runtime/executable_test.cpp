// Programs on a device whose calls bring the error of work that was queued before.
#include "runtime/executable.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "ops/ops.h"
#include "runtime/session_testing.h"

namespace plimsoll::runtime {
namespace {

/// The CPU's device, but for an error that comes with the n-th call of a capture and with every call after
/// it.
class LateError final : public Device {
 public:
  explicit LateError(int call) : left_(call) {}
  [[nodiscard]] const Target& target() const override { return cpu_.target(); }
  Result<std::unique_ptr<Memory>> allocate(ir::MemorySpace space, Bytes bytes) override {
    return cpu_.allocate(space, bytes);
  }
  [[nodiscard]] Bytes peak_memory() const override { return cpu_.peak_memory(); }
  Status launch(const KernelCall& call, ir::Queue queue) override {
    return unless_failed([&] { return cpu_.launch(call, queue); });
  }
  Status copy(Location to, Location from, Bytes bytes, ir::Queue queue, const ir::Op* op) override {
    return unless_failed([&] { return cpu_.copy(to, from, bytes, queue, op); });
  }
  Status fill(Location to, Bytes bytes, uint32_t pattern, ir::Queue queue) override {
    return unless_failed([&] { return cpu_.fill(to, bytes, pattern, queue); });
  }
  EventId make_event() override { return cpu_.make_event(); }
  Status record(EventId event, ir::Queue queue) override {
    return unless_failed([&] { return cpu_.record(event, queue); });
  }
  Status wait(ir::Queue queue, EventId event) override {
    return unless_failed([&] { return cpu_.wait(queue, event); });
  }
  Status synchronize(ir::Queue queue) override {
    PLIMSOLL_TRY(cpu_.synchronize(queue));  // aborts while capturing
    return status();
  }
  Status synchronize(EventId event) override {
    PLIMSOLL_TRY(cpu_.synchronize(event));
    return status();
  }
  Status begin_capture() override {
    PLIMSOLL_TRY(status());
    capturing_ = true;
    return cpu_.begin_capture();
  }
  Result<std::unique_ptr<CapturedGraph>> end_capture() override {
    capturing_ = false;
    auto graph = cpu_.end_capture();
    PLIMSOLL_TRY(status());
    return graph;
  }
  Status replay(const CapturedGraph& graph) override {
    PLIMSOLL_TRY(status());
    return cpu_.replay(graph);
  }

 private:
  [[nodiscard]] Status status() const {
    if (left_ > 0) return Ok{};
    return Error{ErrorCode::kIo, "the device failed", "fill", ""};
  }
  template <typename Call>
  Status unless_failed(Call&& call) {
    if (capturing_) --left_;
    PLIMSOLL_TRY(status());
    return call();
  }

  cpu::CpuDevice cpu_{1};
  int left_;
  bool capturing_ = false;
};

TEST(Executable, AnErrorInTheMidstOfACaptureEndsIt) {
  ir::Graph graph;
  ir::Builder b(graph, ops::find_op);
  const ir::TensorType type{ir::DType::kF32, {4, 8}};
  const ir::ValueId w = b.state({"w", type, ir::StateClass::kParameter});
  graph.declare_state({"out", type, ir::StateClass::kOutput});
  b.assign("out", ops::silu(b, ops::silu(b, w)));
  ASSERT_TRUE(b.status().ok());
  int num_failed = 0;
  for (int call = 1; call <= 4; ++call) {
    LateError device(call);
    std::vector<passes::Program> programs;
    programs.push_back(*session_testing::plan_program(graph, device.target()));
    const auto session = Session::create(device, *passes::plan_session(std::move(programs)));
    if (session.ok()) continue;
    ++num_failed;
    EXPECT_EQ(session.error().what, "the device failed");
  }
  EXPECT_GE(num_failed, 2) << "at each of the launches";
  EXPECT_LT(num_failed, 4) << "and not without an error";
}

}  // namespace
}  // namespace plimsoll::runtime
