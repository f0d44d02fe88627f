// Each row is one op of the graph, run through the device as a program runs it.
#include "cli/bench_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "backends/cpu/cpu_device.h"
#include "backends/cpu/kernels/isa.h"
#include "base/check.h"
#include "base/process.h"
#include "io/tree.h"
#include "ops/op_list.h"

namespace plimsoll::cli {
namespace {

using ir::DType;
using ir::Shape;
using ir::TensorType;

struct Row {
  std::string op;
  std::vector<TensorType> inputs;
  ir::Attrs attrs;
};

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

/// Memory of a row: operands, results, scratch, one after the other.
class Bench {
 public:
  Bench(cpu::CpuDevice& device, const Row& row)
      : device_(device), op_{ops::find_op(row.op), {}, {}, row.attrs, {}} {
    PLIMSOLL_CHECK(op_.def != nullptr, row.op);
    ir::OpTypes types{row.op, row.inputs, {}, op_.attrs};
    auto results = op_.def->infer(types);
    PLIMSOLL_CHECK(results.ok(), results ? "" : results.error().message());
    types.outputs = *results;
    cost_ = op_.def->cost != nullptr ? op_.def->cost(types) : ir::Cost{};
    for (const auto& t : row.inputs) op_.inputs.push_back({0}), add(t, inputs_);
    for (const auto& t : types.outputs) op_.outputs.push_back({0}), add(t, outputs_);
    for (const auto& alias : ir::op_consumes(op_))
      outputs_[static_cast<size_t>(alias.output)] = inputs_[static_cast<size_t>(alias.input)];
    workspace_ = allocate(device.target().workspace_bytes(types));
    for (auto& t : inputs_) fill(t);
  }

  /// The least of several runs, in seconds.
  double seconds() {
    const runtime::KernelCall call{&op_, inputs_, outputs_, workspace_};
    double best = 1e30, total = 0;
    for (int i = 0; i < 100 && (i < 3 || total < 0.4); ++i) {
      const double start = now_seconds();
      const Status launched = device_.launch(call, ir::Queue::kCompute);
      PLIMSOLL_CHECK(launched.ok(), launched ? "" : launched.error().message());
      const double t = now_seconds() - start;
      best = std::min(best, t);
      total += t;
    }
    return best;
  }
  [[nodiscard]] const ir::Cost& cost() const { return cost_; }

 private:
  std::span<std::byte> allocate(int64_t bytes) {
    if (bytes == 0) return {};
    auto memory = device_.allocate(ir::MemorySpace::kDevice, Bytes(bytes));
    PLIMSOLL_CHECK(memory.ok(), memory ? "" : memory.error().message());
    memory_.push_back(std::move(*memory));
    return memory_.back()->host();
  }
  void add(const TensorType& type, std::vector<runtime::TensorRef>& refs) {
    refs.push_back({allocate(type.bytes().count).data(), type, ir::dense_strides(type.shape)});
  }
  static void fill(runtime::TensorRef& t) {
    if (t.type.dtype != DType::kF32) return;  // zeros: token 0
    uint32_t x = 1;
    for (int64_t i = 0; i < t.num_elements(); ++i) {
      x = x * 1664525U + 1013904223U;
      t.as<float>()[i] = static_cast<float>(x >> 8) * 0x1p-24F - 0.4F;
    }
  }

  cpu::CpuDevice& device_;
  ir::Op op_;
  ir::Cost cost_;
  std::vector<std::unique_ptr<runtime::Memory>> memory_;
  std::vector<runtime::TensorRef> inputs_, outputs_;
  std::span<std::byte> workspace_;
};

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
    Bench bench(device, row);
    const double s = bench.seconds();
    const double gflops = bench.cost().flops / s * 1e-9, gbytes = bench.cost().bytes / s * 1e-9;
    if (json)
      fmt::print("{}\n", to_json(Tree::map({{"op", Tree::of(row.op)},
                                            {"operands", Tree::of(shapes(row))},
                                            {"seconds", Tree::of(s)},
                                            {"gflops", Tree::of(gflops)},
                                            {"gbytes_per_second", Tree::of(gbytes)}})));
    else
      fmt::print("{:<24}{:<52}{:>10.3f}{:>10.1f}{:>9.1f}\n", row.op, shapes(row).substr(0, 50), 1e3 * s,
                 gflops, gbytes);
    std::fflush(stdout);
  }
  return Ok{};
}

}  // namespace plimsoll::cli
