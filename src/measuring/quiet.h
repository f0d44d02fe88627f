// Detects other work on the processors during a measurement.
#pragma once

#include <cstdint>
#include <functional>

#include "base/resource_use.h"

namespace plimsoll::measuring {

/// Whether a process that had so much CPU time, and was so often made to give way meanwhile, was as good as
/// alone: fewer than 80 times a second of CPU time. Some 30 on a quiet machine, 370 beside one other process
/// that computes (2 CPUs, AMD EPYC). Less than a quarter of a second says nothing, and counts as quiet.
bool is_quiet(double cpu_seconds, int64_t interruptions);

/// What the kernel has counted so far.
using Counted = std::function<rusage()>;

/// From its making on. Counts what befalls this process's own threads, so that it holds in a container too,
/// where the machine's load is that of others' CPUs as well.
class Quiet {
 public:
  explicit Quiet(Counted counted = [] { return resource_use(); });
  /// A second of CPU time.
  [[nodiscard]] double interruptions() const;
  [[nodiscard]] bool holds() const;

 private:
  [[nodiscard]] double seconds() const;
  [[nodiscard]] int64_t count() const;
  Counted counted_;
  rusage start_;
};

}  // namespace plimsoll::measuring
