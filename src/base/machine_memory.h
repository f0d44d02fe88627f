// Memory that this process may take: what the machine has, and what the control groups it is in allow.
#pragma once

#include <cstdint>
#include <string>

namespace plimsoll {

struct MachineMemory {
  int64_t physical_bytes = 0;   ///< MemTotal; swap is not memory
  int64_t limit_bytes = 0;      ///< the least of that and of the limits of this process's groups
  int64_t available_bytes = 0;  ///< what could be taken now without swapping, in the tightest group
  std::string limited_by = {};  ///< the file whose limit is limit_bytes; empty where the machine rules
};

/// Reads /proc/meminfo and the files of the groups that /proc/self/cgroup names, of both versions, each with
/// all that lie above it, where /proc/self/mountinfo says they are mounted: memory.max and memory.high, or
/// memory.limit_in_bytes. What a group has free is its limit less its usage, where page cache that gives way
/// is no usage. `root` stands before each path that is opened, and is not part of `limited_by`: for tests.
/// What cannot be read bounds nothing.
MachineMemory read_machine_memory(const std::string& root = "");

}  // namespace plimsoll
