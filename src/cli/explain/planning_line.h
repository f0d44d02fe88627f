// That planning is under way, on a terminal, where it takes longer than two seconds.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace plimsoll::cli {

/// A line on stderr that says for how long planning has gone on and, where it is told, how much of it is
/// done. It appears after two seconds, on a terminal that rewrites lines alone. A thread keeps it: no child
/// process is to be made while it is there. Where the system gives no thread there is no line.
class PlanningLine {
 public:
  /// `what` are counted: "budgets".
  explicit PlanningLine(const char* what = "plans");
  ~PlanningLine();
  PlanningLine(const PlanningLine&) = delete;
  PlanningLine& operator=(const PlanningLine&) = delete;

  /// Takes how many of all are planned.
  [[nodiscard]] std::function<void(size_t done, size_t total)> teller();
  /// Takes the line away; nothing is shown from here on.
  void end();

 private:
  struct State;
  std::unique_ptr<State> state_;  ///< null: nothing is shown
};

}  // namespace plimsoll::cli
