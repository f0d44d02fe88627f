// memory.update_on_host: whether updates whose states lie in the host's memory are computed there, as
// ZeRO-Offload does (Ren et al. 2021, arXiv:2101.06840): the gradient goes out and the weight comes in, where
// else all states would go in both directions.
#pragma once

#include "strategy/plan_strategy.h"

namespace plimsoll::strategy {

/// With those classes there: as the setting says; auto: where by what would be moved and computed it is the
/// quicker. Never where the host has no kernels of its own beside the device.
bool updates_on_host(const settings::RunConfig& config, const Prepared& prepared,
                     const runtime::Target& target, const passes::OffloadOptions& offload,
                     const settings::BatchSplit& split);

}  // namespace plimsoll::strategy
