// SIGTERM, SIGINT, SIGHUP (a lost terminal) and SIGUSR1 (a job scheduler's warning) as a request that a run
// answers where it can be taken up again.
#pragma once

#include <string_view>

namespace plimsoll::cli {

/// While it lives, the first of these signals is remembered, with a line on stderr, and the second one ends
/// the process at once with 128 + its number; SIGHUP within a second of SIGHUP is the same one. Where SIGHUP
/// was ignored (nohup) it stays so. SIGXFSZ is ignored: a limit on file sizes is then an error of the write.
/// What stood before comes back at the end. One at a time.
class StopSignals {
 public:
  /// `outlive_readers`: whoever reads stdout or stderr may go (Ctrl-C ends a whole pipeline) and the process
  /// still saves; a write to nobody is then an error instead of SIGPIPE.
  explicit StopSignals(bool outlive_readers);
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

 private:
  bool ignores_pipe_;
};

/// For a process that the one which was asked forks and tells with SIGTERM: what reaches
/// both, as a terminal's SIGINT does, is ignored, and no line is written again.
void be_told_by_parent();
/// The signal that asked the process to stop, 0 where none did.
int stop_requested();
/// Its name, empty where none did: what modules are given to ask (base/stop.h).
std::string_view stop_reason();
/// Takes back a request that ended something smaller than the process; the next signal is a first one again.
void forget_stop_request();
/// "SIGTERM", "SIGINT", "SIGHUP", "SIGUSR1".
std::string_view signal_name(int signal);

}  // namespace plimsoll::cli
