// Losses against float labels. They are a few numbers a sequence, so each is taken in double and rounded
// once, without vectors.
#include <algorithm>
#include <cmath>

#include "backends/cpu/kernels/loss/cross_entropy.h"
#include "backends/cpu/kernels/operands.h"
#include "ops/loss.h"

namespace plimsoll::cpu {
namespace {

struct Bce {
  static double loss(double x, double y) {
    return std::max(x, 0.0) - x * y + std::log1p(std::exp(-std::abs(x)));
  }
  static double slope(double x, double y) { return 1.0 / (1.0 + std::exp(-x)) - y; }
};
struct SquaredError {
  static double loss(double x, double y) { return (x - y) * (x - y); }
  static double slope(double x, double y) { return 2.0 * (x - y); }
};

/// std::max would drop a logit that is not a number.
template <class Loss>
float row_loss(const float* x, const float* y, int64_t labels) {
  double sum = 0;
  bool nan = false;
  for (int64_t i = 0; i < labels; ++i) {
    nan = nan || std::isnan(x[i]);
    sum += Loss::loss(static_cast<double>(x[i]), static_cast<double>(y[i]));
  }
  return nan ? std::nanf("") : static_cast<float>(sum / static_cast<double>(labels));
}

template <class Loss>
void loss(const KernelCall& call, ThreadPool& pool) {
  const auto x = rows_of<const float>(call.inputs[0]);
  const auto y = rows_of<const float>(call.inputs[1]);
  auto* losses = reinterpret_cast<float*>(call.workspace.data());
  for_row_blocks(pool, x.rows, x.cols, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      losses[r] = ops::has_labels(*y.row(r)) ? row_loss<Loss>(x.row(r), y.row(r), x.cols) : 0.0F;
  });
  const TensorRef acc = input_or_none(call, 3);
  *call.outputs[0].as<float>() = sum_losses(losses, Granules(call.inputs[0].shape()), acc.as<const float>());
}

template <class Loss>
void loss_grad(const KernelCall& call, ThreadPool& pool) {
  const auto x = rows_of<const float>(call.inputs[0]);
  const auto y = rows_of<const float>(call.inputs[1]);
  const auto d = rows_of<float>(call.outputs[0]);
  const double scale = static_cast<double>(*call.inputs[2].as<const float>()) / static_cast<double>(x.cols);
  for_row_blocks(pool, x.rows, x.cols, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const bool counts = ops::has_labels(*y.row(r));
      for (int64_t i = 0; i < x.cols; ++i) {
        const double slope = Loss::slope(static_cast<double>(x.row(r)[i]), static_cast<double>(y.row(r)[i]));
        d.row(r)[i] = counts ? static_cast<float>(slope * scale) : 0.0F;
      }
    }
  });
}

template <class Loss>
constexpr Kernel loss_kernel(std::string_view op) {
  return {.op = op, .run = loss<Loss>, .workspace_bytes = row_losses_bytes, .strided_inputs = 0b11};
}
template <class Loss>
constexpr Kernel grad_kernel(std::string_view op) {
  return {.op = op, .run = loss_grad<Loss>, .strided_inputs = 0b11};
}

constexpr Kernel kLabelLossesKernels[] = {
    loss_kernel<Bce>("bce_with_logits"), grad_kernel<Bce>("bce_with_logits_grad"),
    loss_kernel<SquaredError>("squared_error"), grad_kernel<SquaredError>("squared_error_grad")};

}  // namespace

std::span<const Kernel> label_loss_kernels() { return kLabelLossesKernels; }

}  // namespace plimsoll::cpu
