// What an NVIDIA card does through this backend: launches one by one and replayed from a graph, copies each
// way alone and beside a product, products by dtype. Real time with the card waited for. Ends with 0 and one
// line where there is no card.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "backends/cuda/cuda_device.h"
#include "base/check.h"
#include "ops/op_list.h"

namespace plimsoll {
namespace {

using ir::MemorySpace;
using ir::Queue;
using runtime::Memory;

void expect_ok(const Status& status) { PLIMSOLL_CHECK(status.ok(), status ? "" : status.error().message()); }

cuda::CudaDevice& card() {
  static const std::unique_ptr<cuda::CudaDevice> device = [] {
    auto made = cuda::CudaDevice::create({});
    PLIMSOLL_CHECK(made.ok(), made ? "" : made.error().message());
    return std::move(*made);
  }();
  return *device;
}

std::unique_ptr<Memory> take(MemorySpace space, int64_t bytes) {
  auto memory = card().allocate(space, Bytes(bytes));
  PLIMSOLL_CHECK(memory.ok(), memory ? "" : memory.error().message());
  if (space == MemorySpace::kDevice)
    expect_ok(card().fill({(*memory).get(), 0}, Bytes(bytes), 0x3C003C00, Queue::kCompute));
  expect_ok(card().synchronize(Queue::kCompute));
  return std::move(*memory);
}

/// An op over operands of its own.
struct Bound {
  std::vector<std::unique_ptr<Memory>> memory;
  ir::Op op;
  std::vector<runtime::TensorRef> in, out;
  std::unique_ptr<Memory> workspace;

