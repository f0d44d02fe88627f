// The update: gradient norm, clipping and the update rules. All tensors are cut into the same fixed chunks
// whether they come one by one or in a sweep, so both give the same bits; a sweep only keeps the threads busy
// over tensors' ends. A new rule is a chunk function and its row in kRules.
#include "backends/cpu/kernels/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/optimizer.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
//
#include <algorithm>
#include <cmath>

#include "backends/cpu/kernels/operands.h"
#include "backends/cpu/kernels/vectors-inl.h"
#include "ops/update_rules.h"

#ifndef PLIMSOLL_BACKENDS_CPU_KERNELS_OPTIMIZER_ARGS_
#define PLIMSOLL_BACKENDS_CPU_KERNELS_OPTIMIZER_ARGS_
namespace plimsoll::cpu {
namespace {

constexpr int kMaxStates = 2;

// A part of one tensor: parameter, gradient and states are read, parameter and states written, which may lie
// where they were.
struct UpdateChunk {
  const float* in[2 + kMaxStates];
  float* out[1 + kMaxStates];
  const float* group;  // the group's row of the table
  float clip;
};

}  // namespace
}  // namespace plimsoll::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using vectors::load;
using vectors::set;
using vectors::store;
using vectors::V;

// rule(g, p, states) for all elements, with `States` states; g is clipped. The rule replaces p and the
// states.
template <int States, class Rule>
HWY_INLINE void for_elements(const UpdateChunk& a, int64_t n, Rule rule) {
  static_assert(States <= kMaxStates);
  const V clip = set(a.clip);
  vectors::for_vectors(n, [&](int64_t i, auto part) HWY_ATTR {
    const V g = hn::Mul(load(a.in[1] + i, part), clip);
    V p = load(a.in[0] + i, part);
    V states[kMaxStates];
    for (int s = 0; s < States; ++s) states[s] = load(a.in[2 + s] + i, part);
    rule(g, p, states);
    store(p, a.out[0] + i, part);
    for (int s = 0; s < States; ++s) store(states[s], a.out[1 + s] + i, part);
  });
}

// Plain multiplications and additions, as PyTorch's own loop has them; exact division and square root.
void adamw_chunk(const UpdateChunk& a, int64_t n) {
  const auto field = [&](ops::AdamwField f) HWY_ATTR { return set(a.group[f]); };
  const V decay = field(ops::kAdamwDecay), one_minus_beta1 = field(ops::kAdamwOneMinusBeta1);
  const V beta2 = field(ops::kAdamwBeta2), one_minus_beta2 = field(ops::kAdamwOneMinusBeta2);
  const V eps = field(ops::kAdamwEpsilon), step_size = field(ops::kAdamwStepSize),
          correction = field(ops::kAdamwSqrtCorrection2);
  for_elements<2>(a, n, [&](V g, V& p, V* states) HWY_ATTR {
    V &m = states[0], &v = states[1];
    m = hn::Add(m, hn::Mul(hn::Sub(g, m), one_minus_beta1));
    v = hn::Add(hn::Mul(v, beta2), hn::Mul(hn::Mul(one_minus_beta2, g), g));
    const V denominator = hn::Add(hn::Div(hn::Sqrt(v), correction), eps);
    p = hn::Sub(hn::Mul(p, decay), hn::Mul(step_size, hn::Div(m, denominator)));
  });
}

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

double sum_squares_chunk(const float* x, int64_t n) {
  const hn::ScalableTag<double> d64;
  const hn::Rebind<float, decltype(d64)> d32;
  const auto width = static_cast<int64_t>(hn::Lanes(d64));
  const auto at = [&](int64_t i) HWY_ATTR { return hn::PromoteTo(d64, hn::LoadU(d32, x + i)); };
  auto a = hn::Zero(d64), b = a, c = a, e = a;
  int64_t i = 0;
  for (; i + 4 * width <= n; i += 4 * width) {
    const auto v0 = at(i), v1 = at(i + width), v2 = at(i + 2 * width), v3 = at(i + 3 * width);
    a = hn::MulAdd(v0, v0, a);
    b = hn::MulAdd(v1, v1, b);
    c = hn::MulAdd(v2, v2, c);
    e = hn::MulAdd(v3, v3, e);
  }
  double sum = hn::GetLane(hn::SumOfLanes(d64, hn::Add(hn::Add(a, b), hn::Add(c, e))));
  for (; i < n; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return sum;
}

}  // namespace
}  // namespace plimsoll::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::cpu {
namespace {

HWY_EXPORT(adamw_chunk);
HWY_EXPORT(sgd_chunk);
HWY_EXPORT(sgd_momentum_chunk);
HWY_EXPORT(sum_squares_chunk);

constexpr int64_t kChunk = 16384;

// Tensors of given sizes as one row of chunks. The table of their first chunks lies in the workspace.
class Sweep {
 public:
  static int64_t table_bytes(int64_t tensors) {
    return (tensors + 1) * static_cast<int64_t>(sizeof(int64_t));
  }

