// Lets a kernel that computes on f32 alone serve bf16 and f16 operands as well: they are widened into
// scratch before it and its results rounded from there after it. Correct for every op; a kernel that reads
// and writes the short types itself (Kernel::stored_dtypes) saves the two trips through memory.
#pragma once

#include <cstdint>

#include "backends/cpu/kernel.h"

namespace plimsoll::cpu {

/// The type of an operand, of which a plan has the type and a call the reference.
inline const ir::TensorType& type_of(const ir::TensorType& type) { return type; }
inline const ir::TensorType& type_of(const TensorRef& ref) { return ref.type; }

/// Scratch of the kernel with its operands as they are, or widened where it needs that; a multiple of
/// runtime::kAlignment in that case.
int64_t kernel_workspace_bytes(const Kernel& kernel, const ir::OpTypes& types, int num_threads);

/// Runs the kernel, widening where it needs that. `call.workspace` is of kernel_workspace_bytes().
void run_kernel(const Kernel& kernel, const KernelCall& call, ThreadPool& pool);

}  // namespace plimsoll::cpu
