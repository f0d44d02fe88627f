// The backend's interface: memory, kernels for every op, copies, capture, and that launching allocates
// nothing.
#include "backends/cpu/cpu_backend.h"

#include <atomic>
#include <cstdlib>
#include <set>

#include "backends/cpu/kernel.h"
#include "kernel_harness.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kCounts = false;  // sanitizers bring their own malloc
#else
constexpr bool kCounts = true;
#endif

namespace {
std::atomic<int64_t> num_allocations{0};
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// Counts what the whole test binary allocates: operator new ends here too. The glibc keeps its own under this
// name.
extern "C" void* __libc_malloc(size_t size);
extern "C" void* malloc(size_t size) {
  num_allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_malloc(size);
}
#endif

namespace plimsoll::cpu::testing {
namespace {

TEST(CpuBackend, HasAKernelForEveryOpThatRuns) {
  std::set<std::string_view> ops;
  for (const ir::OpDef* def : ops::all_ops()) {
    ops.insert(def->name);
    const bool runs = !def->is_view && def->name != "state" && def->name != "state_assign";
    EXPECT_EQ(backend(1).supports(def->name), runs) << def->name;
  }
  for (const Kernel& kernel : all_kernels()) EXPECT_TRUE(ops.contains(kernel.op)) << kernel.op;
  EXPECT_FALSE(backend(1).supports("no_such_op"));
  EXPECT_EQ(backend(1).name(), "cpu");
}

TEST(CpuBackend, MemoryIsAlignedTouchedAndZero) {
  for (const int64_t bytes : {int64_t{1}, int64_t{5000}, (int64_t{5} << 20) + 17}) {
    auto memory = backend(2).allocate(ir::MemorySpace::kDevice, Bytes(bytes));
    ASSERT_TRUE(memory.ok());
    const auto span = (*memory)->bytes();
    EXPECT_EQ(static_cast<int64_t>(span.size()), bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(span.data()) % (2 << 20), 0U);
    EXPECT_EQ((*memory)->resident_bytes().count, round_up(bytes, 4096));
    EXPECT_TRUE(std::all_of(span.begin(), span.end(), [](std::byte b) { return b == std::byte{0}; }));
  }
  auto nothing = backend(2).allocate(ir::MemorySpace::kHostPinned, Bytes(0));
  ASSERT_TRUE(nothing.ok());
  EXPECT_TRUE((*nothing)->bytes().empty());
  EXPECT_EQ((*nothing)->resident_bytes().count, 0);
}

TEST(CpuBackend, MoreMemoryThanThereIsIsAnErrorAndNotACrash) {
  const auto memory = backend(2).allocate(ir::MemorySpace::kDevice, Bytes(int64_t{1} << 46));
  ASSERT_FALSE(memory.ok());
  EXPECT_EQ(memory.error().code, ErrorCode::kIo);
  EXPECT_NE(memory.error().what.find(to_string(Bytes(int64_t{1} << 46))), std::string::npos)
      << memory.error().what;
  EXPECT_FALSE(memory.error().hint.empty());
}

// y = x + x on one buffer, as a call that stays bound.
struct Doubling {
  ir::Op op;
  std::vector<float> x, y;
  runtime::TensorRef in[2], out[1];

  explicit Doubling(int64_t n) : x(static_cast<size_t>(n), 1.5f), y(static_cast<size_t>(n), 0.0f) {
    op.def = ops::find_op("add");
    const Shape shape{n};
    in[0] = in[1] = {reinterpret_cast<std::byte*>(x.data()), {DType::kF32, shape}, ir::dense_strides(shape)};
    out[0] = {reinterpret_cast<std::byte*>(y.data()), {DType::kF32, shape}, ir::dense_strides(shape)};
  }
  runtime::KernelCall call() { return {&op, in, out, {}}; }
};

TEST(CpuBackend, CaptureRecordsAndReplayRuns) {
  CpuBackend& cpu = backend(3);
  Doubling doubling(40000);
  std::vector<float> copied(40000, 0.0f);
  cpu.begin_capture();
  cpu.launch(doubling.call(), ir::Queue::kCompute);
  const runtime::EventId done = cpu.record(ir::Queue::kCompute);
  cpu.wait(ir::Queue::kCopyOut, done);
  cpu.copy(reinterpret_cast<std::byte*>(copied.data()), doubling.out[0].data, Bytes(160000),
           ir::Queue::kCopyOut);
  const auto graph = cpu.end_capture();
  EXPECT_EQ(copied[39999], 0.0f) << "a captured call does not run";
  cpu.replay(*graph);
  cpu.synchronize(ir::Queue::kCopyOut);
  EXPECT_EQ(copied, std::vector<float>(40000, 3.0f));
  std::fill(doubling.x.begin(), doubling.x.end(), 2.0f);
  cpu.replay(*graph);
  EXPECT_EQ(copied, std::vector<float>(40000, 4.0f));
}

TEST(CpuBackend, CopyOfAnySize) {
  for (const size_t n : {size_t{0}, size_t{1}, size_t{3} << 20}) {
    std::vector<std::byte> from(n, std::byte{7}), to(n);
    backend(3).copy(to.data(), from.data(), Bytes(static_cast<int64_t>(n)), ir::Queue::kCopyIn);
    EXPECT_EQ(to, from);
  }
}

// An op on operands of its own, ready to be launched again and again.
struct Bound {
  ir::Op op;
  Memories memory;
  std::vector<runtime::TensorRef> in, out;
  std::unique_ptr<Guarded> workspace;
  size_t workspace_bytes;

  Bound(const OpRun& run, CpuBackend& cpu) : op(make_op(run)) {
    const ir::OpTypes types = types_of(run, op);
    for (const Tensor& t : run.inputs) in.push_back(place(t, false, memory));
    for (const auto& type : types.outputs) out.push_back(place(Tensor{type, {}}, false, memory));
    for (const ir::Alias& a : ir::op_consumes(op))
      out[static_cast<size_t>(a.output)].data = in[static_cast<size_t>(a.input)].data;
    workspace_bytes = static_cast<size_t>(cpu.workspace_bytes(types));
    workspace = std::make_unique<Guarded>((workspace_bytes + 3) / 4);
  }
  runtime::KernelCall call() {
    return {&op, in, out, {reinterpret_cast<std::byte*>(workspace->data()), workspace_bytes}};
  }
};

TEST(CpuBackend, LaunchingAllocatesNothing) {
  if (!kCounts) GTEST_SKIP() << "a sanitizer's malloc is not counted";
  CpuBackend& cpu = backend(3);
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
  const OpRun runs[] = {
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
    Bound bound(run, cpu);
    cpu.launch(bound.call(), ir::Queue::kCompute);
    const int64_t before = num_allocations.load();
    ASSERT_GT(before, 0);
    for (int i = 0; i < 3; ++i) cpu.launch(bound.call(), ir::Queue::kCompute);
    EXPECT_EQ(num_allocations.load(), before) << run.op;
  }
}

}  // namespace
}  // namespace plimsoll::cpu::testing
