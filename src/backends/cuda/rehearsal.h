// Finds the modules that the kernels of programs are launched from, and their products, by queueing them
// where nothing runs.
#pragma once

#include <span>
#include <vector>

#include "backends/cuda/module.h"
#include "backends/cuda/stream.h"
#include "ir/graph.h"

namespace plimsoll::cuda {

/// Sorted, each once. Of operands their types are known, and that they are dense: what a strided operand, or
/// the library's choice of algorithms, needs beside these is compiled when it is launched.
std::vector<ModuleId> modules_of(std::span<const ir::Graph* const> programs, int capability);
/// The products that these programs have cuBLASLt compute, one of each form.
std::vector<Product> products_of(std::span<const ir::Graph* const> programs, int capability);

}  // namespace plimsoll::cuda
