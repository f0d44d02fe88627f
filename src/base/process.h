// What the operating system knows of this process and its machine, and a watch on allocations.
#pragma once

#include <cstdint>
#include <string>

namespace plimsoll {

/// Of a clock that only goes forward; differences alone mean something.
double now_seconds();
/// VmHWM: the most that was ever resident, as the kernel shows it.
int64_t peak_resident_bytes();
/// VmSize: all mappings, the heap included. Reads without allocating.
int64_t virtual_bytes();
/// This binary's own path; "plimsoll" where the kernel does not tell.
std::string executable_path();
/// Of /proc/cpuinfo; empty where the kernel does not tell.
std::string processor_name();
/// $XDG_CACHE_HOME, else ~/.cache; empty where neither it nor $HOME is set.
std::string user_cache_folder();
/// CPUs that this process may run on.
int num_available_cpus();

/// Requests to the heap on any thread since the start: malloc and its kin, by operator new and by libraries.
/// 0 under a sanitizer, whose heap is its own.
int64_t num_allocations();
/// Those of kLargeAllocation bytes or more.
inline constexpr int64_t kLargeAllocation = 64 << 10;
int64_t num_large_allocations();

}  // namespace plimsoll
