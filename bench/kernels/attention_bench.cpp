// Attention, forward and backward, of f32 and of bf16, on the shapes of the step benchmarks. Operations count
// the pairs of tokens that see each other only. "GFLOP/s" is by the clock on the wall; "of_peak" is by
// processor time, so that foreign load does not enter, relative to fused multiply-add in registers and
// nothing else, measured just after.
#include "backends/cpu/kernels/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "../bench/kernels/attention_bench.cpp"  // seen from src/
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
//
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace plimsoll::bench::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Runs `rounds` rounds of independent multiply-adds; returns the floating-point operations done.
double multiply_add_rounds(int64_t rounds, float* sink) {
  constexpr int kChains = hn::MaxLanes(hn::ScalableTag<float>()) >= 16 ? 24 : 12;
  const hn::ScalableTag<float> d;
  hn::Vec<hn::ScalableTag<float>> sum[kChains];
#pragma GCC unroll 24
  for (int i = 0; i < kChains; ++i) sum[i] = hn::Set(d, static_cast<float>(i) + *sink);
  const auto x = hn::Set(d, *sink + 0.5f), y = hn::Set(d, *sink + 0.25f);
  for (int64_t round = 0; round < rounds; ++round)
#pragma GCC unroll 24
    for (int i = 0; i < kChains; ++i) sum[i] = hn::MulAdd(sum[i], x, y);
  auto total = hn::Zero(d);
#pragma GCC unroll 24
  for (int i = 0; i < kChains; ++i) total = hn::Add(total, sum[i]);
  *sink = hn::GetLane(total);
  return 2.0 * kChains * static_cast<double>(hn::Lanes(d)) * static_cast<double>(rounds);
}

}  // namespace plimsoll::bench::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <benchmark/benchmark.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <random>
#include <span>
#include <type_traits>
#include <vector>

#include "backends/cpu/kernels/attention/attention.h"
#include "backends/cpu/kernels/attention/attention_bf16.h"

namespace plimsoll::bench {
namespace {

HWY_EXPORT(multiply_add_rounds);

using Clock = std::chrono::steady_clock;

// Of all threads of this process.
double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// Operations per second of one core, the best of a few short runs.
double peak_flops() {
  double best = 0;
  for (int attempt = 0; attempt < 10; ++attempt) {
    float sink = 0.0f;
    const double start = processor_seconds();
    const double flops = HWY_DYNAMIC_DISPATCH(multiply_add_rounds)(200000, &sink);
    benchmark::DoNotOptimize(sink);
    best = std::max(best, flops / (processor_seconds() - start));
  }
  return best;
}

struct Aligned {
  explicit Aligned(int64_t bytes)
      : size(static_cast<size_t>(bytes)),
        data(static_cast<std::byte*>(std::aligned_alloc(64, (size + 63) / 64 * 64)), &std::free) {}
  std::span<std::byte> span() { return {data.get(), size}; }
  size_t size;
  std::unique_ptr<std::byte, decltype(&std::free)> data;
};

void forward(const cpu::AttentionArgs& args, cpu::ThreadPool& pool, std::span<std::byte> workspace) {
  cpu::attention_forward(args, pool, workspace);
}
void forward(const cpu::AttentionArgsOf<cpu::Bf16>& args, cpu::ThreadPool& pool,
             std::span<std::byte> workspace) {
  cpu::attention_bf16_forward(args, pool, workspace);
}
void backward(const cpu::AttentionBackwardArgs& args, cpu::ThreadPool& pool, std::span<std::byte> workspace) {
  cpu::attention_backward(args, pool, workspace);
}
void backward(const cpu::AttentionBackwardArgsOf<cpu::Bf16>& args, cpu::ThreadPool& pool,
              std::span<std::byte> workspace) {
  cpu::attention_bf16_backward(args, pool, workspace);
}

template <typename Element>
inline constexpr bool kIsBf16 = std::is_same_v<Element, cpu::Bf16>;

template <typename Element>
Element element_of(float x) {
  if constexpr (kIsBf16<Element>)
    return static_cast<cpu::Bf16>(std::bit_cast<uint32_t>(x) >> 16);
  else
    return x;
}

// One problem with q, k, v side by side in rows, as after a fused projection.
template <typename Element>
struct Problem {
  cpu::AttentionShape shape;
  cpu::ThreadPool pool;
  std::vector<Element> qkv, dqkv, out, dout;
  std::vector<float> lse;
  Aligned forward_workspace, backward_workspace;
  cpu::AttentionBackwardArgsOf<Element> args;

