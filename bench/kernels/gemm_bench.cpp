// The matrix products of the training steps W1 (Llama, hidden 288, 2048 tokens), W2 (SmolLM-135M shape, 512
// tokens) and W2b (2048 tokens), fp32: ours beside oneDNN and OpenBLAS. Threads: PLIMSOLL_BENCH_THREADS
// (default 1) for all; give oneDNN and OpenBLAS theirs as OMP_NUM_THREADS and OPENBLAS_NUM_THREADS of the
// same value.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "backends/cpu/kernels/gemm.h"

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
    {"square_1024", 1024, 1024, 1024, kN, kN, 0},
    {"square_2048", 2048, 2048, 2048, kN, kN, 0},
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

void ours(benchmark::State& state, const Shape& s) {
  static ThreadPool pool(num_threads());
  Operands x(s);
  const int64_t bytes = gemm_workspace_bytes(s.m, s.n, s.k, pool.num_threads());
  std::vector<std::byte> memory(static_cast<size_t>(bytes) + 64);
  void* at = memory.data();
  size_t room = memory.size();
  std::align(64, static_cast<size_t>(bytes), at, room);
  const std::span<std::byte> workspace(static_cast<std::byte*>(at), static_cast<size_t>(bytes));
  GemmArgs g{.m = s.m, .n = s.n, .k = s.k, .c = x.c.data(), .c_row_stride = s.n, .k_segment = s.segment};
  g.a = {x.a.data(), s.a_transposed ? 1 : x.a_stride, s.a_transposed ? x.a_stride : 1};
  g.b = {x.b.data(), s.b_transposed ? 1 : x.b_stride, s.b_transposed ? x.b_stride : 1};
  for (auto _ : state) gemm(g, pool, workspace);
  count(state, s);
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
  const auto add = [](const std::string& who, const Shape& s, Body body) {
    benchmark::RegisterBenchmark(("gemm/" + std::string(s.name) + "/" + who).c_str(),
                                 [&s, body](benchmark::State& state) { body(state, s); })
        ->UseRealTime()
        ->Unit(benchmark::kMicrosecond)
        ->MinTime(0.1);
  };
  for (const Shape& s : kShapes) {
    add("plimsoll", s, ours);
#ifdef PLIMSOLL_HAVE_DNNL
    add("onednn", s, dnnl);
#endif
#ifdef PLIMSOLL_HAVE_OPENBLAS
    add("openblas", s, openblas);
#endif
  }
  return true;
}();

}  // namespace
}  // namespace plimsoll::cpu
