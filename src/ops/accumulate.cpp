// Accumulates gradients in bf16 with stochastic rounding: the expected sum is exact, so many micro-batches do
// not lose terms that are small beside the sum.
#include "ops/accumulate.h"

#include "ops/operands.h"
#include "ops/random_operand.h"
#include "ops/rounding.h"
#include "ops/update_rules.h"

namespace plimsoll::ops {
namespace {

Result<Types> infer_accumulate(const OpTypes& t) {
  Operands in(t, 2, {"g", "random", "acc"});
  if (!in) return in.error();
  const Shape& shape = t.inputs[0].shape;
  in.floating({}, {1}).shaped(1, Shape{4}).shaped(2, shape).same_dtype(2, DType::kBf16);
  return in.results({{DType::kBf16, shape}});
}

void reference_accumulate(RefContext& ctx) {
  const RandomStream stream = stream_of(*ctx.inputs[1], ctx.op.attrs);
  const bool has_acc = ctx.inputs.size() > 2 && ctx.inputs[2] != nullptr;
  for (size_t i = 0; i < ctx.outputs[0]->data.size(); ++i) {
    const double sum = (has_acc ? ctx.inputs[2]->data[i] : 0.0) + ctx.inputs[0]->data[i];
    ctx.outputs[0]->data[i] = rounded_stochastically(sum, update_bits(random_words(stream, i / 4)[i % 4], 0));
  }
}

}  // namespace

OpGroup accumulate_ops() {
  static const std::vector<OpDef> kOps = {{.name = "accumulate",
                                           .summary = "acc + g in bf16, rounded stochastically",
                                           .work = {WorkKind::kElementwise},
                                           .min_inputs = 2,
                                           .max_inputs = 3,
                                           .attrs = {int_attr("key")},
                                           .infer = infer_accumulate,
                                           .cost = elementwise_cost<20>,
                                           .reference = reference_accumulate,
                                           .recompute = ir::RecomputeClass::kNever,
                                           .accumulators = {{0, 2}},
                                           .random = 1}};
  return kOps;
}

ValueId accumulate(Builder& b, ValueId g, ValueId random, int64_t key) {
  return b.op("accumulate", {g, random}, {{"key", key}});
}

}  // namespace plimsoll::ops
