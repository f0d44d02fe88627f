// `train --snapshot`: what a run has allocated, as programs ran, in the form of PyTorch's viewer. While the
// run goes only the number and the time of each program is kept, in memory taken before; the file is written
// at its end.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "io/file.h"
#include "planner/report/memory_snapshot.h"
#include "training/observer.h"

namespace plimsoll::telemetry {

class RunSnapshot : public training::ProgramObserver {
 public:
  /// Entries of the trace at most: what comes behind them is left out. About 30 MB.
  static constexpr int64_t kMostEntries = 100'000;

  /// Makes the file, which has no name yet. Errors: kIo.
  static Result<std::unique_ptr<RunSnapshot>> create(const std::string& path,
                                                     int64_t most_entries = kMostEntries);
  /// Before the first program runs. Allocates for all that will be kept.
  void begin(const passes::SessionPlan& session) override;
  /// A program is queued. Allocates nothing.
  void ran(int program) override;
  /// The file under its name. Errors: kIo.
  Status write(const passes::SessionPlan& session);
  /// "12 of 40 program runs", or nothing where none was left out.
  [[nodiscard]] std::string left_out() const;

 private:
  RunSnapshot(io::AtomicFile file, int64_t most_entries)
      : file_(std::move(file)), most_entries_(most_entries) {}

  io::AtomicFile file_;
  int64_t most_entries_;
  double start_seconds_ = 0;
  std::vector<int64_t> entries_;  ///< by program
  std::vector<planner::ProgramRun> runs_;
  int64_t num_entries_ = 0, num_ran_ = 0;
};

}  // namespace plimsoll::telemetry
