// A run's memory as it goes: what each phase takes at most, whether the process grows past its plan, and
// whether others take away what is left.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/machine_memory.h"

namespace plimsoll::telemetry {

/// Where the figures come from; tests give their own.
struct MemorySources {
  std::function<int64_t()> resident_bytes, peak_bytes;  ///< of the process
  std::function<MachineMemory()> machine;
  std::function<double()> seconds;
};
/// The system's.
MemorySources system_memory();

struct MemoryWarning {
  std::string kind;  ///< "over_plan", "memory_low"
  std::string text;
  std::vector<std::pair<std::string, int64_t>> figures;  ///< "resident_bytes", …
};

class MemoryWatch {
 public:
  /// `planned_bytes`: of the process, or of what it holds beside a card.
  MemoryWatch(int64_t planned_bytes, MemorySources sources);
  /// At the end of a piece of a phase: "start", "step", "eval", "checkpoint". Reads two small files, ten
  /// times a second at most for one phase; the machine's every two seconds. Each warning comes once.
  std::vector<MemoryWarning> look(std::string_view phase);
  /// By phase the most that the process had, in order of first appearance. Between looks a phase is known by
  /// what it raised the process's peak to.
  [[nodiscard]] const std::vector<std::pair<std::string, int64_t>>& phases() const { return phases_; }
  [[nodiscard]] int64_t recent_bytes() const { return recent_; }
  /// recent_bytes() begins anew.
  void reset();

 private:
  void raise(std::string_view phase, int64_t bytes);
  std::optional<MemoryWarning> past_plan(int64_t bytes);
  std::optional<MemoryWarning> others();

  int64_t planned_;
  MemorySources sources_;
  int64_t first_available_, peak_, recent_ = 0;
  double looked_ = 0, looked_at_machine_ = 0;
  std::string last_phase_;
  bool told_past_plan_ = false, told_others_ = false;
  std::vector<std::pair<std::string, int64_t>> phases_;
};

}  // namespace plimsoll::telemetry
