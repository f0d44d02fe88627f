// Shared code of update rules that read whole tensors: gradient and parameter in pieces, whatever they are
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
#include "ops/update_draws.h"

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

// The words of a range of elements, which begins anywhere, also in the tensor of which this is a window.
class RangeDraws {
 public:
  HWY_INLINE RangeDraws(const TensorUpdateCall& call, const TensorRef& out, int64_t first)
      : stream_(call.stream),
        draws_(call.form.draws && out.type.dtype == DType::kBf16),
        first_(call.form.first + first) {}
  // v, of element i of the range, as result `result` stores it.
  HWY_INLINE V stored(V v, int64_t i, int result) {
    if (!draws_) return v;
    HWY_ALIGN uint32_t words[vectors::kWidth];
    const bool is_aligned = (first_ + i) % vectors::kWidth == 0;
    if (is_aligned) word(first_ + i);
    for (int64_t lane = 0; lane < vectors::kWidth && !is_aligned; ++lane)
      words[lane] = word(first_ + i + lane);
    const auto bits = hn::Load(philox::U32(), is_aligned ? words_.words + (first_ + i) % kGroup : words);
    const auto lower = hn::ShiftLeft<16>(bits);
    return draws::round_by(v, result == 0 ? bits : result == 1 ? lower : hn::Xor(bits, lower));
  }

 private:
  static constexpr int64_t kGroup = 4 * vectors::kWidth;
  HWY_INLINE uint32_t word(int64_t element) {
    if (element / kGroup != group_) {
      group_ = element / kGroup;
      words_.draw(stream_, static_cast<uint32_t>(group_ * vectors::kWidth));
    }
    return words_.words[element % kGroup];
  }

  const ops::RandomStream& stream_;
  bool draws_;
  int64_t first_, group_ = -1;
  draws::Draws words_;
};

void step_vectors(const TensorUpdateCall& call, int64_t first, int64_t n, float decay, const float* step) {
  const V factor = vectors::set(decay);
  RangeDraws draws(call, call.new_param, first);
  vectors::for_vectors(n, [&](int64_t i, auto part) HWY_ATTR {
    const V p = stored::load(any(call.param, first + i), part);
    const V next = hn::Sub(hn::Mul(p, factor), vectors::load(step + i, part));
    stored::store(draws.stored(next, i, 0), any(call.new_param, first + i), part);
    if (call.copy != nullptr) stored::store(next, any(*call.copy, first + i), part);
  });
}

void state_vectors(const TensorUpdateCall& call, size_t s, int64_t first, int64_t n, const float* values) {
  RangeDraws draws(call, call.new_states[s], first);
  vectors::for_vectors(n, [&](int64_t i, auto part) HWY_ATTR {
    const V v = draws.stored(vectors::load(values + i, part), i, static_cast<int>(1 + s));
    stored::store(v, any(call.new_states[s], first + i), part);
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

HWY_EXPORT(state_vectors);
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
  const TensorRef& random = call.inputs[form.rule->num_operands() + 2];
  const auto* words = reinterpret_cast<const uint32_t*>(random.as<const int32_t>());
  const ops::UpdateDraws draws = ops::update_draws(
      random.num_elements(), [&](size_t i) { return words[i]; }, call.op->attrs.i64("key"), form.first);
  stream = draws.stream;
  form.first = draws.first;
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

void load_state(const TensorUpdateCall& call, size_t s, int64_t first, int64_t n, float* values) {
  HWY_DYNAMIC_DISPATCH(widen_vectors)(call.states[s], first, n, values);
}

void store_state(const TensorUpdateCall& call, size_t s, int64_t first, int64_t n, const float* values) {
  HWY_DYNAMIC_DISPATCH(state_vectors)(call, s, first, n, values);
}

void load_gradient(const TensorUpdateCall& call, int64_t first, int64_t n, float* values) {
  HWY_DYNAMIC_DISPATCH(gradient_vectors)(call, first, n, values);
}

void load_param(const TensorUpdateCall& call, int64_t first, int64_t n, float* values) {
  HWY_DYNAMIC_DISPATCH(widen_vectors)(call.param, first, n, values);
}

}  // namespace plimsoll::cpu
#endif
