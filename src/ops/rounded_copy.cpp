#include "ops/rounded_copy.h"

#include "ops/operands.h"

namespace plimsoll::ops {

AttrSpec rounded_attr() { return {kRounded, AttrSpec::Kind::kString, false}; }
AttrSpec dx_attr() { return {"dx", AttrSpec::Kind::kString, false}; }

void add_rounded_copy(Operands& in, const OpTypes& types, Types& results) {
  if (!has_rounded_copy(types.attrs)) return;
  check_short(in, types, kRounded);
  in.require(results[0].dtype == DType::kF32, "a result is rounded a second time where it is not f32");
  results.push_back({dtype_attr(types.attrs, kRounded).value_or(DType::kBf16), results[0].shape});
}

void give_rounded_copy(RefContext& ctx) {
  if (!has_rounded_copy(ctx.op.attrs)) return;
  ctx.outputs.back()->data = ctx.outputs[0]->data;
  store(*ctx.outputs.back());
}

}  // namespace plimsoll::ops
