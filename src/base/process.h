// Facts about this process and its machine from the operating system, and counters of allocations.
#pragma once

#include <cstddef>
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

/// Requests to C++'s heap, operator new, on any thread since the start, in a program that counts them (it
/// links counted_new.cpp); 0 in any other. No allocator is replaced for it, so what a C library asks of
/// malloc is not among them: what it keeps of that shows in virtual_bytes.
int64_t num_allocations();
/// Those of kLargeAllocation bytes or more.
inline constexpr int64_t kLargeAllocation = 64 << 10;
int64_t num_large_allocations();
/// One more of them. Neither waits nor allocates.
void count_allocation(size_t bytes);

}  // namespace plimsoll
