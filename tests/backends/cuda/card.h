// The card of this machine for tests, where there is one. Kernels are compiled when they are needed and not
// kept; with PLIMSOLL_CARD_KERNELS=kept they are kept as those of the program are ($XDG_CACHE_HOME).
#pragma once

#include <cstdlib>
#include <memory>

#include "backends/cuda/cuda_device.h"
#include "base/check.h"

namespace plimsoll::cuda::fixtures {

inline bool compiles_within() { return std::getenv("PLIMSOLL_CARD_KERNELS") == nullptr; }

/// Null without a driver or a card. A card that is there and cannot be used is a failure.
inline CudaDevice* card() {
  static const std::unique_ptr<CudaDevice> device = []() -> std::unique_ptr<CudaDevice> {
    if (!card_info(0)) return nullptr;
    auto made = CudaDevice::create({.compiles_within = compiles_within()});
    PLIMSOLL_CHECK(made.ok(), made ? "" : made.error().message() + " " + made.error().hint);
    return std::move(*made);
  }();
  return device.get();
}

}  // namespace plimsoll::cuda::fixtures
