// The CPU as a device: memory, kernels for every op, files, capture, and that running allocates nothing.
// What it has in common with other devices: ../discrete/device_contract_test.cpp.
#include "backends/cpu/cpu_device.h"

#include <sys/mman.h>

#include <cstdlib>
#include <filesystem>
#include <set>

#include "backends/cpu/kernel.h"
#include "backends/cpu/kernel_harness.h"
#include "backends/cpu/kernels/conv/conv_cases.h"
#include "base/process.h"
#include "sanitizer.h"

constexpr bool kCounts = !plimsoll::kSanitizer;

namespace plimsoll::cpu::fixtures {
namespace {

TEST(CpuTarget, HasAKernelForEveryOpThatRuns) {
  const CpuTarget target(1);
  std::set<std::string_view> ops;
  for (const ir::OpDef* def : ops::all_ops()) {
    ops.insert(def->name);
    const bool runs = !def->is_view && !def->is_copy && def->name != "state" && def->name != "state_assign";
    EXPECT_EQ(target.accepts({def->name, {}, {}, {}}).ok(), runs) << def->name;
  }
  for (const Kernel& kernel : all_kernels()) EXPECT_TRUE(ops.contains(kernel.op)) << kernel.op;
  EXPECT_FALSE(target.accepts({"no_such_op", {}, {}, {}}));
}

TEST(CpuTarget, SaysWhatItIs) {
  const CpuTarget target(3);
  EXPECT_EQ(target.name(), "cpu");
  EXPECT_EQ(target.num_threads(), 3);
  EXPECT_EQ(target.memory_bytes(), 0);
  EXPECT_TRUE(target.shares_host_memory());
  for (const auto space :
       {ir::MemorySpace::kDevice, ir::MemorySpace::kHostPinned, ir::MemorySpace::kHostPageable})
    EXPECT_TRUE(target.reaches(space));
  EXPECT_FALSE(target.reaches(ir::MemorySpace::kDisk));
  for_each_isa([&](const std::string& isa) {
    EXPECT_EQ(target.has_matrix_units(DType::kBf16), isa == "amx");
    EXPECT_FALSE(target.has_matrix_units(DType::kF32));
  });
}

int64_t resident_bytes(std::span<const std::byte> memory) {
  std::vector<unsigned char> pages((memory.size() + 4095) / 4096);
  if (mincore(const_cast<std::byte*>(memory.data()), memory.size(), pages.data()) != 0) return -1;
  return 4096 * std::count_if(pages.begin(), pages.end(), [](unsigned char p) { return (p & 1) != 0; });
}

TEST(CpuDevice, MemoryIsAlignedAndTouched) {
  for (const int64_t bytes : {int64_t{1}, int64_t{5000}, (int64_t{5} << 20) + 17}) {
    auto memory = device(2).allocate(ir::MemorySpace::kDevice, Bytes(bytes));
    ASSERT_TRUE(memory.ok());
    EXPECT_EQ((*memory)->size().count, bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>((*memory)->address()) % (2 << 20), 0U);
    EXPECT_EQ(resident_bytes((*memory)->host()), round_up(bytes, 4096));
  }
}

TEST(CpuDevice, MoreMemoryThanThereIsIsAnErrorAndNotACrash) {
  const auto memory = device(2).allocate(ir::MemorySpace::kDevice, Bytes(int64_t{1} << 46));
  ASSERT_FALSE(memory.ok());
  EXPECT_EQ(memory.error().code, ErrorCode::kIo);
  EXPECT_NE(memory.error().what.find(to_string(Bytes(int64_t{1} << 46))), std::string::npos)
      << memory.error().what;
  EXPECT_FALSE(memory.error().hint.empty());
}

// An op on operands of its own, ready to be launched again and again.
struct Bound {
  ir::Op op;
  Memories memory;
  std::vector<runtime::TensorRef> in, out;
  std::unique_ptr<Guarded> workspace;
  size_t workspace_bytes;

