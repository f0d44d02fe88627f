// Group normalisation: the passes of batch normalisation, with numbers of each sample. The statistics of a
// group are joined from its granules and channels in double, in order.
#include <cmath>

#include "backends/cpu/kernels/elementwise/cast.h"
#include "backends/cpu/kernels/elementwise/reduce.h"
#include "backends/cpu/kernels/norm/channels.h"

namespace plimsoll::cpu {
namespace {

/// Of an operand [samples, ..., channels].
struct GroupExtents {
  GroupExtents(const ir::Shape& x, int64_t num_groups)
      : granules(x),
        samples(x.dim(0)),
        channels(x.dim(-1)),
        groups(num_groups),
        of_group(channels / num_groups) {}
  /// f(granule) in order, of one sample.
  template <class F>
  void for_granules(int64_t sample, F f) const {
    const int64_t first = sample * granules.per_segment();
    for (int64_t g = first; g < first + granules.per_segment(); ++g) f(g);
  }
  /// Elements of a group of a sample.
  [[nodiscard]] double count() const { return static_cast<double>(granules.segment() * of_group); }

  Granules granules;
  int64_t samples, channels, groups, of_group;
};

// ---- forward

int64_t group_norm_bytes(const ir::OpTypes& types, int /*num_threads*/) {
  const ir::Shape& x = types.inputs[0].shape;
  return (2 * share_elements(x) + (2 * x.dim(0) + 2) * x.dim(-1)) * kFloatBytes;
}

struct GroupStatistics {
  float mean, rstd;
};

/// From the granules' means and sums of squared differences, [granules, channels].
GroupStatistics join_group(const GroupExtents& e, int64_t sample, int64_t first, const float* means,
                           const float* squares, double eps) {
  const auto rows = [&](int64_t g) { return static_cast<double>(e.granules.end(g) - e.granules.begin(g)); };
  double sum = 0, total = 0;
  e.for_granules(sample, [&](int64_t g) {
    for (int64_t c = first; c < first + e.of_group; ++c)
      sum += rows(g) * static_cast<double>(means[g * e.channels + c]);
  });
  const double mean = sum / e.count();
  e.for_granules(sample, [&](int64_t g) {
    for (int64_t c = first; c < first + e.of_group; ++c) {
      const double difference = static_cast<double>(means[g * e.channels + c]) - mean;
      total += static_cast<double>(squares[g * e.channels + c]) + rows(g) * difference * difference;
    }
  });
  return {static_cast<float>(mean), static_cast<float>(1.0 / std::sqrt(total / e.count() + eps))};
}

/// The numbers of each channel of a sample.
void spread(const GroupExtents& e, int64_t sample, const float* mean, const float* rstd, const float* weight,
            float* centre, float* scale) {
  for (int64_t c = 0; c < e.channels; ++c) {
    const int64_t group = sample * e.groups + c / e.of_group, i = sample * e.channels + c;
    centre[i] = mean[group];
    scale[i] = weight[c] * rstd[group];
  }
}

void group_norm(const KernelCall& call, ThreadPool& pool) {
  const TensorRef& x = call.inputs[0];
  const GroupExtents e(x.shape(), call.op->attrs.i64("groups"));
  const double eps = call.op->attrs.f64("eps");
  auto* means = reinterpret_cast<float*>(call.workspace.data());
  float *squares = means + share_elements(x.shape()), *centre = squares + share_elements(x.shape());
  float *scale = centre + e.samples * e.channels, *weight = scale + e.samples * e.channels;
  float* shift = weight + e.channels;
  float *mean = call.outputs[1].as<float>(), *rstd = call.outputs[2].as<float>();
  as_f32(call.inputs[1], weight);
  as_f32(call.inputs[2], shift);
  channel_moments(x, means, squares, pool);
  pool.run(e.samples, [&](int64_t sample, int) {
    for (int64_t g = 0; g < e.groups; ++g) {
      const GroupStatistics s = join_group(e, sample, g * e.of_group, means, squares, eps);
      mean[sample * e.groups + g] = s.mean;
      rstd[sample * e.groups + g] = s.rstd;
    }
    spread(e, sample, mean, rstd, weight, centre, scale);
  });
  map_channels({.x = x, .y = call.outputs[0], .sets = {e.granules.segment(), centre, scale}, .shift = shift},
               pool);
}

// ---- gradient

int64_t group_norm_grad_bytes(const ir::OpTypes& types, int /*num_threads*/) {
  const ir::Shape& x = types.inputs[1].shape;
  return (2 * share_elements(x) + (5 * x.dim(0) + 2) * x.dim(-1)) * kFloatBytes;
}

/// dx = rstd * (g - mean(g) - xhat * mean(g * xhat)), g = dy * weight, of a sample as dy * scale + (x -
/// centre) * slope + offset.
void through_groups(const GroupExtents& e, int64_t sample, const float* dw, const float* db,
                    const float* weight, const float* rstd, float* slope, float* offset) {
  for (int64_t group = 0; group < e.groups; ++group) {
    const int64_t first = group * e.of_group;
    double sum_g = 0, sum_gx = 0;
    e.for_granules(sample, [&](int64_t g) {
      for (int64_t c = first; c < first + e.of_group; ++c) {
        sum_g += static_cast<double>(weight[c]) * static_cast<double>(db[g * e.channels + c]);
        sum_gx += static_cast<double>(weight[c]) * static_cast<double>(dw[g * e.channels + c]);
      }
    });
    const auto r = static_cast<double>(rstd[sample * e.channels + first]);
    for (int64_t i = sample * e.channels + first; i < sample * e.channels + first + e.of_group; ++i) {
      slope[i] = static_cast<float>(-r * r * sum_gx / e.count());
      offset[i] = static_cast<float>(-r * sum_g / e.count());
    }
  }
}

void group_norm_grad(const KernelCall& call, ThreadPool& pool) {
  const TensorRef &dy = call.inputs[0], &x = call.inputs[1];
  const GroupExtents e(x.shape(), call.inputs[3].shape().dim(1));
  const int64_t numbers = e.samples * e.channels;
  auto* centre = reinterpret_cast<float*>(call.workspace.data());
  float *scale = centre + numbers, *rstd = scale + numbers, *slope = rstd + numbers,
        *offset = slope + numbers;
  float *weight = offset + numbers, *row = weight + e.channels, *dw = row + e.channels,
        *db = dw + share_elements(x.shape());
  as_f32(call.inputs[2], weight);
  const auto *means = call.inputs[3].as<const float>(), *rstds = call.inputs[4].as<const float>();
  pool.run(e.samples, [&](int64_t sample, int) {
    spread(e, sample, means, rstds, weight, centre, scale);
    for (int64_t c = 0; c < e.channels; ++c)
      rstd[sample * e.channels + c] = rstds[sample * e.groups + c / e.of_group];
  });
  const ChannelSets sets{e.granules.segment(), centre, scale};
  sum_channels({.dy = dy, .x = x, .sets = sets, .rstd = rstd, .dw = dw, .db = db}, pool);
  pool.run(e.samples,
           [&](int64_t sample, int) { through_groups(e, sample, dw, db, weight, rstd, slope, offset); });
  channel_gradient({.dy = dy, .x = x, .dx = call.outputs[0], .sets = sets, .slope = slope, .offset = offset},
                   pool);
  if (call.outputs.size() == 1) return;  // frozen
  add_granules(dw, e.granules.count(), input_or_none(call, 5), call.outputs[1], row, pool);
  add_granules(db, e.granules.count(), input_or_none(call, 6), call.outputs[2], row, pool);
}

constexpr Kernel kGroupNormKernels[] = {
    {.op = "group_norm", .run = group_norm, .workspace_bytes = group_norm_bytes, .stored_dtypes = true},
    {.op = "group_norm_grad",
     .run = group_norm_grad,
     .workspace_bytes = group_norm_grad_bytes,
     .stored_dtypes = true}};

}  // namespace

std::span<const Kernel> group_norm_kernels() { return kGroupNormKernels; }

}  // namespace plimsoll::cpu
