// Caps the kernels of a test binary by PLIMSOLL_ISA, as the program does before its first kernel, so that the
// tests of ops run under each instruction set that a machine has (tests/each_isa.py).
#include <cstdio>
#include <cstdlib>

#include "backends/cpu/kernels/isa.h"

namespace {

[[maybe_unused]] const bool selected = [] {
  const auto isa = plimsoll::cpu::select_isa(std::getenv("PLIMSOLL_ISA"));
  if (isa) return true;
  std::fprintf(stderr, "PLIMSOLL_ISA: %s\n", isa.error().what.c_str());
  std::abort();
}();

}  // namespace
