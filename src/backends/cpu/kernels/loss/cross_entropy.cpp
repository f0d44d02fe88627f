// Cross entropy of rows of logits, and its gradient from the log-sum-exp that forward kept.
#include "backends/cpu/kernels/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/loss/cross_entropy.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
//
#include <cstring>

#include "backends/cpu/kernels/attention/softmax_rows-inl.h"
#include "backends/cpu/kernels/loss/cross_entropy.h"
#include "ops/loss.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu::HWY_NAMESPACE {
namespace {

template <class To>
void grad_row_to(const float* x, float lse, int32_t target, float scale, To* d, int64_t n) {
  if (target == ops::kIgnoreTarget)
    std::memset(d, 0, static_cast<size_t>(n) * sizeof(To));
  else
    softmax::row_grad(x, lse, target, scale, d, n);
}
void grad_row(const float* x, float lse, int32_t target, float scale, float* d, int64_t n) {
  grad_row_to(x, lse, target, scale, d, n);
}

void loss_rows_impl(const LossRows& a, int64_t begin, int64_t end) {
  for (int64_t r = begin; r < end; ++r) {
    const float* x = a.logits + r * a.stride;
    const int32_t target = a.targets[r];
    const float lse = softmax::row_lse(x, a.classes);
    if (a.lse != nullptr) a.lse[r] = lse;
    a.loss[r] = target == ops::kIgnoreTarget ? 0.0f : lse - x[target];
    if (a.d == nullptr) continue;
    stored::with_element(a.d_dtype, [&](auto element) {
      auto* d = reinterpret_cast<decltype(element)*>(a.d) + r * a.d_stride;
      grad_row_to(x, lse, target, a.scale, d, a.classes);
    });
  }
}

}  // namespace
}  // namespace plimsoll::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::cpu {

HWY_EXPORT(loss_rows_impl);
HWY_EXPORT(grad_row);

int64_t row_losses_bytes(const ir::OpTypes& types, int /*num_threads*/) {
  return types.inputs[0].shape.num_rows() * static_cast<int64_t>(sizeof(float));
}

void loss_rows(const LossRows& rows, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(loss_rows_impl)(rows, begin, end);
}

float sum_losses(const float* losses, const Granules& granules, const float* acc) {
  float total = acc != nullptr ? *acc : 0.0f;
  for (int64_t g = 0; g < granules.count(); ++g) {
    float sum = 0.0f;
    for (int64_t r = granules.begin(g); r < granules.end(g); ++r) sum += losses[r];
    total = g == 0 && acc == nullptr ? sum : total + sum;
  }
  return total;
}

namespace {

void cross_entropy(const KernelCall& call, ThreadPool& pool) {
  const auto x = matrix_of<const float>(call.inputs[0]);
  LossRows rows{.logits = x.data, .stride = x.stride, .classes = x.cols};
  rows.targets = call.inputs[1].as<const int32_t>();
  rows.lse = call.outputs[1].as<float>();
  rows.loss = reinterpret_cast<float*>(call.workspace.data());
  for_row_blocks(pool, x.rows, x.cols, [&](int64_t begin, int64_t end) { loss_rows(rows, begin, end); });
  const TensorRef acc = input_or_none(call, 3);
  *call.outputs[0].as<float>() =
      sum_losses(rows.loss, Granules(call.inputs[0].shape()), acc.as<const float>());
}

void cross_entropy_grad(const KernelCall& call, ThreadPool& pool) {
  const auto x = rows_of<const float>(call.inputs[0]);
  const auto d = rows_of<float>(call.outputs[0]);
  const auto* targets = call.inputs[1].as<const int32_t>();
  const auto* lse = call.inputs[2].as<const float>();
  const float scale = *call.inputs[3].as<const float>();
  for_row_blocks(pool, x.rows, x.cols, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      HWY_DYNAMIC_DISPATCH(grad_row)(x.row(r), lse[r], targets[r], scale, d.row(r), x.cols);
  });
}

}  // namespace

std::span<const Kernel> cross_entropy_kernels() {
  static constexpr Kernel kernels[] = {
      {.op = "cross_entropy",
       .run = cross_entropy,
       .workspace_bytes = row_losses_bytes,
       .strided_inputs = 0b1},
      {.op = "cross_entropy_grad", .run = cross_entropy_grad, .strided_inputs = 0b1},
  };
  return kernels;
}

}  // namespace plimsoll::cpu
#endif
