#include "models/blocks/batch_norm.h"

#include <fmt/format.h>

#include <string>

#include "ops/batch_norm.h"
#include "ops/batch_norm_ranks.h"
#include "ops/pointwise.h"

namespace plimsoll::models {
namespace {

using ir::ValueId;

/// The layer's running value; a buffer's.
ValueId read_running(ir::Builder& b, const BatchNormLayer& layer, std::string_view suffix) {
  return b.state({fmt::format("{}.{}", layer.name, suffix),
                  {ir::DType::kF32, {layer.channels}},
                  ir::StateClass::kBuffer});
}

/// running ← keep * running + share * value.
void follow(ir::Builder& b, const BatchNormLayer& layer, std::string_view suffix, ValueId value,
            double share) {
  const ValueId running = read_running(b, layer, suffix);
  const std::string next = fmt::format("add(mul({},x0),mul({},x1))", 1 - layer.momentum, share);
  b.assign(fmt::format("{}.{}", layer.name, suffix), ops::pointwise(b, next, {running, value}));
}

}  // namespace

ValueId batch_norm(ir::Builder& b, const Model& model, std::string_view name, ValueId x,
                   const BatchNormCall& call) {
  const BatchNormLayer& layer = model.batch_norm(name);
  const bool is_batch = call.training && layer.statistics == NormStatistics::kBatch;
  ValueId mean, variance;
  if (is_batch) {
    ops::BatchStatistics statistics = ops::batch_statistics(b, x);
    if (!statistics.variance.valid()) return {};
    if (layer.ranks > 1) statistics = ops::over_ranks(b, statistics, layer.ranks);
    mean = statistics.mean, variance = statistics.variance;
    const auto count = static_cast<double>(layer.ranks * b.type(x).num_elements() / layer.channels);
    follow(b, layer, kRunningMean, mean, layer.momentum);
    follow(b, layer, kRunningVariance, variance, layer.momentum * count / (count - 1));
  } else {
    mean = read_running(b, layer, kRunningMean);
    variance = read_running(b, layer, kRunningVariance);
  }
  const ValueId bias = model.read_parameter(b, layer.name + ".bias");
  const ops::BatchNorm how{.eps = layer.eps, .batch = is_batch, .relu = call.relu, .ranks = layer.ranks};
  return ops::batch_norm(b, x, mean, variance, model.read_parameter(b, layer.name + ".weight"), bias,
                         call.residual, how);
}

}  // namespace plimsoll::models
