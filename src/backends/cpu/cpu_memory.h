// Memory of the process: mapped, aligned for huge pages, and touched at once, so that a run which starts
// has all that it will ever use.
#pragma once

#include <memory>

#include "backends/cpu/thread_pool.h"
#include "runtime/device.h"

namespace plimsoll::cpu {

/// Maps `bytes`, aligned to 2 MiB, asks for huge pages and touches every page, the pool's threads side by
/// side. Measured: 1.3-1.7 s/GiB on a fresh machine, 0.03 with huge pages or 0.23 with small ones once warm.
/// Resident afterwards: `bytes` rounded up to 4 KiB; with PLIMSOLL_UNTOUCHED=1 in the environment none, and
/// small pages, so that a measurement sees which pages a run writes. Errors: kIo with the size where the
/// system refuses, or where it reports less memory available.
Result<std::unique_ptr<runtime::Memory>> allocate_memory(ir::MemorySpace space, Bytes bytes,
                                                         ThreadPool& pool);

/// kIo, with what to lower, where the system reports less memory available.
Status check_available(Bytes bytes);
/// The error of a system that refuses memory; `error` as in errno.
Error refusal_to_reserve(Bytes bytes, int error);

}  // namespace plimsoll::cpu
