// Linear layers with few rows use a kernel of their own.
//
//   x [few, in] ─► linear ─► y     ==>     x ─► linear_few ─► y
#pragma once

#include <span>

#include "passes/rewriter.h"

namespace plimsoll::passes {

struct FewRowsOptions {
  std::span<const ir::ValueId> keep = {};
  int64_t most_rows = 0;                   ///< linear maps of at most so many rows are replaced
  ir::DType multiplied = ir::DType::kF32;  ///< what products round their operands to; f32: they do not
};
struct FewRowsReport {
  Replaced replaced = {};
  size_t replaced_ops = 0;
};

/// The one pass that changes bits: a product of few rows reads each weight once, in another order of
/// summation than the GEMM of many rows. So it is for programs in which all linear maps have few rows, and
/// that are not differentiated. Linear time.
Result<FewRowsReport> small_m(ir::Graph& graph, const FewRowsOptions& options = {});

}  // namespace plimsoll::passes
