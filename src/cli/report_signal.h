// SIGUSR2 as a question that a run answers at its step's end: how much memory is where.
#pragma once

#include <csignal>

namespace plimsoll::cli {

/// While it lives SIGUSR2 sets a flag and nothing else; what stood before comes back at the end. One at a
/// time.
class ReportSignal {
 public:
  ReportSignal();
  ~ReportSignal();
  ReportSignal(const ReportSignal&) = delete;
  ReportSignal& operator=(const ReportSignal&) = delete;

  /// Whether the signal has come since the last call.
  static bool take();

 private:
  struct sigaction previous_ = {};
};

}  // namespace plimsoll::cli