  Bound(const OpRun& run, const runtime::Target& target) : op(make_op(run)) {
    const ir::OpTypes types = types_of(run, op);
    for (const Tensor& t : run.inputs) in.push_back(place(t, false, memory));
    for (const auto& type : types.outputs) out.push_back(place(Tensor{type, {}}, false, memory));
    for (const ir::Alias& a : ir::op_consumes(op))
      out[static_cast<size_t>(a.output)].data = in[static_cast<size_t>(a.input)].data;
    workspace_bytes = static_cast<size_t>(target.workspace_bytes(types));
    workspace = std::make_unique<Guarded>((workspace_bytes + 3) / 4);
  }
  runtime::KernelCall call() {
    return {&op, in, out, {reinterpret_cast<std::byte*>(workspace->data()), workspace_bytes}};
  }
};

TEST(CpuDevice, LaunchingAllocatesNothing) {
  if (!kCounts) GTEST_SKIP() << "a sanitizer's malloc is not counted";
  CpuDevice& cpu = device(3);
  const Tensor x = normal({2, 300, 40}, 1), w = normal({40}, 2), weight = normal({50, 40}, 3),
               ids = indices({2, 300}, 50, 4);
  const Tensor rstd = normal({2, 300}, 5), random = ints({4}, {1, 2, 3, 4});
  const Attrs attention{{"heads", int64_t{2}}, {"kv_heads", int64_t{1}}, {"head_dim", int64_t{10}},
                        {"scale", 0.3},        {"causal", true},         {"window", int64_t{0}}};
  const Attrs heads{
      {"heads", int64_t{2}}, {"kv_heads", int64_t{1}}, {"head_dim", int64_t{10}}, {"eps", 1e-5}};
  const Tensor norm = normal({10}, 10);
  Attrs dropping = attention;
  dropping.set("p", 0.1);
  dropping.set("key", int64_t{5});
  const ConvCase conv{{1, 9, 8, 20}, {10, 3, 3, 20}, {.stride = {2, 1}, .padding = {1, 1}}, true},
      depthwise{{1, 9, 8, 20}, {20, 3, 3, 1}, {.padding = {1, 1}, .groups = 20}};
  const OpRun runs[] = {
      conv.forward(),
      conv.input_grad(),
      conv.weight_grad(false),
      depthwise.forward(),
      depthwise.input_grad(),
      depthwise.weight_grad(false),
      {"add", {x, x}},
      {"swiglu", {x}},
      {"add_rms_norm", {x, x, w}, {{"eps", 1e-5}}},
      {"rms_norm_grad", {x, x, w, rstd}},
      {"linear", {x, weight}, {{"transposed", false}}},
      {"linear_dw", {x, x}, {{"transposed", false}}},
      {"sum_rows", {x}},
      {"embedding", {weight, ids}},
      {"embedding_grad", {x, ids}, {{"rows", int64_t{50}}}},
      {"embedding_grad_add", {weight, x, ids}},
      {"rope_table", {w}, {{"tokens", int64_t{300}}, {"factor", 1.0}}},
      {"rope_packed",
       {x, normal({1, 300, 20}, 6)},
       {{"heads", int64_t{1}}, {"head_dim", int64_t{20}}, {"inverse", false}}},
      {"qk_norm_rope", {x, norm, norm, normal({1, 300, 10}, 6)}, heads},
      {"qk_norm_rope_grad",
       {x, x, norm, norm, normal({1, 300, 10}, 6), normal({2, 300, 2}, 7), normal({2, 300, 1}, 8)},
       heads},
      {"attention_packed", {x}, attention},
      {"attention_packed", {x, absent(), random}, dropping},
      {"attention_packed_grad",
       {x, normal({2, 300, 20}, 7), normal({2, 2, 300}, 8), normal({2, 300, 20}, 9)},
       attention},
      {"head_loss",
       {x, weight, ids, scalar(1.0f)},
       {{"grad", true}, {"transposed", false}, {"chunk_tokens", int64_t{256}}}},
      {"dropout", {x, random}, {{"p", 0.1}, {"key", int64_t{5}}}},
      {"random_normal",
       {random},
       {{"shape", std::vector<int64_t>{50000}}, {"mean", 0.0}, {"std", 1.0}, {"key", int64_t{5}}}},
      {"sum_squares_sweep", {x, w}},
      {"adamw_sweep", {scalar(1.0f), normal({1, 8}, 1), w, w, w, w}, {{"group", std::vector<int64_t>{0}}}},
  };
  for (const OpRun& run : runs) {
    Bound bound(run, cpu.target());
    ASSERT_TRUE(cpu.launch(bound.call(), ir::Queue::kCompute).ok());
    const int64_t before = num_allocations();
    ASSERT_GT(before, 0);
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(cpu.launch(bound.call(), ir::Queue::kCompute).ok());
    EXPECT_EQ(num_allocations(), before) << run.op;
  }
}

}  // namespace
}  // namespace plimsoll::cpu::fixtures
