// The work items of a queue: a kernel with its operands, a copy, or a fill.
#pragma once

#include <cstdint>

#include "backends/cpu/kernel.h"
#include "backends/cpu/thread_pool.h"
#include "backends/cpu/transfer.h"
#include "runtime/communicator.h"

namespace plimsoll::cpu {

struct Work {
  enum class Kind : uint8_t { kLaunch, kCopy, kFill } kind = Kind::kLaunch;
  uint32_t pattern = 0;                           ///< of a fill
  const Kernel* kernel = nullptr;                 ///< of a launch
  KernelCall call = {};                           ///< of a copy the op alone, which may be null
  runtime::Communicator* communicator = nullptr;  ///< of a launch between ranks; null: it talks to nobody
  Place destination = {}, source = {};
  int64_t bytes = 0;

  /// `communicator`: the device's, null where it has none.
  static Work launch(const KernelCall& call, runtime::Communicator* communicator = nullptr);
  static Work copy(Place destination, Place source, Bytes bytes, const ir::Op* op);
  static Work fill(Place destination, Bytes bytes, uint32_t pattern);
};

/// Runs it to its end; a launch wants the pool, copies and fills take it where it is not null. Allocates
/// nothing. Errors: kIo of a file or another rank, with the op and its layer.
Status run(const Work& work, ThreadPool* pool);

/// Puts the op and its layer, or the kind of work, before the place of an error.
Error named(Error error, const Work& work);

}  // namespace plimsoll::cpu
