// Rounds each fp32 weight to 16 bits once a step, for devices whose products round operands in a pass of its
// own: the program of the first micro-batch keeps the rounded weights in states of the session, which the
// programs of the other micro-batches read.
//
//   first    w ─► cast ─┬► linear {bf16}, forward and backward
//                       └► state "cast.weight.<w>.bf16"
//   others   state ─► linear {bf16}
//
// Behind share_casts and recompute: recomputed products read the same copy. What reads the
// weight otherwise (an embedding's rows, a norm) goes on to read it in fp32.
#pragma once

#include <span>

#include "passes/rewriter.h"
#include "passes/training/weight_copies.h"

namespace plimsoll::passes {

struct WeightCastsOptions {
  std::span<const ir::ValueId> keep = {};
  WeightCopies copies = WeightCopies::kOwn;
};

/// The same bits. Linear time. Programs without such products, and kOwn, stay as they are.
Result<Replaced> weight_casts(ir::Graph& graph, const WeightCastsOptions& options);

/// Whether it is a state that this pass declares.
bool is_weight_cast(const ir::StateDecl& state);

}  // namespace plimsoll::passes