  template <typename Size>
  Sweep(std::byte* table, int64_t tensors, Size&& size)
      : first_(reinterpret_cast<int64_t*>(table)), tensors_(tensors) {
    first_[0] = 0;
    for (int64_t t = 0; t < tensors; ++t) first_[t + 1] = first_[t] + ceil_div(size(t), kChunk);
  }
  [[nodiscard]] int64_t num_chunks() const { return first_[tensors_]; }
  [[nodiscard]] int64_t first(int64_t tensor) const { return first_[tensor]; }
  [[nodiscard]] int64_t tensor_of(int64_t chunk) const {
    return std::upper_bound(first_, first_ + tensors_ + 1, chunk) - first_ - 1;
  }

 private:
  int64_t* first_;
  int64_t tensors_;
};

// ---- updates
// ---------------------------------------------------------------------------------------------------

using ChunkFunction = void (*)(const UpdateChunk&, int64_t);

// The rules and how each updates a chunk on this machine.
struct RuleKernel {
  std::string_view rule;
  ChunkFunction (*chunk)();
};
constexpr RuleKernel kRules[] = {
    {"adamw", [] { return &HWY_DYNAMIC_DISPATCH(adamw_chunk); }},
    {"sgd", [] { return &HWY_DYNAMIC_DISPATCH(sgd_chunk); }},
    {"sgd_momentum", [] { return &HWY_DYNAMIC_DISPATCH(sgd_momentum_chunk); }},
};

ChunkFunction chunk_function(const ops::UpdateRule& rule) {
  for (const RuleKernel& kernel : kRules)
    if (kernel.rule == rule.name) return kernel.chunk();
  PLIMSOLL_CHECK(false, std::string(rule.name));
  return nullptr;
}

// A skipped step: parameter and states stay what they are, wherever they go.
void keep_chunk(const UpdateChunk& a, size_t states, int64_t n) {
  const auto keep = [&](const float* from, float* to) {
    if (from != to) std::copy_n(from, n, to);
  };
  keep(a.in[0], a.out[0]);
  for (size_t s = 0; s < states; ++s) keep(a.in[2 + s], a.out[1 + s]);
}

// `in`: parameter, gradient, states; `out`: parameter, states.
void update_chunk(ChunkFunction function, std::span<const TensorRef> in, std::span<const TensorRef> out,
                  const float* group, float clip, int64_t chunk) {
  const int64_t at = chunk * kChunk, n = std::min(kChunk, in[0].num_elements() - at);
  UpdateChunk a{.in = {}, .out = {}, .group = group, .clip = clip};
  for (size_t i = 0; i < in.size(); ++i) a.in[i] = in[i].as<const float>() + at;
  for (size_t i = 0; i < out.size(); ++i) a.out[i] = out[i].as<float>() + at;
  if (std::isnan(clip)) return keep_chunk(a, in.size() - 2, n);
  function(a, n);
}

void update(const KernelCall& call, ThreadPool& pool) {
  const ops::UpdateRule& rule = *ops::find_update_rule(call.op->def->name);
  const ChunkFunction function = chunk_function(rule);
  const auto tensors = call.inputs.first(rule.num_operands());
  const float clip = *call.inputs[rule.num_operands()].as<const float>();
  const float* groups = call.inputs[rule.num_operands() + 1].as<const float>();
  const float* group = groups + call.op->attrs.i64("group") * rule.num_fields;
  pool.run(ceil_div(tensors[0].num_elements(), kChunk),
           [&](int64_t chunk, int) { update_chunk(function, tensors, call.outputs, group, clip, chunk); });
}

int64_t sweep_bytes(const ir::OpTypes& types, int /*num_threads*/) {
  return Sweep::table_bytes(static_cast<int64_t>(types.attrs.ints("group").size()));
}

void update_sweep(const KernelCall& call, ThreadPool& pool) {
  const ops::UpdateRule& rule = *ops::find_update_rule(call.op->def->name);
  const ChunkFunction function = chunk_function(rule);
  const float clip = *call.inputs[0].as<const float>();
  const float* groups = call.inputs[1].as<const float>();
  const auto& group_of = call.op->attrs.ints("group");
  const auto in = call.inputs.subspan(2);
  const size_t operands = rule.num_operands(), results = rule.num_results();
  const Sweep sweep(call.workspace.data(), static_cast<int64_t>(group_of.size()),
                    [&](int64_t t) { return in[operands * static_cast<size_t>(t)].num_elements(); });
  pool.run(sweep.num_chunks(), [&](int64_t chunk, int) {
    const int64_t t = sweep.tensor_of(chunk);
    const auto i = static_cast<size_t>(t);
    update_chunk(function, in.subspan(operands * i, operands), call.outputs.subspan(results * i, results),
                 groups + group_of[i] * rule.num_fields, clip, chunk - sweep.first(t));
  });
}

// ---- the gradient's norm
// ---------------------------------------------------------------------------------------

int64_t sum_squares_bytes(const ir::OpTypes& types, int /*num_threads*/) {
  int64_t chunks = 0;
  for (const auto& input : types.inputs) chunks += ceil_div(input.num_elements(), kChunk);
  return Sweep::table_bytes(static_cast<int64_t>(types.inputs.size())) +
         chunks * static_cast<int64_t>(sizeof(double));
}

// One f32 for each operand, side by side; `sum_squares` is the sweep over one.
void sum_squares_sweep(const KernelCall& call, ThreadPool& pool) {
  const auto tensors = static_cast<int64_t>(call.inputs.size());
  const auto input = [&](int64_t t) -> const TensorRef& { return call.inputs[static_cast<size_t>(t)]; };
  const Sweep sweep(call.workspace.data(), tensors, [&](int64_t t) { return input(t).num_elements(); });
  auto* sums = reinterpret_cast<double*>(call.workspace.data() + Sweep::table_bytes(tensors));
  pool.run(sweep.num_chunks(), [&](int64_t chunk, int) {
    const int64_t t = sweep.tensor_of(chunk), at = (chunk - sweep.first(t)) * kChunk;
    const int64_t n = std::min(kChunk, input(t).num_elements() - at);
    sums[chunk] = HWY_DYNAMIC_DISPATCH(sum_squares_chunk)(input(t).as<const float>() + at, n);
  });
  for (int64_t t = 0; t < tensors; ++t) {
    double sum = 0.0;
    for (int64_t c = sweep.first(t); c < sweep.first(t + 1); ++c) sum += sums[c];
    call.outputs[0].as<float>()[t] = static_cast<float>(sum);
  }
}

void global_norm(const KernelCall& call, ThreadPool& /*pool*/) {
  double sum = 0.0;
  for (const TensorRef& input : call.inputs)
    for (int64_t i = 0; i < input.num_elements(); ++i) sum += static_cast<double>(input.as<const float>()[i]);
  *call.outputs[0].as<float>() = static_cast<float>(std::sqrt(sum));
}

// A norm that is not a number gives a scale that is none: the divergence shows.
void clip_scale(const KernelCall& call, ThreadPool& /*pool*/) {
  const float scale =
      static_cast<float>(call.op->attrs.f64("max_norm")) / (*call.inputs[0].as<const float>() + 1e-6f);
  *call.outputs[0].as<float>() = scale > 1.0f ? 1.0f : scale;
}

}  // namespace

std::span<const Kernel> optimizer_kernels() {
  static const std::vector<Kernel> kernels = [] {
    std::vector<Kernel> list = {
        {.op = "clip_scale", .run = clip_scale},
        {.op = "global_norm", .run = global_norm},
        {.op = "sum_squares", .run = sum_squares_sweep, .workspace_bytes = sum_squares_bytes},
        {.op = "sum_squares_sweep", .run = sum_squares_sweep, .workspace_bytes = sum_squares_bytes},
    };
    for (const ops::UpdateRule& rule : ops::update_rules()) {
      list.push_back({.op = rule.name, .run = update});
      list.push_back({.op = rule.sweep, .run = update_sweep, .workspace_bytes = sweep_bytes});
    }
    return list;
  }();
  return kernels;
}

}  // namespace plimsoll::cpu
#endif
