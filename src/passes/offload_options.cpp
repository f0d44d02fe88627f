// What settings say of offload, apart from the pass, so that who reads settings needs no graph.
#include <algorithm>
#include <array>

#include "passes/offload.h"

namespace plimsoll::passes {

std::string_view name(OffloadClass c) {
  static constexpr std::array<std::string_view, kNumOffloadClasses> kNames = {
      "activations", "optimizer", "masters", "gradients", "parameters"};
  return kNames[static_cast<size_t>(c)];
}

bool OffloadOptions::any() const {
  return std::ranges::any_of(spaces, [](ir::MemorySpace space) { return space != ir::MemorySpace::kDevice; });
}

bool OffloadOptions::streams_updates() const {
  for (size_t c = 0; c < kNumOffloadClasses; ++c)
    if (static_cast<OffloadClass>(c) != OffloadClass::kActivations && spaces[c] != ir::MemorySpace::kDevice)
      return true;
  return false;
}

}  // namespace plimsoll::passes
