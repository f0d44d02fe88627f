// The card of this machine for tests, where there is one: kernels are compiled within the process, because a
// test's threads forbid a child.
#pragma once

#include <memory>

#include "backends/cuda/cuda_device.h"
#include "base/check.h"

namespace plimsoll::cuda::fixtures {

/// Null without a driver or a card. A card that is there and cannot be used is a failure.
inline CudaDevice* card() {
  static const std::unique_ptr<CudaDevice> device = []() -> std::unique_ptr<CudaDevice> {
    if (!card_info(0)) return nullptr;
    auto made = CudaDevice::create({.compiles_within = true});
    PLIMSOLL_CHECK(made.ok(), made ? "" : made.error().message() + " " + made.error().hint);
    return std::move(*made);
  }();
  return device.get();
}

}  // namespace plimsoll::cuda::fixtures