  runtime::TensorRef tensor(ir::DType dtype, const ir::Shape& shape) {
    const ir::TensorType type{dtype, shape};
    memory.push_back(take(MemorySpace::kDevice, type.bytes().count));
    return {memory.back()->address(), type, ir::dense_strides(shape)};
  }
  void finish(const char* name) {
    op.def = ops::find_op(name);
    ir::OpTypes types{name, {}, {}, op.attrs};
    for (const auto& ref : in) types.inputs.push_back(ref.type);
    for (const auto& ref : out) types.outputs.push_back(ref.type);
    if (const int64_t bytes = card().target().workspace_bytes(types); bytes > 0)
      workspace = take(MemorySpace::kDevice, bytes);
  }
  void launch() const {
    std::span<std::byte> scratch;
    if (workspace != nullptr) scratch = {workspace->address(), static_cast<size_t>(workspace->size().count)};
    expect_ok(card().launch({&op, in, out, scratch}, Queue::kCompute));
  }
};

std::unique_ptr<runtime::CapturedGraph> captured(const Bound& bound, int times) {
  expect_ok(card().begin_capture());
  for (int i = 0; i < times; ++i) bound.launch();
  auto graph = card().end_capture();
  PLIMSOLL_CHECK(graph.ok(), graph ? "" : graph.error().message());
  return std::move(*graph);
}

// ---- launches: y = y + x over 64 elements

constexpr int kLaunches = 3000;

Bound small_add() {
  Bound bound;
  const auto y = bound.tensor(ir::DType::kF32, {64});
  bound.in = {y, bound.tensor(ir::DType::kF32, {64})};
  bound.out = {y};
  bound.finish("add");
  return bound;
}

void launches(benchmark::State& state) {
  const Bound add = small_add();
  for (auto _ : state) {
    for (int i = 0; i < kLaunches; ++i) add.launch();
    expect_ok(card().synchronize(Queue::kCompute));
  }
  state.counters["us_a_launch"] = benchmark::Counter(
      kLaunches / 1e6, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void replay(benchmark::State& state) {
  const Bound add = small_add();
  const auto graph = captured(add, kLaunches);
  for (auto _ : state) {
    expect_ok(card().replay(*graph));
    expect_ok(card().synchronize(Queue::kCompute));
  }
  state.counters["us_a_launch"] = benchmark::Counter(
      kLaunches / 1e6, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

// ---- products: [m, k] [n, k]ᵀ

Bound product(ir::DType dtype, bool tf32, int64_t m, int64_t n, int64_t k) {
  Bound bound;
  bound.in = {bound.tensor(dtype, {m, k}), bound.tensor(dtype, {n, k}), {}};
  bound.out = {bound.tensor(dtype, {m, n})};
  bound.op.attrs.set("transposed", false);
  if (tf32) bound.op.attrs.set("precision", std::string("tf32"));
  bound.finish("linear");
  return bound;
}

void multiply(benchmark::State& state, ir::DType dtype, bool tf32) {
  const int64_t m = state.range(0), n = state.range(1), k = state.range(2);
  constexpr int kTimes = 20;
  const Bound bound = product(dtype, tf32, m, n, k);
  const auto graph = captured(bound, kTimes);
  for (auto _ : state) {
    expect_ok(card().replay(*graph));
    expect_ok(card().synchronize(Queue::kCompute));
  }
  state.counters["TFLOP/s"] = benchmark::Counter(
      2e-12 * kTimes * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k),
      benchmark::Counter::kIsIterationInvariantRate);
}

// ---- copies of 256 MiB

constexpr int64_t kCopied = int64_t{256} << 20;

void copies(benchmark::State& state, MemorySpace host, bool in, bool out, bool computes) {
  const auto from = take(host, kCopied), to = take(host, kCopied);
  const auto here = take(MemorySpace::kDevice, kCopied), there = take(MemorySpace::kDevice, kCopied);
  const Bound bound = product(ir::DType::kBf16, false, 4096, 4096, 4096);
  const auto graph = captured(bound, 60);
  for (auto _ : state) {
    if (computes) expect_ok(card().replay(*graph));
    if (in) expect_ok(card().copy({here.get(), 0}, {from.get(), 0}, Bytes(kCopied), Queue::kCopyIn));
    if (out) expect_ok(card().copy({to.get(), 0}, {there.get(), 0}, Bytes(kCopied), Queue::kCopyOut));
    for (const Queue queue : {Queue::kCopyIn, Queue::kCopyOut, Queue::kCompute})
      expect_ok(card().synchronize(queue));
  }
  state.counters["GB/s"] = benchmark::Counter(1e-9 * kCopied * (int{in} + int{out}),
                                              benchmark::Counter::kIsIterationInvariantRate);
}

void within(benchmark::State& state) {
  const auto from = take(MemorySpace::kDevice, kCopied), to = take(MemorySpace::kDevice, kCopied);
  for (auto _ : state) {
    for (int i = 0; i < 10; ++i)
      expect_ok(card().copy({to.get(), 0}, {from.get(), 0}, Bytes(kCopied), Queue::kCompute));
    expect_ok(card().synchronize(Queue::kCompute));
  }
  state.counters["GB/s"] =
      benchmark::Counter(2e-8 * kCopied, benchmark::Counter::kIsIterationInvariantRate);  // read and written
}

void shapes(benchmark::internal::Benchmark* bench) {
  bench->Args({8192, 8192, 8192})->Args({4096, 4096, 4096})->Args({2048, 1536, 576})->Args({512, 3072, 576});
}

BENCHMARK(launches)->UseRealTime();
BENCHMARK(replay)->UseRealTime();
BENCHMARK_CAPTURE(multiply, f32, ir::DType::kF32, false)->UseRealTime()->Apply(shapes);
BENCHMARK_CAPTURE(multiply, tf32, ir::DType::kF32, true)->UseRealTime()->Apply(shapes);
BENCHMARK_CAPTURE(multiply, bf16, ir::DType::kBf16, false)->UseRealTime()->Apply(shapes);
BENCHMARK_CAPTURE(multiply, f16, ir::DType::kF16, false)->UseRealTime()->Apply(shapes);
BENCHMARK_CAPTURE(copies, pinned_in, MemorySpace::kHostPinned, true, false, false)->UseRealTime();
BENCHMARK_CAPTURE(copies, pinned_out, MemorySpace::kHostPinned, false, true, false)->UseRealTime();
BENCHMARK_CAPTURE(copies, pinned_both, MemorySpace::kHostPinned, true, true, false)->UseRealTime();
BENCHMARK_CAPTURE(copies, pageable_in, MemorySpace::kHostPageable, true, false, false)->UseRealTime();
BENCHMARK_CAPTURE(copies, pageable_out, MemorySpace::kHostPageable, false, true, false)->UseRealTime();
BENCHMARK_CAPTURE(copies, no_copy_60_products, MemorySpace::kHostPinned, false, false, true)->UseRealTime();
BENCHMARK_CAPTURE(copies, both_beside_60_products, MemorySpace::kHostPinned, true, true, true)->UseRealTime();
BENCHMARK(within)->UseRealTime();

}  // namespace
}  // namespace plimsoll

int main(int argc, char** argv) {
  if (const auto info = plimsoll::cuda::card_info(0); !info) {
    std::puts(("no card: " + info.error().message()).c_str());
    return 0;
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
