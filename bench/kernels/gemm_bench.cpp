// The yardstick of `make bench`: fp32 GEMM C [m,n] = A [m,k] · B [k,n] at two large shapes, ours beside
// oneDNN and OpenBLAS where they are installed. The best of them is what a step's rate is held against.
// Threads: OMP_NUM_THREADS (2 where it is not set), for all alike.
#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "backends/cpu/kernels/gemm.h"
#include "backends/cpu/thread_pool.h"

#ifdef PLIMSOLL_HAVE_DNNL
#include <dnnl.hpp>
#endif
#ifdef PLIMSOLL_HAVE_OPENBLAS
#include <cblas.h>
#endif

namespace {

using plimsoll::cpu::ThreadPool;

int num_threads() {
  const char* asked = std::getenv("OMP_NUM_THREADS");
  const int count = asked != nullptr ? std::atoi(asked) : 0;
  return count > 0 ? count : 2;
}

struct Shape {
  int64_t m, n, k;
};

/// Operands of one shape, dense and row-major, filled with numbers in [-0.5, 0.5).
struct Operands {
  explicit Operands(const Shape& s) : a(size(s.m, s.k)), b(size(s.k, s.n)), c(size(s.m, s.n)) {
    uint32_t x = 1;
    for (auto* values : {&a, &b})
      for (float& value : *values) {
        x = x * 1664525U + 1013904223U;
        value = static_cast<float>(x >> 8) * 0x1p-24F - 0.5F;
      }
  }
  static size_t size(int64_t rows, int64_t columns) { return static_cast<size_t>(rows * columns); }
  std::vector<float> a, b, c;
};

void run_plimsoll(benchmark::State& state, Shape s) {
  Operands x(s);
  ThreadPool pool(num_threads());
  const auto bytes = static_cast<size_t>(plimsoll::cpu::gemm_workspace_bytes(s.m, s.n, s.k, num_threads()));
  std::vector<std::byte> scratch(bytes + 64);
  void* start = scratch.data();
  size_t room = scratch.size();
  std::align(64, bytes, start, room);
  plimsoll::cpu::GemmArgs args;
  args.m = s.m, args.n = s.n, args.k = s.k;
  args.a = {x.a.data(), s.k, 1};
  args.b = {x.b.data(), s.n, 1};
  args.c = x.c.data();
  args.c_row_stride = s.n;
  for (auto _ : state) plimsoll::cpu::gemm(args, pool, {static_cast<std::byte*>(start), bytes});
}

#ifdef PLIMSOLL_HAVE_DNNL
void run_onednn(benchmark::State& state, Shape s) {
  using dnnl::memory;
  Operands x(s);
  dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  const auto desc = [](int64_t rows, int64_t columns) {
    return memory::desc({rows, columns}, memory::data_type::f32, memory::format_tag::ab);
  };
  const dnnl::matmul::desc op(desc(s.m, s.k), desc(s.k, s.n), desc(s.m, s.n));
  const dnnl::matmul matmul(dnnl::matmul::primitive_desc(op, engine));
  memory a(desc(s.m, s.k), engine, x.a.data()), b(desc(s.k, s.n), engine, x.b.data()),
      c(desc(s.m, s.n), engine, x.c.data());
  for (auto _ : state) {
    matmul.execute(stream, {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, c}});
    stream.wait();
  }
}
#endif

#ifdef PLIMSOLL_HAVE_OPENBLAS
void run_openblas(benchmark::State& state, Shape s) {
  Operands x(s);
  openblas_set_num_threads(num_threads());
  const auto m = static_cast<blasint>(s.m), n = static_cast<blasint>(s.n), k = static_cast<blasint>(s.k);
  for (auto _ : state)
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1.0F, x.a.data(), k, x.b.data(), n, 0.0F,
                x.c.data(), n);
}
#endif

void add(const std::string& name, void (*run)(benchmark::State&, Shape)) {
  for (const Shape s : {Shape{2048, 2048, 2048}, Shape{4096, 4096, 1024}}) {
    const std::string full = "gemm_f32/" + name + "/" + std::to_string(s.m) + "x" + std::to_string(s.n) +
                             "x" + std::to_string(s.k);
    benchmark::RegisterBenchmark(
        full.c_str(),
        [run, s](benchmark::State& state) {
          run(state, s);
          const double flops =
              2.0 * static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k);
          state.counters["FLOP/s"] = benchmark::Counter(flops, benchmark::Counter::kIsIterationInvariantRate,
                                                        benchmark::Counter::kIs1000);
        })
        ->Unit(benchmark::kMillisecond)
        ->UseRealTime();
  }
}

}  // namespace

int main(int argc, char** argv) {
  add("plimsoll", run_plimsoll);
#ifdef PLIMSOLL_HAVE_DNNL
  add("oneDNN", run_onednn);
#endif
#ifdef PLIMSOLL_HAVE_OPENBLAS
  add("OpenBLAS", run_openblas);
#endif
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
