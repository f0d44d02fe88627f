// The operands that an op overwrites: what must be kept aside for it to be run a second time.
#pragma once

#include <cstdint>
#include <vector>

#include "passes/memory/bind_storage.h"

namespace plimsoll::passes {

/// Bytes begin … end of a storage.
struct StorageRange {
  int32_t storage = -1;
  int64_t begin = 0, end = 0;
};

/// The bytes between a value's first element and its last, those of others included where it is strided.
StorageRange range_of(const ir::Graph& graph, const Binding& binding, ir::ValueId v);

/// The ranges that hold an operand and a result of `op` at once, disjoint and in order, each whole: every
/// operand and result lies in one of them or touches none.
std::vector<StorageRange> overwritten(const ir::Graph& graph, const Binding& binding, const ir::Op& op);

/// Bytes that copies of them take side by side, each from a multiple of kStorageAlignment on, with its first
/// byte as far behind such a multiple as in its storage.
int64_t double_run_bytes(const std::vector<StorageRange>& ranges);

}  // namespace plimsoll::passes
