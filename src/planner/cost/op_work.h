// The lookup key of an op's time: its kind, what it computes in, its extents, and how much it has to do.
#pragma once

#include <array>
#include <string_view>

#include "ir/op_def.h"
#include "planner/cost/machine_profile.h"

namespace plimsoll::planner {

struct OpWork {
  /// The key that rates are kept under: one of ir::Work::keys, or the op's name. Lives as long as its
  /// definition.
  std::string_view kind;
  ProductType type = ProductType::kF32;  ///< of a memory-bound op: its shortest operand's or result's
  /// ir::WorkSize::extents; of an op whose time goes by its bytes: bytes, 1, 1.
  std::array<double, 3> extents = {1, 1, 1};
  double work = 0;  ///< operations; bytes where the time goes by these
};

OpWork op_work(const ir::OpDef& def, const ir::OpTypes& types, const ir::Cost& cost);
/// The work that rates under `key` were measured of; kUnstated where no op has that key.
const ir::Work& work_of_key(std::string_view key);

/// What the op's products compute in.
ProductType product_type(const ir::OpTypes& types);

}  // namespace plimsoll::planner
