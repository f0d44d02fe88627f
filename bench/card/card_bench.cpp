// What an NVIDIA card does through this backend: launches one by one and replayed from a graph, copies each
// way alone and beside a product, products by dtype, ops (ops_bench.cpp). Real time with the card waited for.
// Ends with 0 and one line where there is no card. `bench_card --compile 80 90` compiles the kernels into the
// cache, without a card. --small takes small shapes, --once one launch a graph (bound.h).
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/cuda/kernels/attention/mma_attention.h"
#include "backends/cuda/module.h"
#include "backends/cuda/source.h"
#include "bound.h"

namespace plimsoll {
namespace {

using bench::Bound;
using bench::captured;
using bench::card;
using bench::expect_ok;
using bench::take;
using ir::MemorySpace;
using ir::Queue;

// ---- launches: y = y + x over 64 elements

int num_launches() { return bench::options().small ? 30 : 3000; }

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
    for (int i = 0; i < num_launches(); ++i) add.launch();
    expect_ok(card().synchronize(Queue::kCompute));
  }
  state.counters["us_a_launch"] = benchmark::Counter(
      num_launches() / 1e6, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void replay(benchmark::State& state) {
  const Bound add = small_add();
  const auto graph = captured(add, num_launches());
  for (auto _ : state) {
    bench::run(*graph);
  }
  state.counters["us_a_launch"] = benchmark::Counter(
      num_launches() / 1e6, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
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
  const int64_t m = bench::extent(state.range(0)), n = bench::extent(state.range(1)),
                k = bench::extent(state.range(2));
  const int times = bench::times(20);
  const Bound bound = product(dtype, tf32, m, n, k);
  const auto graph = captured(bound, times);
  for (auto _ : state) {
    bench::run(*graph);
  }
  state.counters["TFLOP/s"] = benchmark::Counter(
      2e-12 * times * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k),
      benchmark::Counter::kIsIterationInvariantRate);
}

// ---- copies of 256 MiB

int64_t copied() { return int64_t{bench::options().small ? 1 : 256} << 20; }

void copies(benchmark::State& state, MemorySpace host, bool in, bool out, bool computes) {
  const auto from = take(host, copied()), to = take(host, copied());
  const auto here = take(MemorySpace::kDevice, copied()), there = take(MemorySpace::kDevice, copied());
  const int64_t side = bench::extent(4096), bytes = copied();
  const Bound bound = product(ir::DType::kBf16, false, side, side, side);
  const auto graph = captured(bound, bench::times(60));
  for (auto _ : state) {
    if (computes) expect_ok(card().replay(*graph));
    if (in) expect_ok(card().copy({here.get(), 0}, {from.get(), 0}, Bytes(bytes), Queue::kCopyIn));
    if (out) expect_ok(card().copy({to.get(), 0}, {there.get(), 0}, Bytes(bytes), Queue::kCopyOut));
    for (const Queue queue : {Queue::kCopyIn, Queue::kCopyOut, Queue::kCompute})
      expect_ok(card().synchronize(queue));
  }
  state.counters["GB/s"] = benchmark::Counter(1e-9 * static_cast<double>(bytes) * (int{in} + int{out}),
                                              benchmark::Counter::kIsIterationInvariantRate);
}

void within(benchmark::State& state) {
  const int64_t bytes = copied();
  const auto from = take(MemorySpace::kDevice, bytes), to = take(MemorySpace::kDevice, bytes);
  for (auto _ : state) {
    for (int i = 0; i < 10; ++i)
      expect_ok(card().copy({to.get(), 0}, {from.get(), 0}, Bytes(bytes), Queue::kCompute));
    expect_ok(card().synchronize(Queue::kCompute));
  }
  state.counters["GB/s"] = benchmark::Counter(
      2e-8 * static_cast<double>(bytes), benchmark::Counter::kIsIterationInvariantRate);  // read and written
}

void shapes(benchmark::internal::Benchmark* bench) {
  bench->Args({8192, 8192, 8192})->Args({4096, 4096, 4096})->Args({2048, 1536, 576})->Args({512, 3072, 576});
}
/// Of a layer of Llama-2-7B and Qwen2.5-7B, at tokens of a micro-batch.
void layers(benchmark::internal::Benchmark* bench) {
  constexpr std::pair<int64_t, int64_t> kWeights[] = {{12288, 4096}, {4096, 4096}, {22016, 4096},
                                                      {4096, 11008}, {4608, 3584}, {37888, 3584}};
  for (const int64_t tokens : {1024, 2048, 4096, 16384})
    for (const auto& [n, k] : kWeights) bench->Args({tokens, n, k});
}

BENCHMARK(launches)->UseRealTime();
BENCHMARK(replay)->UseRealTime();
BENCHMARK_CAPTURE(multiply, f32, ir::DType::kF32, false)->UseRealTime()->Apply(shapes);
BENCHMARK_CAPTURE(multiply, tf32, ir::DType::kF32, true)->UseRealTime()->Apply(shapes);
BENCHMARK_CAPTURE(multiply, bf16, ir::DType::kBf16, false)->UseRealTime()->Apply(shapes);
BENCHMARK_CAPTURE(multiply, layer, ir::DType::kBf16, false)->UseRealTime()->Apply(layers);
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

/// Fills the cache of kernels for cards of the given capabilities, and needs none of them: for this machine's
/// where none is given.
int compile_for(std::vector<int> capabilities) {
  if (const auto info = cuda::card_info(0); capabilities.empty() && info)
    capabilities.push_back(info->capability);
  if (capabilities.empty()) {
    std::puts("no card of this machine, and no compute capability given");
    return 1;
  }
  const auto compiler = cuda::load_compiler();
  if (!compiler) {
    std::puts(compiler.error().message().c_str());
    return 1;
  }
  std::vector<cuda::ModuleId> ids = cuda::plain_modules();
  for (const std::string& form : cuda::mma_forms())
    for (cuda::ModuleId& id : cuda::modules_reading(form)) ids.push_back(std::move(id));
  for (const int capability : capabilities) {
    const auto images = cuda::load_images(**compiler, ids, capability);
    if (!images) {
      std::puts((images.error().message() + "\n" + images.error().hint).c_str());
      return 1;
    }
    std::printf("%zu modules for compute capability %d\n", images->size(), capability);
  }
  return 0;
}

/// Takes --small and --once out of the arguments.
void take_options(int& argc, char** argv) {
  int kept = 1;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--small")
      bench::options().small = true;
    else if (word == "--once")
      bench::options().once = true;
    else
      argv[kept++] = argv[i];
  }
  argc = kept;
}

}  // namespace plimsoll

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "--compile") {
    std::vector<int> capabilities;
    for (int i = 2; i < argc; ++i) capabilities.push_back(std::atoi(argv[i]));
    return plimsoll::compile_for(capabilities);
  }
  if (const auto info = plimsoll::cuda::card_info(0); !info) {
    std::puts(("no card: " + info.error().message()).c_str());
    return 0;
  }
  plimsoll::take_options(argc, argv);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
