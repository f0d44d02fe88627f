// Whether other work takes the processors away while something is measured.
#pragma once

namespace plimsoll::measuring {

/// From its making on. Counts what befalls this process's own threads, so that it holds in a container too,
/// where the machine's load is that of others' CPUs as well.
class Quiet {
 public:
  Quiet();
  /// How often a second of this process's CPU time one of its threads had to give way. Some 30 on a quiet
  /// machine, 370 beside one other process that computes (2 CPUs, AMD EPYC).
  [[nodiscard]] double interruptions() const;
  /// Fewer than 80; true also before there is a quarter of a second of CPU time to judge by.
  [[nodiscard]] bool holds() const;

 private:
  struct Use {
    double seconds = 0;
    double interruptions = 0;
  };
  static Use use();
  [[nodiscard]] Use since() const;
  Use start_;
};

}  // namespace plimsoll::measuring
