#include "backends/cuda/kernels/optimizer/tensor_update.h"

#include "ops/update_draws.h"

namespace plimsoll::cuda {
namespace {

Status keep(const TensorRef& from, const TensorRef& to, Stream& stream) {
  if (from.data == to.data) return Ok{};
  return stream.copy(to.data, from.data, to.type.bytes().count);
}

}  // namespace

Operand from_element(const Operand& x, int64_t first) {
  if (x.data == nullptr) return x;
  const int64_t bytes = ir::bits(static_cast<ir::DType>(x.dtype)) / 8;
  return {static_cast<std::byte*>(x.data) + first * bytes, x.dtype, 0};
}

TensorStep TensorUpdate::part(int64_t first, int64_t n) const {
  TensorStep part = step;
  part.param = from_element(step.param, first);
  part.grad = from_element(step.grad, first);
  part.copy = from_element(step.copy, first);
  part.n = n;
  part.first = step.first + first;
  return part;
}

Result<TensorUpdate> tensor_update(const KernelCall& call, Stream& stream) {
  const ir::Attrs& attrs = call.op->attrs;
  TensorUpdate update;
  update.form = ops::tensor_form(call.op->def->name, attrs);
  const size_t states = update.form.rule->states.size(), shared = update.form.rule->num_operands();
  update.states = call.outputs.subspan(1, states);
  PLIMSOLL_TRY(keep(call.inputs[0], call.outputs[0], stream));
  for (size_t s = 0; s < states; ++s) PLIMSOLL_TRY(keep(call.inputs[2 + s], update.states[s], stream));
  const TensorRef& groups = call.inputs[shared + 1];
  TensorStep& step = update.step;
  step.param = operand(call.outputs[0]);
  step.grad = operand(call.inputs[1]);
  if (update.form.copy) step.copy = operand(call.outputs[1 + states]);
  step.clip = call.inputs[shared].as<const float>();
  step.group = groups.as<const float>() + attrs.i64("group") * groups.shape().dim(1);
  step.n = call.inputs[0].num_elements();
  step.first = update.form.first;
  step.rounded = static_cast<int32_t>(update.form.rounded.value_or(ir::DType::kF32));
  if (!update.form.draws) return update;
  const TensorRef& random = call.inputs[shared + 2];
  step.random = random.as<const uint32_t>();
  step.is_shared = random.num_elements() == ops::kOwnDraws ? 1 : 0;
  step.key = static_cast<uint32_t>(attrs.i64("key"));
  return update;
}

}  // namespace plimsoll::cuda
