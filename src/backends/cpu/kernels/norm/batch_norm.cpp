// Batch normalisation. The statistics of granules are joined in double, in order; what is applied is prepared
// for each channel before the rows are gone through.
#include "backends/cpu/kernels/norm/batch_norm.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "backends/cpu/kernels/elementwise/cast.h"
#include "backends/cpu/kernels/elementwise/reduce.h"
#include "backends/cpu/kernels/norm/channels.h"
#include "base/at.h"

namespace plimsoll::cpu {
namespace {

/// Channels whose statistics are joined at a time.
constexpr int64_t kJoinedChannels = 64;

float* floats_of(const KernelCall& call) { return reinterpret_cast<float*>(call.workspace.data()); }

// ---- statistics

int64_t batch_statistics_bytes(const ir::OpTypes& types, int /*num_threads*/) {
  return 2 * share_elements(types.inputs[0].shape) * kFloatBytes;
}

using ChannelTotals = std::array<double, kJoinedChannels>;
/// term(granule, channel) of the channels [begin, end), summed over the granules in order.
template <class Term>
ChannelTotals totals(int64_t granules, int64_t begin, int64_t end, Term term) {
  ChannelTotals sums{};
  for (int64_t g = 0; g < granules; ++g)
    for (int64_t c = begin; c < end; ++c) sums[at(c - begin)] += term(g, c);
  return sums;
}

/// Statistics of the channels [begin, end) of all rows, from the granules' means and sums of squared
/// differences.
void join_moments(const Granules& granules, int64_t channels, const float* means, const float* squares,
                  int64_t begin, int64_t end, float* mean, float* variance) {
  const auto rows = static_cast<double>(granules.rows());
  const auto rows_of = [&](int64_t g) { return static_cast<double>(granules.end(g) - granules.begin(g)); };
  ChannelTotals centres = totals(granules.count(), begin, end, [&](int64_t g, int64_t c) {
    return rows_of(g) * static_cast<double>(means[g * channels + c]);
  });
  for (double& centre : centres) centre /= rows;
  const ChannelTotals sums = totals(granules.count(), begin, end, [&](int64_t g, int64_t c) {
    const double difference = static_cast<double>(means[g * channels + c]) - centres[at(c - begin)];
    return static_cast<double>(squares[g * channels + c]) + rows_of(g) * difference * difference;
  });
  for (int64_t c = begin; c < end; ++c) {
    mean[c] = static_cast<float>(centres[at(c - begin)]);
    variance[c] = static_cast<float>(sums[at(c - begin)] / rows);
  }
}

void batch_statistics(const KernelCall& call, ThreadPool& pool) {
  const TensorRef& x = call.inputs[0];
  float *means = floats_of(call), *squares = means + share_elements(x.shape());
  channel_moments(x, means, squares, pool);
  join_channel_moments(x.shape(), means, call.outputs[0], call.outputs[1], pool);
}

// ---- application

int64_t batch_norm_bytes(const ir::OpTypes& types, int /*num_threads*/) {
  return 4 * types.inputs[0].shape.dim(-1) * kFloatBytes;
}

void batch_norm(const KernelCall& call, ThreadPool& pool) {
  const ir::Attrs& attrs = call.op->attrs;
  const BatchNormCoefficients c =
      prepare_batch_norm(call.inputs[2], call.inputs[3], call.inputs[4], attrs.f64("eps"), floats_of(call));
  map_channels({.x = call.inputs[0],
                .residual = input_or_none(call, 5),
                .y = call.outputs[0],
                .sets = {call.inputs[0].shape().num_rows(), call.inputs[1].as<const float>(), c.scale},
                .shift = c.shift,
                .relu = attrs.flag("relu")},
               pool);
}

// ---- gradients

/// BatchNormCoefficients, slope and offset, a row for sums that are rounded, shares of granules.
int64_t batch_norm_grad_bytes(const ir::OpTypes& types, int /*num_threads*/) {
  const ir::Shape& x = types.inputs[1].shape;
  return (7 * x.dim(-1) + 2 * share_elements(x)) * kFloatBytes;
}

/// dx = scale * (dz - db/M - xhat * dw/M) as dz * scale + (x - mean) * slope + offset.
void through_statistics(const BatchNormCoefficients& c, const Granules& granules, int64_t channels,
                        const float* dw, const float* db, float* slope, float* offset, ThreadPool& pool) {
  const auto rows = static_cast<double>(granules.rows());
  for_blocks(pool, channels, kJoinedChannels, [&](int64_t begin, int64_t end) {
    const auto sum_of = [&](const float* shares) {
      return totals(granules.count(), begin, end,
                    [&](int64_t g, int64_t i) { return static_cast<double>(shares[g * channels + i]); });
    };
    const ChannelTotals sums_w = sum_of(dw), sums_b = sum_of(db);
    for (int64_t i = begin; i < end; ++i) {
      const double by = -static_cast<double>(c.scale[i]) / rows;
      slope[i] = static_cast<float>(by * static_cast<double>(c.rstd[i]) * sums_w[at(i - begin)]);
      offset[i] = static_cast<float>(by * sums_b[at(i - begin)]);
    }
  });
}

// Operands dy, x, mean, variance, weight, bias or, where it `adds`, y, acc_dw?, acc_db?, dy2?; results dx,
// d_residual where it adds, dw, db unless frozen.
template <bool kAdds>
void batch_norm_grad(const KernelCall& call, ThreadPool& pool) {
  const ir::Attrs& attrs = call.op->attrs;
  const TensorRef &dy = call.inputs[0], &x = call.inputs[1], &dx = call.outputs[0];
  const int64_t channels = x.shape().dim(-1);
  const bool batch = attrs.flag("batch"), frozen = attrs.flag("frozen");
  float* scratch = floats_of(call);
  const BatchNormCoefficients c = prepare_batch_norm(
      call.inputs[3], call.inputs[4], kAdds ? TensorRef{} : call.inputs[5], attrs.f64("eps"), scratch);
  float *slope = scratch + 4 * channels, *offset = slope + channels, *row = offset + channels;
  float *dw = row + channels, *db = dw + share_elements(x.shape());
  const ChannelSets sets{x.shape().num_rows(), call.inputs[2].as<const float>(), c.scale};
  const bool relu = !kAdds && attrs.flag("relu");
  sum_channels({.dy = dy,
                .dy2 = input_or_none(call, 8),
                .x = x,
                .mask = kAdds ? call.inputs[5] : TensorRef{},
                .dz = kAdds ? call.outputs[1] : TensorRef{},
                .dx = batch ? TensorRef{} : dx,
                .sets = sets,
                .shift = c.shift,
                .rstd = c.rstd,
                .relu = relu,
                .dw = batch || !frozen ? dw : nullptr,
                .db = db},
               pool);
  const Granules granules(x.shape());
  if (batch) {
    through_statistics(c, granules, channels, dw, db, slope, offset, pool);
    channel_gradient({.dy = kAdds ? call.outputs[1] : dy,
                      .x = x,
                      .dx = dx,
                      .sets = sets,
                      .shift = relu ? c.shift : nullptr,
                      .slope = slope,
                      .offset = offset},
                     pool);
  }
  if (frozen) return;
  const size_t first = kAdds ? 2 : 1;
  add_granules(dw, granules.count(), input_or_none(call, 6), call.outputs[first], row, pool);
  add_granules(db, granules.count(), input_or_none(call, 7), call.outputs[first + 1], row, pool);
}

constexpr Kernel kBatchNormKernels[] = {
    {.op = "batch_norm", .run = batch_norm, .workspace_bytes = batch_norm_bytes, .stored_dtypes = true},
    {.op = "batch_norm_add_grad",
     .run = batch_norm_grad<true>,
     .workspace_bytes = batch_norm_grad_bytes,
     .stored_dtypes = true},
    {.op = "batch_norm_grad",
     .run = batch_norm_grad<false>,
     .workspace_bytes = batch_norm_grad_bytes,
     .stored_dtypes = true},
    {.op = "batch_statistics",
     .run = batch_statistics,
     .workspace_bytes = batch_statistics_bytes,
     .stored_dtypes = true}};

}  // namespace

std::span<const Kernel> batch_norm_kernels() { return kBatchNormKernels; }

void join_channel_moments(const ir::Shape& x, const float* means, const TensorRef& mean,
                          const TensorRef& variance, ThreadPool& pool) {
  const Granules granules(x);
  const int64_t channels = x.dim(-1);
  for_blocks(pool, channels, kJoinedChannels, [&](int64_t begin, int64_t end) {
    join_moments(granules, channels, means, means + share_elements(x), begin, end, mean.as<float>(),
                 variance.as<float>());
  });
}

BatchNormCoefficients prepare_batch_norm(const TensorRef& variance, const TensorRef& weight,
                                         const TensorRef& bias, double eps, float* scratch) {
  const int64_t channels = variance.num_elements();
  const BatchNormCoefficients c{scratch, scratch + channels, scratch + 2 * channels, scratch + 3 * channels};
  as_f32(weight, c.weight);
  if (bias) as_f32(bias, c.shift);
  for (int64_t i = 0; i < channels; ++i) {
    c.rstd[i] = static_cast<float>(1.0 / std::sqrt(static_cast<double>(variance.as<float>()[i]) + eps));
    c.scale[i] = c.weight[i] * c.rstd[i];
  }
  return c;
}

}  // namespace plimsoll::cpu
