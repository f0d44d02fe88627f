#include "strategy/update_placement.h"

#include <algorithm>

#include "optimizers/optimizer.h"
#include "planner/cost/queue_times.h"
#include "settings/state_settings.h"
#include "strategy/step_options.h"

namespace plimsoll::strategy {
namespace {

using ir::MemorySpace;
using passes::OffloadClass;

/// Bytes of a step's updates that cross between host and device, and what is computed.
struct UpdateTraffic {
  double in = 0, out = 0;
  double bytes = 0, flops = 0;
};

/// Of all parameters whose states lie with the host, updated by the device and by the host.
struct Traffic {
  UpdateTraffic by_device, by_host;
};

Traffic traffic_of(const settings::RunConfig& config, const models::Model& model,
                   const passes::OffloadOptions& offload, bool accumulates) {
  const optimizers::OptimizerOptions optimizer = optimizer_options(config);
  const optimizers::StateDtypes& state = optimizer.state;
  const ir::DType gradients = accumulates ? state.accumulators : state.gradients;
  Traffic traffic;
  for (const models::Parameter& p : model.parameters()) {
    const auto is_out = [&](OffloadClass c) { return offload.space(c, p.block) == MemorySpace::kHostPinned; };
    if (!p.trained || !is_out(OffloadClass::kOptimizer)) continue;
    optimizers::Update update{.parameter = p.name, .gradient = {}, .is_hidden = p.block >= 0, .kind = p.kind};
    for (const models::ParameterView& view : p.views) update.parts.push_back(view.shape.dim(0));
    const optimizers::UpdateWork work = optimizers::update_work(optimizer, p.shape, update);
    const auto bytes = [&](ir::DType dtype) {
      return static_cast<double>(ir::TensorType{dtype, p.shape}.bytes().count);
    };
    const auto states = static_cast<double>(work.state_bytes);
    const double weight = bytes(p.dtype), master = state.masters ? bytes(ir::DType::kF32) : 0,
                 gradient = bytes(gradients);
    const bool weight_is_out = is_out(OffloadClass::kParameters),
               master_is_out = is_out(OffloadClass::kMasters),
               gradient_is_out = is_out(OffloadClass::kGradients);
    UpdateTraffic &device = traffic.by_device, &host = traffic.by_host;
    device.out += states + (weight_is_out ? weight : 0) + (master_is_out ? master : 0);
    device.in += states +
                 (master_is_out                     ? master
                  : weight_is_out && !state.masters ? weight
                                                    : 0) +
                 (gradient_is_out ? gradient : 0);
    // Without an accumulator the gradient leaves beside backward.
    host.out += accumulates && !gradient_is_out ? gradient : 0;
    if (state.masters ? !master_is_out : !weight_is_out) host.out += state.masters ? master : weight;
    host.in += (weight_is_out ? 0 : weight) + (master_is_out ? 0 : master);
    host.bytes +=
        2 * states + 2 * (state.masters ? master : weight) + gradient + (state.masters ? weight : 0);
    host.flops += work.flops;
  }
  return traffic;
}

}  // namespace

bool updates_on_host(const settings::RunConfig& config, const Prepared& prepared,
                     const runtime::Target& target, const passes::OffloadOptions& offload,
                     const settings::BatchSplit& split) {
  const settings::UpdateOnHost asked = config.memory.update_on_host;
  if (target.host() == nullptr || asked == settings::UpdateOnHost::kFalse ||
      offload.space(OffloadClass::kOptimizer) != MemorySpace::kHostPinned)
    return false;
  if (asked == settings::UpdateOnHost::kTrue) return true;
  const Traffic traffic = traffic_of(config, *prepared.model, offload, split.grad_accum_steps > 1);
  const planner::MachineProfile& profile = prepared.costs->profile();
  const double in = planner::copy_rates(profile, MemorySpace::kHostPinned, MemorySpace::kDevice).alone,
               out = planner::copy_rates(profile, MemorySpace::kDevice, MemorySpace::kHostPinned).alone;
  const auto moving = [&](const UpdateTraffic& t) { return std::max(t.in / in, t.out / out); };
  const planner::HostRates host = planner::host_rates(profile);
  const double computing =
      std::max(traffic.by_host.bytes / host.update_bandwidth, traffic.by_host.flops / host.flops);
  return std::max(moving(traffic.by_host), computing) < moving(traffic.by_device);
}

}  // namespace plimsoll::strategy
