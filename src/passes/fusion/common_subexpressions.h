// Computes once what is computed twice.
#pragma once

#include "base/result.h"
#include "ir/graph.h"
#include "passes/rewriter.h"

namespace plimsoll::passes {

struct CommonSubexpressionsOptions {};
struct CommonSubexpressionsReport {
  Replaced replaced = {};
};

/// Merges ops of the same kind, operands and attributes; reads of one state where no assignment lies between;
/// random ops too, as their numbers hang on attributes and operands alone. Left alone: recomputed clones
/// (merging them would keep what they free), ops with an effect, results whose storage another op consumes.
Result<CommonSubexpressionsReport> common_subexpressions(ir::Graph& graph,
                                                         const CommonSubexpressionsOptions& options = {});

}  // namespace plimsoll::passes
