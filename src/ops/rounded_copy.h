// A result that an op writes a second time, rounded, for readers that would round it themselves:
//
//   op ─► x f32 ─► cast ─► x bf16        ==>        op {rounded=bf16} ─► x f32, …, x bf16
//
// Ops that have the attribute can do so; the copy is of result 0 and the op's last result. It has the bits of
// `cast`: the result as it is stored, rounded to nearest even.
#pragma once

#include <string_view>

#include "ir/op_def.h"

namespace plimsoll::ops {

class Operands;

/// The optional attribute: bf16 or f16.
inline constexpr std::string_view kRounded = "rounded";
ir::AttrSpec rounded_attr();
/// Optional beside it, of gradients of norms: the dtype of result 0, that of operand 1 where absent.
ir::AttrSpec dx_attr();
inline bool has_rounded_copy(const ir::Attrs& attrs) { return attrs.find(kRounded) != nullptr; }

/// Adds the copy's type, where there is one. An error in `in` where the attribute names another dtype, or
/// result 0 is not f32.
void add_rounded_copy(Operands& in, const ir::OpTypes& types, std::vector<ir::TensorType>& results);
/// The results of an op but for the copy.
inline size_t results_without_copy(const ir::Attrs& attrs, size_t results) {
  return results - (has_rounded_copy(attrs) ? 1 : 0);
}
/// Of a reference, when result 0 is there.
void give_rounded_copy(ir::RefContext& ctx);

}  // namespace plimsoll::ops
