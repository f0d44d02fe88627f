// The properties of kernels that binding needs, for the target and for the host beside it.
#pragma once

#include "passes/memory/bind_storage.h"
#include "runtime/target.h"

namespace plimsoll::runtime {

inline passes::KernelTraits kernel_traits(const Target& target) {
  return {[&target](std::string_view op, size_t input) { return target.accepts_strided(op, input); },
          [&target](const ir::OpTypes& types) { return target.workspace_bytes(types); },
          [&target](const ir::OpTypes& types) { return target.accepts(types); },
          [&target](ir::MemorySpace space) { return target.reaches(space); }};
}

/// The target outlives the options.
inline void set_kernels(const Target& target, passes::BindOptions& options) {
  options.device = kernel_traits(target);
  if (target.host() == nullptr) return;
  options.host = kernel_traits(*target.host());
  options.host.reaches = [](ir::MemorySpace space) { return space == ir::MemorySpace::kHostPinned; };
}

}  // namespace plimsoll::runtime
