// Operands in FP8 on a card: what quantises them alone and with the op before, products of them beside those
// in bf16 (card_bench.cpp has these, "layer"), on units for FP8 where the card has some.
#include <benchmark/benchmark.h>

#include <memory>
#include <string>

#include "bound.h"

namespace plimsoll {
namespace {

using bench::Bound;
using bench::extent;
using ir::DType;

ir::Attrs in_scheme(const char* name) { return {{"scheme", std::string(name)}, {"transposed", false}}; }
ir::Attrs both_copies(const char* name) {
  ir::Attrs attrs = in_scheme(name);
  attrs.set("both", true);
  return attrs;
}

/// [2,048, 4,096], as a layer of Llama-2-7B has it. A scale of the tensor is found here (`current`) or given.
void quantize(benchmark::State& state, const char* scheme, bool both, bool given) {
  Bound b;
  b.in = {b.tensor(DType::kBf16, {1, extent(2048), extent(4096)})};
  b.op.attrs = both ? both_copies(scheme) : in_scheme(scheme);
  if (given) {
    b.in.push_back(b.tensor(DType::kF32, {4}));
    b.op.attrs.set("slot", int64_t{1});
  }
  b.infer("quantize_operand");
  bench::measure(state, b);
}

void norm_and_quantize(benchmark::State& state, const char* scheme) {
  Bound b;
  const ir::Shape rows{1, extent(2048), extent(4096)};
  b.in = {b.tensor(DType::kBf16, rows), b.tensor(DType::kBf16, rows), b.tensor(DType::kF32, {rows.dim(2)})};
  b.op.attrs = both_copies(scheme);
  b.op.attrs.set("eps", 1e-5);
  b.infer("add_rms_norm_quantize");
  bench::measure(state, b);
}

void swiglu_and_quantize(benchmark::State& state, const char* scheme) {
  Bound b;
  b.in = {b.tensor(DType::kBf16, {1, extent(2048), extent(22016)})};
  b.op.attrs = both_copies(scheme);
  b.infer("swiglu_quantize");
  bench::measure(state, b);
}

/// Numbers in a scheme: what the card makes of random ones.
std::unique_ptr<Bound> coded(const char* scheme, int64_t lines, int64_t inner) {
  auto made = std::make_unique<Bound>();
  made->in = {made->tensor(DType::kBf16, {lines, inner})};
  made->op.attrs = in_scheme(scheme);
  made->infer("quantize_operand");
  made->launch();
  return made;
}

/// [m, k] x [n, k]ᵀ, results in bf16.
void multiply(benchmark::State& state, const char* left, const char* right) {
  const int64_t m = extent(state.range(0)), n = extent(state.range(1)), k = extent(state.range(2));
  const auto a = coded(left, m, k), w = coded(right, n, k);
  Bound b;
  b.in = {a->out[0], a->out[1], w->out[0], w->out[1], {}, {}};
  if (std::string(left).starts_with("nvfp4")) b.in.insert(b.in.end(), {a->out[2], w->out[2]});
  b.op.attrs = ir::Attrs{{"a_scheme", std::string(left)},
                         {"b_scheme", std::string(right)},
                         {"a_across", false},
                         {"b_across", false},
                         {"inner", k},
                         {"columns", n},
                         {"out", std::string("bf16")}};
  b.infer("scaled_matmul");
  bench::measure(state, b, 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k));
}

void layers(benchmark::internal::Benchmark* bench) {
  for (const int64_t tokens : {2048, 16384})
    bench->Args({tokens, 12288, 4096})->Args({tokens, 4096, 11008})->Args({tokens, 37888, 3584});
}

BENCHMARK_CAPTURE(quantize, bf16_to_e4m3_current, "e4m3", false, false)->UseRealTime();
BENCHMARK_CAPTURE(quantize, bf16_to_e4m3_delayed, "e4m3", false, true)->UseRealTime();
BENCHMARK_CAPTURE(quantize, bf16_to_blocks_both, "fp8-block-1x128", true, false)->UseRealTime();
BENCHMARK_CAPTURE(quantize, bf16_to_mxfp8_both, "mxfp8", true, false)->UseRealTime();
BENCHMARK_CAPTURE(quantize, bf16_to_weight_blocks, "fp8-block-128x128", false, false)->UseRealTime();
BENCHMARK_CAPTURE(norm_and_quantize, blocks, "fp8-block-1x128")->UseRealTime();
BENCHMARK_CAPTURE(swiglu_and_quantize, blocks, "fp8-block-1x128")->UseRealTime();
BENCHMARK_CAPTURE(multiply, fp8_tensor, "e4m3", "e4m3")->UseRealTime()->Apply(layers);
BENCHMARK_CAPTURE(multiply, fp8_blocks, "fp8-block-1x128", "fp8-block-128x128")->UseRealTime()->Apply(layers);
BENCHMARK_CAPTURE(multiply, mxfp8, "mxfp8", "mxfp8")->UseRealTime()->Args({2048, 12288, 4096});

}  // namespace
}  // namespace plimsoll
