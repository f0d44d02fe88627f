// The lookup key of an op's time: its kind, what it computes in, its extents, and how much it has to do.
#pragma once

#include <array>
#include <string_view>

#include "ir/op_def.h"
#include "planner/cost/machine_profile.h"

namespace plimsoll::planner {

struct OpWork {
  /// "linear", "linear_t" (transposed), "linear_dw", "attention", "attention_grad", "head_loss"; else the
  /// op's name. Lives as long as the op's definition.
  std::string_view kind;
  ProductType type = ProductType::kF32;  ///< of a sweep: its shortest operand's or result's
  /// Products: [m, k] x [k, n] as m, n, k. Attention: heads of all sequences, tokens, head_dim. Loss head:
  /// tokens of a chunk, classes, hidden size. Everything else: bytes, 1, 1.
  std::array<double, 3> extents = {1, 1, 1};
  double work = 0;  ///< operations of the first three, else bytes
};

OpWork op_work(const ir::OpTypes& types, const ir::Cost& cost);

/// What the op's products compute in.
ProductType product_type(const ir::OpTypes& types);

}  // namespace plimsoll::planner
