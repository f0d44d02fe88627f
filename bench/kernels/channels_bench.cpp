// What stands between the convolutions of ResNet-50, eight images of 224 x 224: statistics of channels, batch
// norm with its gradients, pooling. The yardstick is `copy` of as many bytes as the op reads and writes.
// Threads: PLIMSOLL_BENCH_THREADS (default 1).
#include <benchmark/benchmark.h>

#include <string>

#include "op_run.h"

namespace plimsoll::cpu {
namespace {

struct Images {
  const char* name;
  int64_t extent, channels;
};
constexpr Images kImages[] = {{"112x64", 112, 64},
                              {"56x256", 56, 256},
                              {"28x512", 28, 512},
                              {"14x1024", 14, 1024},
                              {"7x2048", 7, 2048}};
constexpr const char* kOps[] = {"batch_statistics",    "batch_norm", "batch_norm_grad",
                                "batch_norm_add_grad", "max_pool2d", "copy"};

Run run_of(std::string_view op, const Images& s, ir::DType dtype) {
  const ir::TensorType x{dtype, {8, s.extent, s.extent, s.channels}}, row{ir::DType::kF32, {s.channels}};
  const ir::Attrs norm{{"eps", 1e-5}, {"batch", true}};
  ir::Attrs relu = norm;
  relu.set("relu", true);
  if (op == "batch_norm") return Run(op, {x, row, row, row, row}, relu);
  if (op == "batch_norm_grad") return Run(op, {x, x, row, row, row, row}, relu);
  if (op == "batch_norm_add_grad") return Run(op, {x, x, row, row, row, x}, norm);
  if (op != "max_pool2d") return Run(op, {x}, {});
  const auto twice = [](int64_t v) { return std::vector<int64_t>{v, v}; };
  return Run(op, {x}, {{"kernel", twice(3)}, {"stride", twice(2)}, {"padding", twice(1)}});
}

void measure(benchmark::State& state, const char* op, const Images& images, ir::DType dtype) {
  const Run run = run_of(op, images, dtype);
  double bytes = 0;
  for (const auto* list : {&run.types.inputs, &run.types.outputs})
    for (const ir::TensorType& t : *list) bytes += static_cast<double>(t.bytes().count);
  for (auto _ : state)
    if (!run.launch().ok()) return state.SkipWithError("the kernel failed");
  state.counters["GB/s"] = benchmark::Counter(bytes * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
}

const bool kRegistered = [] {
  for (const ir::DType dtype : {ir::DType::kF32, ir::DType::kBf16})
    for (const Images& images : kImages)
      for (const char* op : kOps) {
        const std::string name =
            std::string(dtype == ir::DType::kF32 ? "channels/" : "channels_bf16/") + images.name + "/" + op;
        benchmark::RegisterBenchmark(
            name.c_str(),
            [op, &images, dtype](benchmark::State& state) { measure(state, op, images, dtype); })
            ->UseRealTime()
            ->Unit(benchmark::kMicrosecond)
            ->MinTime(0.1);
      }
  return true;
}();

}  // namespace
}  // namespace plimsoll::cpu
