// The update rules over vectors. A new rule is a chunk function and its row in kRules.
#include "backends/cpu/kernels/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/optimizer/update_chunk.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
//
#include <algorithm>
#include <cmath>

#include "backends/cpu/kernels/optimizer/draws-inl.h"
#include "backends/cpu/kernels/optimizer/update_chunk.h"
#include "backends/cpu/kernels/stored-inl.h"
#include "backends/cpu/kernels/vectors-inl.h"
#include "base/check.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using draws::Draws;
using draws::round_by;
using ir::DType;
using vectors::F32;
using vectors::load;
using vectors::set;
using vectors::store;
using vectors::V;

// Operand and result `k` from element i on.
HWY_INLINE stored::Any in_at(const UpdateChunk& a, int k, int64_t i) {
  return stored::Any{a.in[k], a.in_dtype[k]} + i;
}
HWY_INLINE stored::Any out_at(const UpdateChunk& a, int k, int64_t i) {
  return stored::Any{a.out[k], a.out_dtype[k]} + i;
}

// ---- updates

// One vector of elements, of any dtypes; `vector` of the draws.
template <int States, class Rule, class Part>
HWY_INLINE void update_stored(const UpdateChunk& a, int64_t i, Part part, const Draws& draws, int64_t vector,
                              const Rule& rule) {
  const V g = hn::Mul(stored::rounded(F32(), stored::load(in_at(a, 1, i), part), a.rounded), set(a.clip));
  V p = stored::load(in_at(a, 0, i), part);
  V states[kMaxStates];
  for (int s = 0; s < States; ++s) states[s] = stored::load(in_at(a, 2 + s, i), part);
  rule(g, p, states);
  const V copy = p;
  for (int r = 0; r <= States; ++r) {
    V v = r == 0 ? p : states[r - 1];
    if (a.draws && a.out_dtype[r] == DType::kBf16) v = round_by(v, draws.bits(r, vector));
    stored::store(v, out_at(a, r, i), part);
  }
  if (a.out[1 + States] != nullptr) stored::store(copy, out_at(a, 1 + States, i), part);
}

template <int States, class Rule>
HWY_INLINE void for_stored(const UpdateChunk& a, int64_t n, const Rule& rule) {
  Draws draws;
  for (int64_t i = 0; i < n;) {
    if (a.draws) draws.draw(a.stream, a.block + static_cast<uint32_t>(i / 4));
    for (int64_t vector = 0; vector < 4 && i < n; ++vector, i += vectors::kWidth) {
      if (i + vectors::kWidth <= n)
        update_stored<States>(a, i, vectors::Full{}, draws, vector, rule);
      else
        update_stored<States>(a, i, vectors::Tail{static_cast<size_t>(n - i)}, draws, vector, rule);
    }
  }
}

// A skipped step: parameter and states stay what they are, wherever they go.
template <int States>
HWY_INLINE void keep(const UpdateChunk& a, int64_t n) {
  for (int r = 0; r <= States; ++r) {
    const std::byte* from = a.in[r == 0 ? 0 : 1 + r];
    if (from != a.out[r]) std::copy_n(from, n * (ir::bits(a.out_dtype[r]) / 8), a.out[r]);
  }
  if (a.out[1 + States] == nullptr) return;
  vectors::for_vectors(n, [&](int64_t i, auto part) HWY_ATTR {
    stored::store(stored::load(in_at(a, 0, i), part), out_at(a, 1 + States, i), part);
  });
}

// rule(g, p, states) for all elements, with `States` states; g is clipped. The rule replaces p and the
// states.
template <int States, class Rule>
HWY_INLINE void for_elements(const UpdateChunk& a, int64_t n, Rule rule) {
  static_assert(States <= kMaxStates);
  if (std::isnan(a.clip)) return keep<States>(a, n);
  if (!a.is_plain) return for_stored<States>(a, n, rule);
  const V clip = set(a.clip);
  const auto in = [&](int k) HWY_ATTR { return reinterpret_cast<const float*>(a.in[k]); };
  const auto out = [&](int k) HWY_ATTR { return reinterpret_cast<float*>(a.out[k]); };
  vectors::for_vectors(n, [&](int64_t i, auto part) HWY_ATTR {
    const V g = hn::Mul(load(in(1) + i, part), clip);
    V p = load(in(0) + i, part);
    V states[kMaxStates];
    for (int s = 0; s < States; ++s) states[s] = load(in(2 + s) + i, part);
    rule(g, p, states);
    store(p, out(0) + i, part);
    for (int s = 0; s < States; ++s) store(states[s], out(1 + s) + i, part);
  });
}

