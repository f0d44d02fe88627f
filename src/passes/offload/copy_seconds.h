// Times by which `offload` tells how early a copy is early enough.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "ir/graph.h"

namespace plimsoll::passes {

/// Of a copy of so many bytes from one space to another.
using CopySeconds = std::function<double(int64_t bytes, ir::MemorySpace from, ir::MemorySpace to)>;
/// Of each op's kernel on the device, by place in the order.
using KernelSeconds = std::function<std::vector<double>(const ir::Graph& graph)>;

}  // namespace plimsoll::passes
