// The matrix products of the training steps W1 (Llama, hidden 288, 2048 tokens), W2 (SmolLM-135M shape, 512
// tokens) and W2b (2048 tokens), fp32: ours beside oneDNN and OpenBLAS; and the 15 of W2 and of W2b in bf16,
// operands and C in memory as bf16 (gradients of weights: fp32), ours beside oneDNN's bf16 product. Threads:
// PLIMSOLL_BENCH_THREADS (default 1) for all; give oneDNN and OpenBLAS theirs as OMP_NUM_THREADS and
// OPENBLAS_NUM_THREADS of the same value.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "backends/cpu/kernels/gemm/gemm.h"

#ifdef PLIMSOLL_HAVE_DNNL
#include <dnnl.h>
#endif
#ifdef PLIMSOLL_HAVE_OPENBLAS
#include <cblas.h>
#endif

namespace plimsoll::cpu {
namespace {

// A is [m,k] or, transposed, [k,m]; B is [k,n] or [n,k].
struct Shape {
  const char* name;
  int64_t m, n, k;
  bool a_transposed, b_transposed;
  int64_t segment;  // of k, for ours
};

constexpr bool kT = true, kN = false;
constexpr Shape kShapes[] = {
    {"wide_4096", 4096, 4096, 1024, kN, kN, 0},
    {"w1_qkv", 2048, 864, 288, kN, kT, 0},
    {"w1_o", 2048, 288, 288, kN, kT, 0},
    {"w1_gate_up", 2048, 1536, 288, kN, kT, 0},
    {"w1_down", 2048, 288, 768, kN, kT, 0},
    {"w1_gate_up_dx", 2048, 288, 1536, kN, kN, 0},
    {"w1_gate_up_dw", 1536, 288, 2048, kT, kN, 256},
    {"w1_head", 512, 4096, 288, kN, kT, 0},
    {"w2_qkv", 512, 960, 576, kN, kT, 0},
    {"w2_o", 512, 576, 576, kN, kT, 0},
    {"w2_gate_up", 512, 3072, 576, kN, kT, 0},
    {"w2_down", 512, 576, 1536, kN, kT, 0},
    {"w2_qkv_dx", 512, 576, 960, kN, kN, 0},
    {"w2_gate_up_dx", 512, 576, 3072, kN, kN, 0},
    {"w2_down_dx", 512, 1536, 576, kN, kN, 0},
    {"w2_qkv_dw", 960, 576, 512, kT, kN, 0},
    {"w2_gate_up_dw", 3072, 576, 512, kT, kN, 0},
    {"w2_down_dw", 576, 1536, 512, kT, kN, 0},
    {"w2_head", 256, 49152, 576, kN, kT, 0},
    {"w2_head_dx", 256, 576, 49152, kN, kN, 0},
    {"w2_head_dw", 49152, 576, 256, kT, kN, 0},
    {"w2b_qkv", 2048, 960, 576, kN, kT, 0},
    {"w2b_gate_up", 2048, 3072, 576, kN, kT, 0},
    {"w2b_down", 2048, 576, 1536, kN, kT, 0},
    {"w2b_gate_up_dx", 2048, 576, 3072, kN, kN, 0},
    {"w2b_gate_up_dw", 3072, 576, 2048, kT, kN, 512},
    {"w2b_down_dw", 576, 1536, 2048, kT, kN, 512},
    {"w4_head_64", 64, 151936, 896, kN, kT, 0},
    {"w4_head_dx_64", 64, 896, 151936, kN, kN, 0},
    {"w4_head", 256, 151936, 896, kN, kT, 0},
    {"w4_head_dx", 256, 896, 151936, kN, kN, 0},
    {"w4_gate_up", 512, 9728, 896, kN, kT, 0},
    {"w4_gate_up_dx", 512, 896, 9728, kN, kN, 0},
    {"w4_down", 512, 896, 4864, kN, kT, 0},
    {"w4_down_dx", 512, 4864, 896, kN, kN, 0},
    {"square_1024", 1024, 1024, 1024, kN, kN, 0},
    {"square_2048", 2048, 2048, 2048, kN, kN, 0},
};

// The five linear maps of W2 and of W2b, forward and both gradients.
constexpr Shape kBf16Shapes[] = {
    {"w2_qkv", 512, 960, 576, kN, kT, 0},           {"w2_qkv_dx", 512, 576, 960, kN, kN, 0},
    {"w2_qkv_dw", 960, 576, 512, kT, kN, 512},      {"w2_o", 512, 576, 576, kN, kT, 0},
    {"w2_o_dx", 512, 576, 576, kN, kN, 0},          {"w2_o_dw", 576, 576, 512, kT, kN, 512},
    {"w2_gate_up", 512, 3072, 576, kN, kT, 0},      {"w2_gate_up_dx", 512, 576, 3072, kN, kN, 0},
    {"w2_gate_up_dw", 3072, 576, 512, kT, kN, 512}, {"w2_down", 512, 576, 1536, kN, kT, 0},
    {"w2_down_dx", 512, 1536, 576, kN, kN, 0},      {"w2_down_dw", 576, 1536, 512, kT, kN, 512},
    {"w2_head", 512, 49152, 576, kN, kT, 0},        {"w2_head_dx", 512, 576, 49152, kN, kN, 0},
    {"w2_head_dw", 49152, 576, 512, kT, kN, 512},   {"w2b_qkv", 2048, 960, 576, kN, kT, 0},
    {"w2b_qkv_dx", 2048, 576, 960, kN, kN, 0},      {"w2b_qkv_dw", 960, 576, 2048, kT, kN, 512},
    {"w2b_o", 2048, 576, 576, kN, kT, 0},           {"w2b_o_dx", 2048, 576, 576, kN, kN, 0},
    {"w2b_o_dw", 576, 576, 2048, kT, kN, 512},      {"w2b_gate_up", 2048, 3072, 576, kN, kT, 0},
    {"w2b_gate_up_dx", 2048, 576, 3072, kN, kN, 0}, {"w2b_gate_up_dw", 3072, 576, 2048, kT, kN, 512},
    {"w2b_down", 2048, 576, 1536, kN, kT, 0},       {"w2b_down_dx", 2048, 1536, 576, kN, kN, 0},
    {"w2b_down_dw", 576, 1536, 2048, kT, kN, 512},  {"w2b_head", 2048, 49152, 576, kN, kT, 0},
    {"w2b_head_dx", 2048, 576, 49152, kN, kN, 0},   {"w2b_head_dw", 49152, 576, 2048, kT, kN, 512},
};

int num_threads() {
  const char* threads = std::getenv("PLIMSOLL_BENCH_THREADS");
  return threads ? std::max(1, std::atoi(threads)) : 1;
}

std::vector<float> values(int64_t count) {
  std::vector<float> x(static_cast<size_t>(count));
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 2654435761u % 2003) / 1001.5f - 1.0f;
  return x;
}

struct Operands {
  std::vector<float> a, b, c;
  int64_t a_stride, b_stride;
  explicit Operands(const Shape& s)
      : a(values(s.m * s.k)),
        b(values(s.k * s.n)),
        c(static_cast<size_t>(s.m * s.n)),
        a_stride(s.a_transposed ? s.m : s.k),
        b_stride(s.b_transposed ? s.k : s.n) {}
};

void count(benchmark::State& state, const Shape& s) {
  const double operations =
      2.0 * static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k);
  state.counters["GFLOP/s"] =
      benchmark::Counter(operations * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
}

void run_ours(benchmark::State& state, const Shape& s, cpu::GemmArgs g) {
  g.past_caches = cpu::beyond_caches(s.m * s.n, g.c_dtype);
  static cpu::ThreadPool pool(num_threads());
  const int64_t bytes =
      cpu::gemm_workspace_bytes(s.m, s.n, s.k, pool.num_threads(), {g.precision, g.c_dtype});
  std::vector<std::byte> memory(static_cast<size_t>(bytes) + 64);
  void* at = memory.data();
  size_t room = memory.size();
  std::align(64, static_cast<size_t>(bytes), at, room);
  const std::span<std::byte> workspace(static_cast<std::byte*>(at), static_cast<size_t>(bytes));
  for (auto _ : state) gemm(g, pool, workspace);
  count(state, s);
}

cpu::GemmArgs arguments(const Shape& s, const Operands& x) {
  cpu::GemmArgs g{.m = s.m, .n = s.n, .k = s.k};
  g.a = {x.a.data(), s.a_transposed ? 1 : x.a_stride, s.a_transposed ? x.a_stride : 1};
  g.b = {x.b.data(), s.b_transposed ? 1 : x.b_stride, s.b_transposed ? x.b_stride : 1};
  g.c_row_stride = s.n;
  g.k_segment = s.segment;
  return g;
}

void ours(benchmark::State& state, const Shape& s) {
  Operands x(s);
  cpu::GemmArgs g = arguments(s, x);
  g.c = x.c.data();
  run_ours(state, s, g);
}

std::vector<uint16_t> as_bf16(const std::vector<float>& x) {
  std::vector<uint16_t> y(x.size());
  for (size_t i = 0; i < x.size(); ++i) y[i] = static_cast<uint16_t>(std::bit_cast<uint32_t>(x[i]) >> 16);
  return y;
}

struct Bf16Operands {
  std::vector<uint16_t> a, b;
  explicit Bf16Operands(const Operands& x) : a(as_bf16(x.a)), b(as_bf16(x.b)) {}
};

void ours_bf16(benchmark::State& state, const Shape& s) {
  Operands x(s);
  const Bf16Operands low(x);
  cpu::GemmArgs g = arguments(s, x);
  g.precision = Precision::kBf16;
  g.a.data = low.a.data(), g.a.dtype = ir::DType::kBf16;
  g.b.data = low.b.data(), g.b.dtype = ir::DType::kBf16;
  g.c = x.c.data();  // room enough
  g.c_dtype = s.a_transposed ? ir::DType::kF32 : ir::DType::kBf16;
  run_ours(state, s, g);
}

#ifdef PLIMSOLL_HAVE_DNNL
void dnnl(benchmark::State& state, const Shape& s) {
  Operands x(s);
  for (auto _ : state)
    dnnl_sgemm(s.a_transposed ? 'T' : 'N', s.b_transposed ? 'T' : 'N', s.m, s.n, s.k, 1.0f, x.a.data(),
               x.a_stride, x.b.data(), x.b_stride, 0.0f, x.c.data(), s.n);
  count(state, s);
}
#endif

#if defined(PLIMSOLL_HAVE_DNNL) && DNNL_VERSION_MAJOR == 2
// The C interface of oneDNN 2, which is Debian 12's; that of 3 differs.
struct DnnlMatmul {
  dnnl_engine_t engine = nullptr;
  dnnl_stream_t stream = nullptr;
  dnnl_primitive_t primitive = nullptr;
  dnnl_memory_t a = nullptr, b = nullptr, c = nullptr;