// Plain multiplications and additions, as PyTorch's own loop has them; exact division and square root. The
// gradient of `kL2` has the decay, fused as PyTorch's add with a factor is.
template <bool kL2>
HWY_INLINE void adam(const UpdateChunk& a, int64_t n) {
  const auto field = [&](ops::AdamwField f) HWY_ATTR { return set(a.group[f]); };
  const V decay = field(ops::kAdamwDecay), one_minus_beta1 = field(ops::kAdamwOneMinusBeta1);
  const V beta2 = field(ops::kAdamwBeta2), one_minus_beta2 = field(ops::kAdamwOneMinusBeta2);
  const V eps = field(ops::kAdamwEpsilon), step_size = field(ops::kAdamwStepSize),
          correction = field(ops::kAdamwSqrtCorrection2);
  const V l2 = set(kL2 ? a.group[ops::kAdamL2Decay] : 0.0F);
  for_elements<2>(a, n, [&](V g, V& p, V* states) HWY_ATTR {
    V &m = states[0], &v = states[1];
    if (kL2) g = hn::MulAdd(l2, p, g);
    m = hn::Add(m, hn::Mul(hn::Sub(g, m), one_minus_beta1));
    v = hn::Add(hn::Mul(v, beta2), hn::Mul(hn::Mul(one_minus_beta2, g), g));
    const V denominator = hn::Add(hn::Div(hn::Sqrt(v), correction), eps);
    p = hn::Sub(hn::Mul(p, decay), hn::Mul(step_size, hn::Div(m, denominator)));
  });
}
void adamw_chunk(const UpdateChunk& a, int64_t n) { adam<false>(a, n); }
void adam_l2_chunk(const UpdateChunk& a, int64_t n) { adam<true>(a, n); }

// Fused where PyTorch's add with a factor is. Without decay that adds a zero, which PyTorch leaves out.
void sgd_chunk(const UpdateChunk& a, int64_t n) {
  const V decay = set(a.group[ops::kSgdWeightDecay]), rate = set(a.group[ops::kSgdRate]);
  for_elements<0>(
      a, n, [&](V g, V& p, V* /*states*/) HWY_ATTR { p = hn::NegMulAdd(rate, hn::MulAdd(decay, p, g), p); });
}

void sgd_momentum_chunk(const UpdateChunk& a, int64_t n) {
  const V decay = set(a.group[ops::kSgdWeightDecay]), rate = set(a.group[ops::kSgdRate]);
  const V momentum = set(a.group[ops::kSgdMomentum]), fresh = set(a.group[ops::kSgdFresh]);
  const auto nesterov = hn::Ne(set(a.group[ops::kSgdNesterov]), vectors::zero());
  for_elements<1>(a, n, [&](V g, V& p, V* states) HWY_ATTR {
    const V decayed = hn::MulAdd(decay, p, g);
    const V buffer = states[0] = hn::MulAdd(fresh, decayed, hn::Mul(states[0], momentum));
    p = hn::NegMulAdd(rate, hn::IfThenElse(nesterov, hn::MulAdd(momentum, buffer, decayed), buffer), p);
  });
}

void lion_chunk(const UpdateChunk& a, int64_t n) {
  const auto field = [&](ops::LionField f) HWY_ATTR { return set(a.group[f]); };
  const V decay = field(ops::kLionDecay), rate = field(ops::kLionRate);
  const V beta1 = field(ops::kLionBeta1), one_minus_beta1 = field(ops::kLionOneMinusBeta1);
  const V beta2 = field(ops::kLionBeta2), one_minus_beta2 = field(ops::kLionOneMinusBeta2);
  for_elements<1>(a, n, [&](V g, V& p, V* states) HWY_ATTR {
    V& m = states[0];
    const V c = hn::MulAdd(one_minus_beta1, g, hn::Mul(m, beta1));
    const V step = hn::IfThenElseZero(hn::Ne(c, vectors::zero()), hn::CopySign(rate, c));
    p = hn::Sub(hn::Mul(p, decay), step);
    m = hn::MulAdd(one_minus_beta2, g, hn::Mul(m, beta2));
  });
}

}  // namespace
}  // namespace plimsoll::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::cpu {
namespace {

HWY_EXPORT(adam_l2_chunk);
HWY_EXPORT(adamw_chunk);
HWY_EXPORT(lion_chunk);
HWY_EXPORT(sgd_chunk);
HWY_EXPORT(sgd_momentum_chunk);

// The rules and how each updates a chunk on this machine.
struct RuleKernel {
  std::string_view rule;
  ChunkFunction (*chunk)();
};
constexpr RuleKernel kRules[] = {
    {"adam_l2", [] { return &HWY_DYNAMIC_DISPATCH(adam_l2_chunk); }},
    {"adamw", [] { return &HWY_DYNAMIC_DISPATCH(adamw_chunk); }},
    {"lion", [] { return &HWY_DYNAMIC_DISPATCH(lion_chunk); }},
    {"sgd", [] { return &HWY_DYNAMIC_DISPATCH(sgd_chunk); }},
    {"sgd_momentum", [] { return &HWY_DYNAMIC_DISPATCH(sgd_momentum_chunk); }},
};

}  // namespace

ChunkFunction chunk_function(const ops::UpdateRule& rule) {
  for (const RuleKernel& kernel : kRules)
    if (kernel.rule == rule.name) return kernel.chunk();
  PLIMSOLL_CHECK(false, std::string(rule.name));
  return nullptr;
}

}  // namespace plimsoll::cpu
#endif
