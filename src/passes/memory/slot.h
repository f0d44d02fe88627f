// Places in vectors that hold one element for each value or op of a graph, or for what a plan numbers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ir/graph.h"

namespace plimsoll::passes {

inline size_t slot(ir::ValueId v) { return static_cast<size_t>(v.index); }
inline size_t slot(ir::OpId id) { return static_cast<size_t>(id.index); }
inline size_t slot(int32_t index) { return static_cast<size_t>(index); }

}  // namespace plimsoll::passes
