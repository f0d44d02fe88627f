// Resource counters of a process: getrusage(2), as values.
#pragma once

#include <sys/resource.h>

namespace plimsoll {

/// Of this process's threads, ended ones too; or of RUSAGE_CHILDREN.
inline rusage resource_use(int who = RUSAGE_SELF) {
  rusage use = {};
  ::getrusage(who, &use);
  return use;
}

/// In the user's mode and the kernel's.
inline double cpu_seconds(const rusage& use) {
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(use.ru_utime) + seconds(use.ru_stime);
}

}  // namespace plimsoll
