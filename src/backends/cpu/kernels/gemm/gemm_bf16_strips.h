// Products of bf16 for kernels that keep their sums in registers while all of k that is packed together
// passes by, and write them to C themselves (Kernels::multiply_into). The other cut is gemm_bf16.cpp's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "backends/cpu/kernels/gemm/gemm_bf16.h"

namespace plimsoll::cpu::bf16 {

/// Lines and steps that are worked on at a time; the bits depend on none of it.
struct StripPlan {
  bool private_a = true;    ///< tasks pack strips of A, or of B
  bool a_in_place = false;  ///< the kernels read A where it lies; else the other operand is packed and shared
  int64_t run_steps = 0;    ///< of k, packed together
  int64_t shared_lines = 0;  ///< worked on together
  int64_t strip_lines = 0;   ///< a task's own
};
StripPlan strip_plan(const GemmArgs& args, int num_threads);

/// As bf16::gemm, with kernels that have multiply_into, in the same workspace.
void multiply_strips(const GemmArgs& args, ThreadPool& pool, std::span<std::byte> workspace,
                     const Kernels& kernels);

}  // namespace plimsoll::cpu::bf16
