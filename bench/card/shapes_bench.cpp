// Ops beside those of a decoder's step: convolutions of ResNet-50, generation, a bias's gradient beside its
// weight's.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <string>
#include <vector>

#include "bound.h"

namespace plimsoll {
namespace {

using bench::Bound;
using bench::extent;
using ir::DType;

/// Of 32 images: `side` pixels each way, `in` channels, `out` results, taps `window` each way.
struct Conv {
  int64_t side, in, out, window, stride;
  [[nodiscard]] Conv shown() const {
    if (!bench::options().small) return *this;
    return {12, std::min<int64_t>(in, 16), std::min<int64_t>(out, 16), window, stride};
  }
  [[nodiscard]] int64_t images() const { return bench::options().small ? 2 : 32; }
  [[nodiscard]] ir::Shape x() const { return {images(), side, side, in}; }
  [[nodiscard]] ir::Shape weight() const { return {out, window, window, in}; }
  [[nodiscard]] ir::Shape y() const {
    const int64_t after = (side + 2 * (window / 2) - window) / stride + 1;
    return {images(), after, after, out};
  }
  [[nodiscard]] ir::Attrs attrs() const {
    const auto pair = [](int64_t each) { return std::vector<int64_t>{each, each}; };
    return {{"stride", pair(stride)},
            {"padding", pair(window / 2)},
            {"dilation", pair(1)},
            {"groups", int64_t{1}},
            {"precision", std::string("bf16")}};
  }
};
constexpr Conv kFirst{224, 3, 64, 7, 2}, kEarly{56, 64, 64, 3, 1}, kLate{14, 256, 256, 3, 1},
    kNarrow{56, 256, 64, 1, 1}, kStrided{56, 256, 512, 1, 2};

void convolution(benchmark::State& state, const Conv& full, char which) {
  const Conv c = full.shown();
  const ir::Shape x = c.x(), y = c.y();
  Bound b;
  b.op.attrs = c.attrs();
  const char* op = "conv2d";
  if (which == 'y') {
    b.in = {b.tensor(DType::kBf16, x), b.tensor(DType::kBf16, c.weight())};
    b.op.attrs.set("out", std::string("bf16"));
  } else if (which == 'x') {
    op = "conv2d_input_grad";
    b.in = {b.tensor(DType::kBf16, y), b.tensor(DType::kBf16, c.weight())};
    b.op.attrs.set("size", std::vector<int64_t>{c.side, c.side});
    b.op.attrs.set("out", std::string("bf16"));
  } else {
    op = "conv2d_weight_grad";
    b.in = {b.tensor(DType::kBf16, x), b.tensor(DType::kBf16, y)};
    b.op.attrs.set("kernel", std::vector<int64_t>{c.window, c.window});
  }
  b.infer(op);
  const double products =
      static_cast<double>(y.num_elements()) * static_cast<double>(c.window * c.window * c.in);
  bench::measure(state, b, 2 * products);
}

/// One token of each sequence over 4,096 positions, heads of Llama-3.1-8B: bytes a second of the cache.
void decode(benchmark::State& state) {
  const int64_t batch = extent(state.range(0)), positions = extent(4096);
  Bound b;
  const ir::Shape cache{batch, positions, 8, 128};
  b.in = {b.tensor(DType::kBf16, {batch, 1, 32, 128}), b.tensor(DType::kBf16, cache),
          b.tensor(DType::kBf16, cache), b.indices({batch}, static_cast<int32_t>(positions) - 1)};
  b.op.attrs = ir::Attrs{{"scale", 0.088}, {"window", int64_t{0}}};
  b.infer("attention_cached");
  bench::measure(state, b);
}

/// The gradients of a weight [3 x 4,096, 4,096] and of its bias from 2,048 rows, in one op or two.
void weight_and_bias(benchmark::State& state, bool one) {
  const ir::Shape x{extent(2048), extent(4096)}, dy{extent(2048), extent(12288)};
  const ir::Attrs attrs{{"transposed", false}, {"precision", std::string("bf16")}};
  Bound b, sums;
  b.in = {b.tensor(DType::kBf16, x), b.tensor(DType::kBf16, dy)};
  b.op.attrs = attrs;
  b.infer(one ? "linear_dw_db" : "linear_dw");
  if (!one) {
    sums.in = {b.in[1]};
    sums.infer("sum_rows");
  }
  const int launches = bench::times(20);
  bench::expect_ok(bench::card().begin_capture());
  for (int i = 0; i < launches; ++i) {
    b.launch();
    if (!one) sums.launch();
  }
  auto graph = bench::card().end_capture();
  PLIMSOLL_CHECK(graph.ok(), graph ? "" : graph.error().message());
  for (auto _ : state) bench::run(**graph);
  const double products = static_cast<double>(x.num_elements()) * static_cast<double>(dy.dim(1));
  state.counters["TFLOP/s"] =
      benchmark::Counter(2e-12 * launches * products, benchmark::Counter::kIsIterationInvariantRate);
}

#define PLIMSOLL_CONV(label, shape)                                      \
  BENCHMARK_CAPTURE(convolution, label, shape, 'y')->UseRealTime();      \
  BENCHMARK_CAPTURE(convolution, label##_dx, shape, 'x')->UseRealTime(); \
  BENCHMARK_CAPTURE(convolution, label##_dw, shape, 'w')->UseRealTime()

PLIMSOLL_CONV(first_7x7, kFirst);
PLIMSOLL_CONV(early_3x3, kEarly);
PLIMSOLL_CONV(late_3x3, kLate);
PLIMSOLL_CONV(narrow_1x1, kNarrow);
PLIMSOLL_CONV(strided_1x1, kStrided);
BENCHMARK(decode)->UseRealTime()->Arg(1)->Arg(32);
BENCHMARK_CAPTURE(weight_and_bias, one_op, true)->UseRealTime();
BENCHMARK_CAPTURE(weight_and_bias, two_ops, false)->UseRealTime();

}  // namespace
}  // namespace plimsoll
