// Linear layers with a block-quantized weight, of which only a band of columns is dequantized at a time.
#pragma once

#include "backends/cpu/kernel.h"
#include "backends/cpu/thread_pool.h"

namespace plimsoll::cpu {

/// Of a `linear` whose weight has a block type: the numbers of a band beside the product's own.
int64_t quantized_workspace_bytes(const ir::OpTypes& types, int num_threads);
/// The same bits as `linear` with the weight as f32 numbers: each column of the result depends on its own
/// column of the weight alone.
void quantized_linear(const KernelCall& call, ThreadPool& pool);

}  // namespace plimsoll::cpu
