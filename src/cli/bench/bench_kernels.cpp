// Each row is one op of the graph, run through the device as a program runs it.
#include "cli/bench/bench_kernels.h"

#include <fmt/format.h>

#include <vector>

#include "backends/cpu/cpu_device.h"
#include "backends/cpu/kernels/isa.h"
#include "base/process.h"
#include "io/tree.h"
#include "measuring/op_timer.h"

namespace plimsoll::cli {
namespace {

using ir::DType;
using ir::Shape;
using ir::TensorType;

using Row = measuring::OpSample;

TensorType f32(Shape shape) { return {DType::kF32, shape}; }

/// Shapes of a 135M Llama with a vocabulary of 49,152, 512 tokens; and two square ones as a yardstick.
std::vector<Row> rows() {
  const ir::Attrs attention{{"heads", int64_t{9}}, {"kv_heads", int64_t{3}}, {"head_dim", int64_t{64}},
                            {"scale", 0.125},      {"causal", true},         {"window", int64_t{0}}};
  const TensorType x = f32({1, 512, 576}), wide = f32({1, 512, 3072}), qkv = f32({1, 512, 960});
  return {
      {"linear", {f32({1, 2048, 2048}), f32({2048, 2048})}, {{"transposed", false}}},
      {"linear", {f32({1, 4096, 1024}), f32({4096, 1024})}, {{"transposed", false}}},
      {"linear", {x, f32({960, 576})}, {{"transposed", false}}},
      {"linear", {x, f32({3072, 576})}, {{"transposed", false}}},
      {"linear", {f32({1, 512, 1536}), f32({576, 1536})}, {{"transposed", false}}},
      {"linear", {wide, f32({3072, 576})}, {{"transposed", true}}},
      {"linear_dw", {x, wide}, {{"transposed", false}}},
      {"linear_dw", {f32({1, 512, 1536}), x}, {{"transposed", false}}},
      {"attention_packed", {qkv}, attention},
      {"attention_packed_grad", {qkv, x, f32({1, 9, 512}), x}, attention},
      {"head_loss",
       {x, f32({49152, 576}), {DType::kI32, Shape{1, 512}}, f32({1})},
       {{"grad", true}, {"transposed", false}, {"chunk_tokens", int64_t{256}}}},
      {"rms_norm", {x, f32({576})}, {{"eps", 1e-5}}},
      {"swiglu", {wide}, {}},
      {"sum_squares", {f32({8 << 20})}, {}},
      {"adamw",
       {f32({8 << 20}), f32({8 << 20}), f32({8 << 20}), f32({8 << 20}), f32({1}), f32({2, 8})},
       {{"group", int64_t{0}}}},
  };
}

std::string shapes(const Row& row) {
  std::string text;
  for (const auto& t : row.inputs) text += (text.empty() ? "" : " ") + ir::to_string(t.shape);
  return text;
}

}  // namespace

Status bench_kernels(bool json) {
  cpu::CpuDevice device(num_available_cpus());
  if (!json)
    fmt::print("{} threads, {}\n{:<24}{:<52}{:>10}{:>10}{:>9}\n", num_available_cpus(),
               cpu::isa_name(cpu::current_isa()), "op", "operands", "ms", "GFLOP/s", "GB/s");
  for (const Row& row : rows()) {
    measuring::OpTimer bench(device, row);
    const double s = bench.seconds();
    const double gflops = bench.cost().flops / s * 1e-9, gbytes = bench.cost().bytes / s * 1e-9;
    if (json)
      fmt::print("{}\n", io::to_json(io::Tree::map({{"op", io::Tree::of(row.op)},
                                                    {"operands", io::Tree::of(shapes(row))},
                                                    {"seconds", io::Tree::of(s)},
                                                    {"gflops", io::Tree::of(gflops)},
                                                    {"gbytes_per_second", io::Tree::of(gbytes)}})));
    else
      fmt::print("{:<24}{:<52}{:>10.3f}{:>10.1f}{:>9.1f}\n", row.op, shapes(row).substr(0, 50), 1e3 * s,
                 gflops, gbytes);
    std::fflush(stdout);
  }
  return Ok{};
}

}  // namespace plimsoll::cli
