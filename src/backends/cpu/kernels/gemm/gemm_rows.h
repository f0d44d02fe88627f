// Products of very many rows, as convolutions have them: B is packed once, and each thread packs rows of A
// for itself and multiplies them at once. No thread waits while others pack, so that one reads from memory
// while another multiplies.
#pragma once

#include <cstddef>
#include <span>

#include "backends/cpu/kernels/gemm/gemm.h"
#include "backends/cpu/kernels/gemm/gemm_plan.h"

namespace plimsoll::cpu {

/// Multiplies where that way is the faster one and the workspace has room; else false, and nothing is done. C
/// and bias are f32; the bits are those of the blocks of gemm.cpp.
bool gemm_by_rows(const GemmArgs& args, const GemmPlan& plan, ThreadPool& pool,
                  std::span<std::byte> workspace);

}  // namespace plimsoll::cpu
