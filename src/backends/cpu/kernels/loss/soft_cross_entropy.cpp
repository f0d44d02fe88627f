// Cross-entropy against smoothed and mixed targets: a row is gone through once more than a plain one, for the
// sum of its logits.
#include "backends/cpu/kernels/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/loss/soft_cross_entropy.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
//
#include <algorithm>
#include <type_traits>

#include "backends/cpu/kernels/attention/softmax_rows-inl.h"
#include "backends/cpu/kernels/loss/cross_entropy.h"
#include "ops/loss.h"

#ifndef PLIMSOLL_BACKENDS_CPU_KERNELS_SOFT_CROSS_ENTROPY_ARGS_
#define PLIMSOLL_BACKENDS_CPU_KERNELS_SOFT_CROSS_ENTROPY_ARGS_
namespace plimsoll::cpu {
namespace {

// A row's targets: `first_weight` at class `first`, `second_weight` at class `second`, `rest` at every class.
struct SoftRow {
  int32_t first, second;
  float first_weight, second_weight, rest;
};

}  // namespace
}  // namespace plimsoll::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

float soft_row_loss(const float* x, const SoftRow& row, float* lse, int64_t n) {
  *lse = softmax::row_lse(x, n);
  // Differences from the log-sum-exp: what is far from zero loses nothing.
  const softmax::V l = vectors::set(*lse);
  float loss = row.first_weight * (*lse - x[row.first]);
  if (row.second_weight != 0.0f) loss += row.second_weight * (*lse - x[row.second]);
  if (row.rest != 0.0f)
    loss += row.rest * vectors::sum_of(n, [=](int64_t i, auto part) HWY_ATTR {
              const auto difference = hn::Sub(l, vectors::load(x + i, part));
              if constexpr (std::is_same_v<decltype(part), vectors::Tail>)
                return hn::IfThenElseZero(hn::FirstN(vectors::F32(), part.count), difference);
              else
                return difference;
            });
  return loss;
}

// d may lie where x does.
void soft_row_grad(const float* x, const SoftRow& row, float lse, float scale, float* d, int64_t n) {
  using vectors::set;
  const softmax::V l = set(lse), s = set(scale), rest = set(row.rest);
  const auto probability = [&](int32_t c) HWY_ATTR {
    return hn::GetLane(ExpNonPositive(vectors::F32(), hn::Sub(set(x[c]), l)));
  };
  const float first = probability(row.first), second = probability(row.second);
  vectors::for_vectors(n, [=](int64_t i, auto part) HWY_ATTR {
    const auto p = ExpNonPositive(vectors::F32(), hn::Sub(vectors::load(x + i, part), l));
    vectors::store(hn::Mul(hn::Sub(p, rest), s), d + i, part);
  });
  const bool same = row.first == row.second;
  d[row.second] = (second - (row.rest + row.second_weight)) * scale;
  d[row.first] = (first - (row.rest + row.first_weight + (same ? row.second_weight : 0.0f))) * scale;
}

}  // namespace
}  // namespace plimsoll::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::cpu {
namespace {

HWY_EXPORT(soft_row_loss);
HWY_EXPORT(soft_row_grad);

/// The targets of an op's rows; operands 4 and 5 are second and share.
class SoftTargets {
 public:
  explicit SoftTargets(const KernelCall& call)
      : targets_(call.inputs[1].as<const int32_t>()),
        second_(input_or_none(call, 4).as<const int32_t>()),
        share_(input_or_none(call, 5).as<const float>()) {
    const double smoothing = call.op->attrs.f64("smoothing");
    hard_ = 1.0 - smoothing;
    rest_ = static_cast<float>(smoothing / static_cast<double>(call.inputs[0].shape().dim(-1)));
  }
  [[nodiscard]] bool counts(int64_t row) const { return targets_[row] != ops::kIgnoreTarget; }
  [[nodiscard]] SoftRow row(int64_t i) const {
    if (second_ == nullptr) return {targets_[i], targets_[i], static_cast<float>(hard_), 0.0F, rest_};
    const auto share = static_cast<double>(share_[i]);
    return {targets_[i], second_[i], static_cast<float>(hard_ * share),
            static_cast<float>(hard_ * (1.0 - share)), rest_};
  }

 private:
  const int32_t *targets_, *second_;
  const float* share_;
  double hard_;
  float rest_;
};

void soft_cross_entropy(const KernelCall& call, ThreadPool& pool) {
  const auto x = matrix_of<const float>(call.inputs[0]);
  const SoftTargets targets(call);
  auto* losses = reinterpret_cast<float*>(call.workspace.data());
  float* lse = call.outputs[1].as<float>();
  for_row_blocks(pool, x.rows, x.cols, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const SoftRow row = targets.counts(r) ? targets.row(r) : SoftRow{};
      losses[r] = HWY_DYNAMIC_DISPATCH(soft_row_loss)(x.row(r), row, lse + r, x.cols);
      if (!targets.counts(r)) losses[r] = 0.0F;
    }
  });
  const TensorRef acc = input_or_none(call, 3);
  *call.outputs[0].as<float>() = sum_losses(losses, Granules(call.inputs[0].shape()), acc.as<const float>());
}

void soft_cross_entropy_grad(const KernelCall& call, ThreadPool& pool) {
  const auto x = rows_of<const float>(call.inputs[0]);
  const auto d = rows_of<float>(call.outputs[0]);
  const SoftTargets targets(call);
  const auto* lse = call.inputs[2].as<const float>();
  const float scale = *call.inputs[3].as<const float>();
  for_row_blocks(pool, x.rows, x.cols, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      if (targets.counts(r))
        HWY_DYNAMIC_DISPATCH(soft_row_grad)(x.row(r), targets.row(r), lse[r], scale, d.row(r), x.cols);
      else
        std::fill_n(d.row(r), x.cols, 0.0F);
  });
}

constexpr Kernel kSoftCrossEntropyKernels[] = {
    {.op = "soft_cross_entropy",
     .run = soft_cross_entropy,
     .workspace_bytes = row_losses_bytes,
     .strided_inputs = 0b1},
    {.op = "soft_cross_entropy_grad", .run = soft_cross_entropy_grad, .strided_inputs = 0b1}};

}  // namespace

std::span<const Kernel> soft_cross_entropy_kernels() { return kSoftCrossEntropyKernels; }

}  // namespace plimsoll::cpu
#endif
