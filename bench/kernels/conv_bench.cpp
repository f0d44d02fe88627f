// Convolutions of ResNet-50 and ConvNeXt-T, forward and both gradients, images of 224 x 224, fp32: beside our
// own product of equal m, n and k, which is what a convolution without patches would take. PyTorch's are
// bench/kernels/conv_peer.py's. Threads: PLIMSOLL_BENCH_THREADS (default 1).
#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "op_run.h"

namespace plimsoll::cpu {
namespace {

struct Shape {
  const char* name;
  int64_t images, extent, channels, results, kernel, stride, groups;
};
constexpr Shape kShapes[] = {
    {"first_7x7", 8, 224, 3, 64, 7, 2, 1},        {"c2_1x1", 8, 56, 64, 256, 1, 1, 1},
    {"c2_3x3", 8, 56, 64, 64, 3, 1, 1},           {"c3_3x3", 8, 28, 128, 128, 3, 1, 1},
    {"c4_3x3", 8, 14, 256, 256, 3, 1, 1},         {"c5_3x3", 8, 7, 512, 512, 3, 1, 1},
    {"c3_3x3_stride", 8, 56, 128, 128, 3, 2, 1},  {"c3_1x1_stride", 8, 56, 256, 512, 1, 2, 1},
    {"patches_16", 8, 224, 3, 768, 16, 16, 1},    {"depthwise_56", 8, 56, 96, 96, 7, 1, 96},
    {"depthwise_14", 8, 14, 384, 384, 7, 1, 384}, {"depthwise_7", 8, 7, 768, 768, 7, 1, 768},
};

/// The convolution, the gradient of its images, that of its weight.
Run run_of(const Shape& s, int which, bool as_product, ir::DType dtype) {
  const int64_t padding = s.kernel == s.stride ? 0 : s.kernel / 2;
  const int64_t out = (s.extent + 2 * padding - s.kernel) / s.stride + 1, inputs = s.channels / s.groups;
  const auto stored = [&](std::initializer_list<int64_t> extents) {
    return ir::TensorType{dtype, ir::Shape(extents)};
  };
  const auto weight = [](std::initializer_list<int64_t> extents) {
    return ir::TensorType{ir::DType::kF32, ir::Shape(extents)};
  };
  const auto with_precision = [&](ir::Attrs attrs) {
    if (dtype != ir::DType::kF32) attrs.set("precision", std::string(ir::name(dtype)));
    return attrs;
  };
  if (as_product) {
    const int64_t k = s.kernel * s.kernel * inputs;
    const auto x = stored({s.images, out * out, k}), y = stored({s.images, out * out, s.results}),
               w = weight({s.results, k});
    const ir::Attrs attrs = with_precision({{"transposed", which == 1}});
    if (which == 0) return Run("linear", {x, w}, attrs);
    return which == 1 ? Run("linear", {y, w}, attrs) : Run("linear_dw", {x, y}, attrs);
  }
  const auto x = stored({s.images, s.extent, s.extent, s.channels}),
             y = stored({s.images, out, out, s.results}), w = weight({s.results, s.kernel, s.kernel, inputs});
  const auto twice = [](int64_t v) { return std::vector<int64_t>{v, v}; };
  ir::Attrs how = with_precision({{"stride", twice(s.stride)},
                                  {"padding", twice(padding)},
                                  {"dilation", twice(1)},
                                  {"groups", s.groups}});
  if (which == 0) return Run("conv2d", {x, w}, how);
  how.set(which == 1 ? "size" : "kernel", twice(which == 1 ? s.extent : s.kernel));
  return which == 1 ? Run("conv2d_input_grad", {y, w}, how) : Run("conv2d_weight_grad", {x, y}, how);
}

void measure(benchmark::State& state, const Shape& s, int which, bool as_product, ir::DType dtype) {
  const Run run = run_of(s, which, as_product, dtype);
  const double flops = run.op.def->cost(run.types).flops;
  for (auto _ : state)
    if (!run.launch().ok()) return state.SkipWithError("the kernel failed");
  state.counters["GFLOP/s"] = benchmark::Counter(flops * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
}

void add(const Shape& s, int which, bool as_product, ir::DType dtype) {
  constexpr const char* kWhich[] = {"forward", "input", "weight"};
  const std::string name = std::string(dtype == ir::DType::kF32 ? "conv/" : "conv_bf16/") + s.name + "/" +
                           kWhich[which] + "/" + (as_product ? "product" : "convolution");
  benchmark::RegisterBenchmark(name.c_str(),
                               [&s, which, as_product, dtype](benchmark::State& state) {
                                 measure(state, s, which, as_product, dtype);
                               })
      ->UseRealTime()
      ->Unit(benchmark::kMicrosecond)
      ->MinTime(0.1);
}

const bool kRegistered = [] {
  for (const ir::DType dtype : {ir::DType::kF32, ir::DType::kBf16})
    for (const Shape& s : kShapes)
      for (int which = 0; which < 3; ++which)
        for (const bool as_product : {false, true})
          if (!as_product || s.groups == 1) add(s, which, as_product, dtype);
  return true;
}();

}  // namespace
}  // namespace plimsoll::cpu
