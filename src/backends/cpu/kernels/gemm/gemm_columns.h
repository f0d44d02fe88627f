// Products of few rows, whose time goes where B comes from: each thread packs its own columns of B and
// multiplies them at once, while what it packs next is on its way from memory. No packed B moves between the
// processors' caches, no thread waits for another's packing.
#pragma once

#include <cstddef>
#include <span>

#include "backends/cpu/kernels/gemm/gemm.h"
#include "backends/cpu/kernels/gemm/gemm_plan.h"

namespace plimsoll::cpu {

/// Multiplies, by the plan of these, where that way is the faster one and the workspace has room; else false,
/// and nothing is done. C and bias are f32; the bits are those of the blocks of gemm.cpp.
bool gemm_by_columns(const GemmArgs& args, const GemmPlan& plan, ThreadPool& pool,
                     std::span<std::byte> workspace);

}  // namespace plimsoll::cpu
