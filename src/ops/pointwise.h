// One op for all arithmetic that treats each element by itself. The conventions are those of ops.h.
#pragma once

#include <string>
#include <vector>

#include "ir/builder.h"

namespace plimsoll::ops {

using ir::Builder;
using ir::ValueId;

/// The expression's value for each element; operands of any floating dtype or i32, stretched to one shape by
/// numpy's rules. Computed in f32. Stored in the widest of the floating operands' dtypes (f32 where they
/// differ), or in f32 where it has one of the functions that PyTorch's autocast keeps in f32 (exp, log, pow,
/// rsqrt, softplus). Op `pointwise`(x0, x1, ...) {expr, shape?, out?}: at most twelve operands (eleven where
/// it is differentiated), {expr} as expression.h says, {shape} a result that is larger than the operands ask
/// for, {out} its dtype. vjp: an op of the same kind for each operand, summed over stretched axes.
ValueId pointwise(Builder& b, const std::string& expression, std::vector<ValueId> operands);

}  // namespace plimsoll::ops