  DnnlMatmul(const Shape& s, Operands& x, Bf16Operands& low) {
    dnnl_engine_create(&engine, dnnl_cpu, 0);
    dnnl_stream_create(&stream, engine, dnnl_stream_default_flags);
    const auto matrix = [&](int64_t rows, int64_t columns, bool transposed, dnnl_data_type_t type, void* data,
                            dnnl_memory_desc_t& desc) {
      const dnnl_dims_t dims = {rows, columns};
      const dnnl_dims_t strides = {transposed ? 1 : columns, transposed ? rows : 1};
      dnnl_memory_desc_init_by_strides(&desc, 2, dims, type, strides);
      dnnl_memory_t memory = nullptr;
      dnnl_memory_create(&memory, &desc, engine, data);
      return memory;
    };
    dnnl_memory_desc_t of_a, of_b, of_c;
    a = matrix(s.m, s.k, s.a_transposed, dnnl_bf16, low.a.data(), of_a);
    b = matrix(s.k, s.n, s.b_transposed, dnnl_bf16, low.b.data(), of_b);
    c = matrix(s.m, s.n, false, s.a_transposed ? dnnl_f32 : dnnl_bf16, x.c.data(), of_c);
    dnnl_matmul_desc_t matmul;
    dnnl_matmul_desc_init(&matmul, &of_a, &of_b, nullptr, &of_c);
    dnnl_primitive_desc_t desc = nullptr;
    if (dnnl_primitive_desc_create(&desc, &matmul, nullptr, engine, nullptr) != dnnl_success) return;
    dnnl_primitive_create(&primitive, desc);
    dnnl_primitive_desc_destroy(desc);
  }
  DnnlMatmul(const DnnlMatmul&) = delete;
  DnnlMatmul& operator=(const DnnlMatmul&) = delete;
  ~DnnlMatmul() {
    if (primitive) dnnl_primitive_destroy(primitive);
    for (dnnl_memory_t memory : {a, b, c}) dnnl_memory_destroy(memory);
    dnnl_stream_destroy(stream);
    dnnl_engine_destroy(engine);
  }
};

void dnnl_bf16(benchmark::State& state, const Shape& s) {
  Operands x(s);
  Bf16Operands low(x);
  DnnlMatmul matmul(s, x, low);
  if (!matmul.primitive) return state.SkipWithError("oneDNN has no bf16 product here");
  const dnnl_exec_arg_t args[] = {
      {DNNL_ARG_SRC, matmul.a}, {DNNL_ARG_WEIGHTS, matmul.b}, {DNNL_ARG_DST, matmul.c}};
  for (auto _ : state) {
    dnnl_primitive_execute(matmul.primitive, matmul.stream, 3, args);
    dnnl_stream_wait(matmul.stream);
  }
  count(state, s);
}
#endif

#ifdef PLIMSOLL_HAVE_OPENBLAS
void openblas(benchmark::State& state, const Shape& s) {
  Operands x(s);
  const auto i = [](int64_t v) { return static_cast<blasint>(v); };
  for (auto _ : state)
    cblas_sgemm(CblasRowMajor, s.a_transposed ? CblasTrans : CblasNoTrans,
                s.b_transposed ? CblasTrans : CblasNoTrans, i(s.m), i(s.n), i(s.k), 1.0f, x.a.data(),
                i(x.a_stride), x.b.data(), i(x.b_stride), 0.0f, x.c.data(), i(s.n));
  count(state, s);
}
#endif

using Body = void (*)(benchmark::State&, const Shape&);

const bool kRegistered = [] {
  const auto add = [](const std::string& what, const std::string& who, const Shape& s, Body body) {
    benchmark::RegisterBenchmark((what + "/" + std::string(s.name) + "/" + who).c_str(),
                                 [&s, body](benchmark::State& state) { body(state, s); })
        ->UseRealTime()
        ->Unit(benchmark::kMicrosecond)
        ->MinTime(0.1);
  };
  for (const Shape& s : kShapes) {
    add("gemm", "plimsoll", s, ours);
#ifdef PLIMSOLL_HAVE_DNNL
    add("gemm", "onednn", s, dnnl);
#endif
#ifdef PLIMSOLL_HAVE_OPENBLAS
    add("gemm", "openblas", s, openblas);
#endif
  }
  for (const Shape& s : kBf16Shapes) {
    add("gemm_bf16", "plimsoll", s, ours_bf16);
#if defined(PLIMSOLL_HAVE_DNNL) && DNNL_VERSION_MAJOR == 2
    add("gemm_bf16", "onednn", s, dnnl_bf16);
#endif
  }
  return true;
}();

}  // namespace
}  // namespace plimsoll::cpu
