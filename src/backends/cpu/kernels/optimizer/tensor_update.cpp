// What the rules that look beyond one element share: gradient and parameter in pieces, whatever they are
// stored in.
#include "backends/cpu/kernels/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/optimizer/tensor_update.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
//
#include <algorithm>
#include <cmath>
#include <cstring>

#include "backends/cpu/kernels/operands.h"
#include "backends/cpu/kernels/optimizer/draws-inl.h"
#include "backends/cpu/kernels/optimizer/tensor_update.h"
#include "backends/cpu/kernels/stored-inl.h"
#include "backends/cpu/kernels/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using ir::DType;
using vectors::F32;
using vectors::V;

HWY_INLINE stored::Any any(const TensorRef& ref, int64_t i) {
  return stored::Any{ref.data, ref.type.dtype} + i;
}

void step_vectors(const TensorUpdateCall& call, int64_t first, int64_t n, float decay, const float* step) {
  const V factor = vectors::set(decay);
  const bool draws = call.form.draws && call.new_param.type.dtype == DType::kBf16;
  draws::Draws words;
  int64_t drawn = -1;  // of which four vectors
  vectors::for_vectors(n, [&](int64_t i, auto part) HWY_ATTR {
    const V p = stored::load(any(call.param, first + i), part);
    const V next = hn::Sub(hn::Mul(p, factor), vectors::load(step + i, part));
    const int64_t vector = i / vectors::kWidth;
    if (draws && vector / 4 != drawn) {
      drawn = vector / 4;
      words.draw(call.stream, static_cast<uint32_t>((first + 4 * drawn * vectors::kWidth) / 4));
    }
    stored::store(draws ? draws::round_by(next, words.bits(0, vector % 4)) : next,
                  any(call.new_param, first + i), part);
    if (call.copy != nullptr) stored::store(next, any(*call.copy, first + i), part);
  });
}

void gradient_vectors(const TensorUpdateCall& call, int64_t first, int64_t n, float* values) {
  const V clip = vectors::set(call.clip);
  vectors::for_vectors(n, [&](int64_t i, auto part) HWY_ATTR {
    const V g = stored::load(any(call.grad, first + i), part);
    vectors::store(hn::Mul(stored::rounded(F32(), g, call.rounded), clip), values + i, part);
  });
}

void widen_vectors(const TensorRef& ref, int64_t first, int64_t n, float* values) {
  vectors::for_vectors(n, [&](int64_t i, auto part) HWY_ATTR {
    vectors::store(stored::load(any(ref, first + i), part), values + i, part);
  });
}

void narrow_vectors(const TensorRef& from, const TensorRef& to, int64_t first, int64_t n) {
  vectors::for_vectors(n, [&](int64_t i, auto part) HWY_ATTR {
    stored::store(stored::load(any(from, first + i), part), any(to, first + i), part);
  });
}

}  // namespace
}  // namespace plimsoll::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::cpu {
namespace {

HWY_EXPORT(step_vectors);
HWY_EXPORT(gradient_vectors);
HWY_EXPORT(widen_vectors);
HWY_EXPORT(narrow_vectors);

}  // namespace

TensorUpdateCall::TensorUpdateCall(const KernelCall& call)
    : form(ops::tensor_form(call.op->def->name, call.op->attrs)),
      param(call.inputs[0]),
      grad(call.inputs[1]),
      new_param(call.outputs[0]),
      copy(form.copy ? &call.outputs[form.rule->num_results()] : nullptr),
      states(call.inputs.subspan(2, form.rule->states.size())),
      new_states(call.outputs.subspan(1, form.rule->states.size())),
      clip(*call.inputs[form.rule->num_operands()].as<const float>()),
      group(call.inputs[form.rule->num_operands() + 1].as<const float>() +
            call.op->attrs.i64("group") * call.inputs[form.rule->num_operands() + 1].type.shape.dim(1)),
      is_skipped(std::isnan(clip)),
      rounded(form.rounded.value_or(ir::DType::kF32)) {
  if (!form.draws) return;
  const auto* random =
      reinterpret_cast<const uint32_t*>(call.inputs[form.rule->num_operands() + 2].as<const int32_t>());
  stream = {random[0], random[1], random[2], 0, static_cast<uint32_t>(call.op->attrs.i64("key"))};
}

void TensorUpdateCall::keep(ThreadPool& pool) const {
  const auto put = [](const TensorRef& from, const TensorRef& to) {
    if (from.data != to.data) std::memcpy(to.data, from.data, static_cast<size_t>(from.type.bytes().count));
  };
  put(param, new_param);
  for (size_t s = 0; s < states.size(); ++s) put(states[s], new_states[s]);
  if (copy == nullptr) return;
  for_blocks(pool, param.num_elements(), kBlockElements, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(narrow_vectors)(param, *copy, begin, end - begin);
  });
}

void step_param(const TensorUpdateCall& call, int64_t first, int64_t n, float decay, const float* step) {
  HWY_DYNAMIC_DISPATCH(step_vectors)(call, first, n, decay, step);
}

void load_gradient(const TensorUpdateCall& call, int64_t first, int64_t n, float* values) {
  HWY_DYNAMIC_DISPATCH(gradient_vectors)(call, first, n, values);
}

void load_param(const TensorUpdateCall& call, int64_t first, int64_t n, float* values) {
  HWY_DYNAMIC_DISPATCH(widen_vectors)(call.param, first, n, values);
}

}  // namespace plimsoll::cpu
#endif
