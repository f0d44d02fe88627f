// Products with weights in few bits beside those with bf16 weights, forward and for the input's gradient, on
// the linear maps of Qwen2.5-0.5B at 512 tokens: x and y bf16, products of bf16. Each run does both in turn,
// so that whatever else the machine does falls on both; "of_bf16" is the rate over that of bf16 weights, by
// the medians of the runs. Threads: PLIMSOLL_BENCH_THREADS (default 2).
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "backends/cpu/cpu_device.h"
#include "ops/block_values.h"
#include "ops/op_list.h"

namespace plimsoll::cpu {
namespace {

constexpr int64_t kTokens = 512;

struct Map {
  const char* name;
  int64_t out, in;
};
constexpr Map kMaps[] = {{"q_o", 896, 896}, {"k_v", 128, 896}, {"gate_up", 4864, 896}, {"down", 896, 4864}};

struct QuantizedMemory {
  explicit QuantizedMemory(int64_t bytes)
      : data(static_cast<std::byte*>(std::aligned_alloc(
            64, static_cast<size_t>(round_up(std::max<int64_t>(bytes, 1), int64_t{64}))))) {
    std::fill_n(data.get(), bytes, std::byte{});
  }
  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  std::unique_ptr<std::byte, Free> data;
};

/// Numbers of a small pattern in every type: no denormals, no overflow.
void fill(const ir::TensorType& type, std::byte* to) {
  const int64_t n = type.num_elements();
  std::vector<float> x(static_cast<size_t>(n));
  uint32_t state = 7;
  for (float& v : x) {
    state = state * 1664525U + 1013904223U;
    v = static_cast<float>(state >> 8) / 0x1p24F - 0.5F;
  }
  if (!ir::is_block(type.dtype)) {
    for (int64_t i = 0; i < n; ++i)
      reinterpret_cast<uint16_t*>(to)[i] =
          static_cast<uint16_t>(std::bit_cast<uint32_t>(x[static_cast<size_t>(i)]) >> 16);
    return;
  }
  const int64_t block = ops::quantized_block(type);
  std::vector<float> scales(static_cast<size_t>(ceil_div(n, block)));
  ops::quantize(type, x, {to, static_cast<size_t>(ceil_div(n * ir::bits(type.dtype), int64_t{8}))}, scales);
  const std::vector<std::byte> behind = ops::stored_scales(type, scales);
  std::copy(behind.begin(), behind.end(), to + ops::scales_offset(type));
}

/// y = x W^T, or the product with W for the input's gradient.
class Product {
 public:
  Product(cpu::CpuDevice& device, const Map& map, ir::DType weight, bool gradient) : device_(device) {
    const int64_t from = gradient ? map.out : map.in, to = gradient ? map.in : map.out;
    const ir::TensorType x{ir::DType::kBf16, {kTokens, from}}, w{weight, {map.out, map.in}};
    op_.def = ops::find_op("linear");
    op_.attrs = {{"transposed", gradient}, {"precision", std::string("bf16")}, {"out", std::string("bf16")}};
    op_.inputs = {{0}, {1}};
    op_.outputs = {{2}};
    in_ = {make(x), make(w)};
    out_ = {make({ir::DType::kBf16, {kTokens, to}})};
    const ir::OpTypes types{op_.def->name, {x, w}, {out_[0].type}, op_.attrs};
    workspace_bytes_ = static_cast<size_t>(device.target().workspace_bytes(types));
    memory_.emplace_back(static_cast<int64_t>(workspace_bytes_));
  }
  double run() {
    const auto start = std::chrono::steady_clock::now();
    const auto done =
        device_.launch({&op_, in_, out_, {memory_.back().data.get(), workspace_bytes_}}, ir::Queue::kCompute);
    PLIMSOLL_CHECK(done.ok());
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

 private:
  runtime::TensorRef make(const ir::TensorType& type) {
    memory_.emplace_back(type.bytes().count + 64);
    fill(type, memory_.back().data.get());
    return {memory_.back().data.get(), type, ir::dense_strides(type.shape)};
  }
  cpu::CpuDevice& device_;
  ir::Op op_;
  std::vector<QuantizedMemory> memory_;
  std::vector<runtime::TensorRef> in_, out_;
  size_t workspace_bytes_ = 0;
};

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

void quantized_product(benchmark::State& state, const Map& map, ir::DType weight, bool gradient) {
  const char* text = std::getenv("PLIMSOLL_BENCH_THREADS");
  cpu::CpuDevice device(text == nullptr ? 2 : std::atoi(text));
  Product coded(device, map, weight, gradient), plain(device, map, ir::DType::kBf16, gradient);
  std::vector<double> ours, theirs;
  for (int i = 0; i < 3; ++i) coded.run(), plain.run();
  for (auto _ : state) {
    theirs.push_back(plain.run());
    ours.push_back(coded.run());
    state.SetIterationTime(ours.back());
  }
  const double flops = 2.0 * static_cast<double>(kTokens * map.out * map.in);
  state.counters["GFLOP/s"] = flops / median(ours) / 1e9;
  state.counters["bf16_GFLOP/s"] = flops / median(theirs) / 1e9;
  state.counters["of_bf16"] = median(theirs) / median(ours);
}

const bool kRegistered = [] {
  for (const ir::DType weight : {ir::DType::kNf4, ir::DType::kNf4Double, ir::DType::kI8Rows})
    for (const Map& map : kMaps)
      for (const bool gradient : {false, true})
        benchmark::RegisterBenchmark(
            ("quantized/" + std::string(ir::name(weight)) + "/" + map.name + (gradient ? "_dx" : "")).c_str(),
            [=](benchmark::State& state) { quantized_product(state, map, weight, gradient); })
            ->UseManualTime()
            ->Unit(benchmark::kMicrosecond);
  return true;
}();

}  // namespace
}  // namespace plimsoll::cpu
