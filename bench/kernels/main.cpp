// bench_kernels: every kernel's figures in one binary, the yardsticks' beside them. Compare within one run
// only, best with --benchmark_enable_random_interleaving=true --benchmark_repetitions=5.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>

#include "backends/cpu/kernels/isa.h"

int main(int argc, char** argv) {
  const auto isa = plimsoll::cpu::select_isa(std::getenv("PLIMSOLL_ISA"));
  if (!isa) {
    std::fprintf(stderr, "error: %s\n", isa.error().message().c_str());
    return 2;
  }
  benchmark::AddCustomContext("isa", std::string(plimsoll::cpu::isa_name(*isa)));
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
