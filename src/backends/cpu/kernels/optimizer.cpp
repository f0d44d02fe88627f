// The update: gradient norm, clipping and AdamW. All tensors are cut into the same fixed chunks whether they
// come one by one or in a sweep, so both give the same bits; a sweep only keeps the threads busy over
// tensors' ends.
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

#ifndef PLIMSOLL_BACKENDS_CPU_KERNELS_OPTIMIZER_ARGS_
#define PLIMSOLL_BACKENDS_CPU_KERNELS_OPTIMIZER_ARGS_
namespace plimsoll::cpu {
namespace {

// A part of one tensor; p, m and v are read at *_in and written at *_out, which may be the same.
struct AdamWChunk {
  const float *p_in, *grad, *m_in, *v_in;
  float *p_out, *m_out, *v_out;
  const float* group;  // [kGroupFields]
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

// Plain multiplications and additions, as PyTorch's own loop has them; exact division and square root.
void adamw_chunk(const AdamWChunk& a, int64_t n) {
  const auto field = [&](ops::GroupField f) HWY_ATTR { return set(a.group[f]); };
  const V decay = field(ops::kDecayFactor), one_minus_beta1 = field(ops::kOneMinusBeta1);
  const V beta2 = field(ops::kBeta2), one_minus_beta2 = field(ops::kOneMinusBeta2);
  const V eps = field(ops::kEpsilon), step_size = field(ops::kStepSize),
          correction = field(ops::kSqrtCorrection2);
  const V clip = set(a.clip);
  vectors::for_vectors(n, [&](int64_t i, auto part) HWY_ATTR {
    const V g = hn::Mul(load(a.grad + i, part), clip);
    const V m0 = load(a.m_in + i, part);
    const V m = hn::Add(m0, hn::Mul(hn::Sub(g, m0), one_minus_beta1));
    const V v = hn::Add(hn::Mul(load(a.v_in + i, part), beta2), hn::Mul(hn::Mul(one_minus_beta2, g), g));
    const V denominator = hn::Add(hn::Div(hn::Sqrt(v), correction), eps);
    const V p = hn::Mul(load(a.p_in + i, part), decay);
    store(hn::Sub(p, hn::Mul(step_size, hn::Div(m, denominator))), a.p_out + i, part);
    store(m, a.m_out + i, part);
    store(v, a.v_out + i, part);
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

// ---- AdamW
// -----------------------------------------------------------------------------------------------------

void adamw_tensor(std::span<const TensorRef> in, std::span<const TensorRef> out, const float* group,
                  float clip, int64_t chunk) {
  const int64_t at = chunk * kChunk, n = std::min(kChunk, in[0].num_elements() - at);
  const AdamWChunk a{.p_in = in[0].as<const float>() + at,
                     .grad = in[1].as<const float>() + at,
                     .m_in = in[2].as<const float>() + at,
                     .v_in = in[3].as<const float>() + at,
                     .p_out = out[0].as<float>() + at,
                     .m_out = out[1].as<float>() + at,
                     .v_out = out[2].as<float>() + at,
                     .group = group,
                     .clip = clip};
  HWY_DYNAMIC_DISPATCH(adamw_chunk)(a, n);
}

void adamw(const KernelCall& call, ThreadPool& pool) {
  const float clip = *call.inputs[4].as<const float>();
  const float* group = call.inputs[5].as<const float>() + call.op->attrs.i64("group") * ops::kGroupFields;
  pool.run(ceil_div(call.inputs[0].num_elements(), kChunk),
           [&](int64_t chunk, int) { adamw_tensor(call.inputs.first(4), call.outputs, group, clip, chunk); });
}

int64_t adamw_sweep_bytes(const ir::OpTypes& types, int /*num_threads*/) {
  return Sweep::table_bytes((static_cast<int64_t>(types.inputs.size()) - 2) / 4);
}

void adamw_sweep(const KernelCall& call, ThreadPool& pool) {
  const float clip = *call.inputs[0].as<const float>();
  const float* groups = call.inputs[1].as<const float>();
  const auto& group_of = call.op->attrs.ints("group");
  const auto in = call.inputs.subspan(2);
  const auto tensors = static_cast<int64_t>(in.size() / 4);
  const Sweep sweep(call.workspace.data(), tensors,
                    [&](int64_t t) { return in[static_cast<size_t>(4 * t)].num_elements(); });
  pool.run(sweep.num_chunks(), [&](int64_t chunk, int) {
    const int64_t t = sweep.tensor_of(chunk);
    const auto i = static_cast<size_t>(t);
    adamw_tensor(in.subspan(4 * i, 4), call.outputs.subspan(3 * i, 3),
                 groups + group_of[i] * ops::kGroupFields, clip, chunk - sweep.first(t));
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
  static constexpr Kernel kernels[] = {
      {.op = "adamw", .run = adamw},
      {.op = "adamw_sweep", .run = adamw_sweep, .workspace_bytes = adamw_sweep_bytes},
      {.op = "clip_scale", .run = clip_scale},
      {.op = "global_norm", .run = global_norm},
      {.op = "sum_squares", .run = sum_squares_sweep, .workspace_bytes = sum_squares_bytes},
      {.op = "sum_squares_sweep", .run = sum_squares_sweep, .workspace_bytes = sum_squares_bytes},
  };
  return kernels;
}

}  // namespace plimsoll::cpu
#endif