  explicit Problem(const benchmark::State& state)
      : shape{state.range(0), state.range(1), state.range(2), state.range(3), state.range(4)},
        pool(static_cast<int>(state.range(6))),
        forward_workspace(kIsBf16<Element>
                              ? cpu::attention_bf16_forward_workspace_bytes(shape, pool.num_threads())
                              : cpu::attention_forward_workspace_bytes(shape, pool.num_threads())),
        backward_workspace(kIsBf16<Element>
                               ? cpu::attention_bf16_backward_workspace_bytes(shape, pool.num_threads())
                               : cpu::attention_backward_workspace_bytes(shape, pool.num_threads())) {
    const int64_t tokens = shape.batch * shape.tokens, width = shape.num_heads * shape.head_dim;
    const int64_t row = width + 2 * shape.num_kv_heads * shape.head_dim;
    qkv.resize(static_cast<size_t>(tokens * row));
    dqkv.resize(qkv.size());
    out.resize(static_cast<size_t>(tokens * width));
    dout.resize(out.size());
    lse.resize(static_cast<size_t>(tokens * shape.num_heads));
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    for (Element& x : qkv) x = element_of<Element>(normal(random));
    for (Element& x : dout) x = element_of<Element>(normal(random));
    const int64_t k = width, v = width + shape.num_kv_heads * shape.head_dim;
    args.forward = {.shape = shape,
                    .q = qkv.data(),
                    .k = qkv.data() + k,
                    .v = qkv.data() + v,
                    .q_token_stride = row,
                    .k_token_stride = row,
                    .v_token_stride = row,
                    .scale = 1.0f / std::sqrt(static_cast<float>(shape.head_dim)),
                    .window = state.range(5),
                    .out = out.data(),
                    .out_token_stride = width,
                    .lse = lse.data()};
    args.dout = dout.data();
    args.dout_token_stride = width;
    args.dq = dqkv.data(), args.dk = dqkv.data() + k, args.dv = dqkv.data() + v;
    args.dq_token_stride = args.dk_token_stride = args.dv_token_stride = row;
  }
  // Of one product over the pairs that the mask lets through: 2 in forward, 5 in backward.
  double product_flops() const {
    double pairs = 0;
    for (int64_t i = 0; i < shape.tokens; ++i)
      pairs += static_cast<double>(args.forward.window > 0 ? std::min(i + 1, args.forward.window) : i + 1);
    return 2.0 * pairs * static_cast<double>(shape.batch * shape.num_heads * shape.head_dim);
  }
};

template <typename Element, bool kForward, bool kBackward>
void run_attention(benchmark::State& state) {
  if (kIsBf16<Element> && !cpu::attention_has_bf16()) return state.SkipWithError("no products of bf16");
  Problem<Element> problem(state);
  forward(problem.args.forward, problem.pool, problem.forward_workspace.span());
  const auto start = Clock::now();
  const double processor_start = processor_seconds();
  for (auto _ : state) {
    if (kForward) forward(problem.args.forward, problem.pool, problem.forward_workspace.span());
    if (kBackward) backward(problem.args, problem.pool, problem.backward_workspace.span());
  }
  const double processor = processor_seconds() - processor_start;
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  const double flops =
      (kForward * 2 + kBackward * 5) * problem.product_flops() * static_cast<double>(state.iterations());
  state.counters["GFLOP/s"] = flops / seconds * 1e-9;
  state.counters["of_peak"] = flops / processor / peak_flops();
}

void add_shapes(benchmark::internal::Benchmark* b) {
  b->ArgNames({"B", "T", "H", "KV", "D", "window", "threads"})->UseRealTime()->Unit(benchmark::kMillisecond);
  for (const int64_t threads : {1, 2}) {
    b->Args({8, 256, 6, 6, 48, 0, threads});     // W1
    b->Args({1, 512, 9, 3, 64, 0, threads});     // W2
    b->Args({4, 512, 9, 3, 64, 0, threads});     // W2b
    b->Args({1, 2048, 4, 2, 128, 0, threads});   // wide heads, long sequence
    b->Args({1, 2048, 4, 2, 64, 256, threads});  // sliding window
    b->Args({2, 300, 4, 1, 20, 0, threads});     // nothing divides
  }
}

BENCHMARK(run_attention<float, true, false>)->Name("attention_forward")->Apply(add_shapes);
BENCHMARK(run_attention<float, false, true>)->Name("attention_backward")->Apply(add_shapes);
BENCHMARK(run_attention<float, true, true>)->Name("attention")->Apply(add_shapes);
BENCHMARK(run_attention<cpu::Bf16, true, false>)->Name("attention_bf16_forward")->Apply(add_shapes);
BENCHMARK(run_attention<cpu::Bf16, false, true>)->Name("attention_bf16_backward")->Apply(add_shapes);
BENCHMARK(run_attention<cpu::Bf16, true, true>)->Name("attention_bf16")->Apply(add_shapes);

}  // namespace
}  // namespace plimsoll::bench
#endif
