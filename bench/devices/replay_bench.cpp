// What a device costs beside its kernels: a captured sequence of 3,000 tiny ones, replayed and waited for;
// and the same launched one by one. Compare within one run only, best with
// --benchmark_enable_random_interleaving=true --benchmark_repetitions=5.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <memory>
#include <vector>

#include "backends/cpu/cpu_device.h"
#include "backends/cpu/kernels/isa.h"
#include "backends/discrete/discrete_device.h"
#include "base/check.h"
#include "ops/op_list.h"

namespace plimsoll {
namespace {

using ir::Queue;

constexpr int kLaunches = 3000;
constexpr int64_t kElements = 64;

void expect_ok(const Status& status) { PLIMSOLL_CHECK(status.ok(), status ? "" : status.error().message()); }

enum class Kind { kCpu, kDiscrete, kChecking, kAdversary };

std::unique_ptr<runtime::Device> make(Kind kind) {
  if (kind == Kind::kCpu) return std::make_unique<cpu::CpuDevice>(2);
  discrete::DiscreteOptions options{.num_threads = 2, .check = kind == Kind::kChecking};
  if (kind == Kind::kAdversary) options.seed = 1;
  auto device = discrete::DiscreteDevice::create(options);
  PLIMSOLL_CHECK(device.ok());
  return std::move(*device);
}

/// y = y + x, again and again.
struct Adds {
  std::unique_ptr<runtime::Device> device;
  std::unique_ptr<runtime::Memory> memory;
  ir::Op op;
  std::vector<runtime::TensorRef> in, out;

  explicit Adds(Kind kind) : device(make(kind)) {
    auto allocated = device->allocate(ir::MemorySpace::kDevice, Bytes(8 * kElements));
    PLIMSOLL_CHECK(allocated.ok());
    memory = std::move(*allocated);
    expect_ok(device->fill({memory.get(), 0}, memory->size(), 0, Queue::kCompute));
    const ir::Shape shape{kElements};
    const runtime::TensorRef x{memory->address(), {ir::DType::kF32, shape}, ir::dense_strides(shape)};
    runtime::TensorRef y = x;
    y.data += 4 * kElements;
    op.def = ops::find_op("add");
    in = {y, x};
    out = {y};
  }
  void launch() {
    for (int i = 0; i < kLaunches; ++i) expect_ok(device->launch({&op, in, out, {}}, Queue::kCompute));
  }
};

void replay(benchmark::State& state, Kind kind) {
  Adds adds(kind);
  expect_ok(adds.device->begin_capture());
  adds.launch();
  auto graph = adds.device->end_capture();
  PLIMSOLL_CHECK(graph.ok());
  for (auto _ : state) {
    expect_ok(adds.device->replay(**graph));
    expect_ok(adds.device->synchronize(Queue::kCompute));
  }
}

void launches(benchmark::State& state, Kind kind) {
  Adds adds(kind);
  for (auto _ : state) {
    adds.launch();
    expect_ok(adds.device->synchronize(Queue::kCompute));
  }
}

BENCHMARK_CAPTURE(replay, cpu, Kind::kCpu)->MeasureProcessCPUTime()->UseRealTime();
BENCHMARK_CAPTURE(replay, discrete, Kind::kDiscrete)->MeasureProcessCPUTime()->UseRealTime();
BENCHMARK_CAPTURE(replay, checking, Kind::kChecking)->MeasureProcessCPUTime()->UseRealTime();
BENCHMARK_CAPTURE(replay, adversary, Kind::kAdversary)->MeasureProcessCPUTime()->UseRealTime();
BENCHMARK_CAPTURE(launches, cpu, Kind::kCpu)->MeasureProcessCPUTime()->UseRealTime();
BENCHMARK_CAPTURE(launches, discrete, Kind::kDiscrete)->MeasureProcessCPUTime()->UseRealTime();

}  // namespace
}  // namespace plimsoll

int main(int argc, char** argv) {
  if (!plimsoll::cpu::select_isa(std::getenv("PLIMSOLL_ISA"))) return 2;
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
