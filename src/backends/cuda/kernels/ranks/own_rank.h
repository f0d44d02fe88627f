// Finds the rank that a card's ops are computed for.
#pragma once

#include "backends/cuda/collectives.h"
#include "backends/cuda/kernel.h"
#include "base/check.h"

namespace plimsoll::cuda {

/// Null on a device that is alone.
inline Collectives* collectives_of(const KernelCall& call, Stream& stream) {
  Collectives* others = stream.collectives();
  PLIMSOLL_CHECK(others == nullptr || others->ranks() == call.op->attrs.i64("ranks"),
                 "a program of other ranks");
  return others;
}

/// 0 on a device that is alone.
inline int64_t own_rank(const KernelCall& call, Stream& stream) {
  const Collectives* others = collectives_of(call, stream);
  return others == nullptr ? 0 : others->rank();
}

}  // namespace plimsoll::cuda
