// plimsoll launch: the ranks of a training as processes of this machine.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <vector>

#include "base/process.h"
#include "cli/commands.h"
#include "cli/exit_code.h"

namespace plimsoll::cli {
namespace {

/// That the others have to end once one rank has failed: they find that out themselves within two.
constexpr double kEndSeconds = 10;
constexpr std::array kForwarded = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2};

struct LaunchArguments {
  int64_t ranks = 0;
  std::vector<std::string> command;
};

struct Rank {
  pid_t pid = 0;
  bool runs = true, is_stopped = false;
  int code = 0;  ///< of its exit; -1: a signal ended it
};

/// Blocks the signals that the launcher waits for; the ranks get the mask that it had.
class BlockedSignals {
 public:
  BlockedSignals() {
    ::sigemptyset(&blocked_);
    for (const int signal : kForwarded) ::sigaddset(&blocked_, signal);
    ::sigaddset(&blocked_, SIGCHLD);
    ::sigprocmask(SIG_BLOCK, &blocked_, &before_);
  }
  ~BlockedSignals() { restore(); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

  void restore() const { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }
  /// The next one; 0 where none comes within a fifth of a second.
  [[nodiscard]] int wait() const {
    const timespec tick{0, 200'000'000};
    return std::max(0, ::sigtimedwait(&blocked_, nullptr, &tick));
  }

 private:
  sigset_t blocked_{}, before_{};
};

[[noreturn]] void be_rank(int64_t rank, const LaunchArguments& arguments, const std::string& job,
                          const BlockedSignals& signals, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);  // it saves and stops where the launcher is killed
  if (::getppid() != parent) ::_exit(1);
  ::setpgid(0, 0);  // a terminal's signals come once, from the launcher
  ::setenv("PLIMSOLL_RANK", std::to_string(rank).c_str(), 1);
  ::setenv("PLIMSOLL_RANKS", std::to_string(arguments.ranks).c_str(), 1);
  ::setenv("PLIMSOLL_JOB", job.c_str(), 1);
  if (rank > 0)
    if (const int nothing = ::open("/dev/null", O_WRONLY | O_CLOEXEC); nothing >= 0)
      ::dup2(nothing, STDOUT_FILENO);
  signals.restore();
  const std::string program = executable_path();
  std::vector<char*> argv = {const_cast<char*>(program.c_str())};
  for (const std::string& word : arguments.command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  ::execv(program.c_str(), argv.data());
  ::_exit(127);
}

void reap(std::vector<Rank>& ranks) {
  for (Rank& rank : ranks) {
    int status = 0;
    if (!rank.runs || ::waitpid(rank.pid, &status, WNOHANG | WUNTRACED | WCONTINUED) != rank.pid) continue;
    rank.is_stopped = WIFSTOPPED(status);
    if (WIFSTOPPED(status) || WIFCONTINUED(status)) continue;
    rank.runs = false;
    rank.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
}

bool runs(const std::vector<Rank>& ranks) {
  return std::ranges::any_of(ranks, [](const Rank& rank) { return rank.runs; });
}

void tell(const std::vector<Rank>& ranks, int signal) {
  for (const Rank& rank : ranks)
    if (rank.runs) ::kill(rank.pid, signal);
}

/// Until all have ended. Once one has failed the others get a while, but for those that are stopped, then
/// none is left.
void watch(std::vector<Rank>& ranks, const BlockedSignals& signals) {
  double failed_at = 0;
  for (reap(ranks); runs(ranks); reap(ranks)) {
    const int signal = signals.wait();
    if (signal != 0 && signal != SIGCHLD) tell(ranks, signal);
    const bool failed =
        std::ranges::any_of(ranks, [](const Rank& rank) { return !rank.runs && rank.code != 0; });
    if (failed && failed_at == 0) failed_at = now_seconds();
    for (const Rank& rank : ranks)
      if (failed && rank.runs && rank.is_stopped) ::kill(rank.pid, SIGKILL);
    if (failed && now_seconds() - failed_at > kEndSeconds) tell(ranks, SIGKILL);
  }
}

/// The exit code of rank 0 if it is not 0, else that of another rank; the ranks have printed why.
Status outcome(const std::vector<Rank>& ranks) {
  int code = 0;
  for (const Rank& rank : ranks)
    if (rank.code > 0 && code <= 0)
      code = rank.code;
    else if (rank.code < 0 && code == 0)
      code = rank.code;
  if (code == 0) return Ok{};
  if (const auto error = error_of_exit(code)) return Error{*error, ""};
  return Error{ErrorCode::kIo, code < 0 ? "a signal ended a rank" : fmt::format("a rank ended with {}", code),
               "plimsoll launch", "see what the ranks printed"};
}

/// Parses what each rank would parse, so that an error in it is told once. False: it asks for help, which is
/// on stdout.
Result<bool> reads_command(std::vector<std::string> command) {
  CommandLine command_line({"plimsoll", "", "plimsoll " PLIMSOLL_VERSION, ""});
  Parser app = command_line.parser();
  app.require_subcommand();
  const Command train = add_train(app);  // owns what the options are written to
  std::string program = "plimsoll";
  std::vector<char*> argv = {program.data()};
  for (std::string& word : command) argv.push_back(word.data());
  argv.push_back(nullptr);
  return command_line.parse(static_cast<int>(argv.size()) - 1, argv.data());
}

Status launch(const LaunchArguments& arguments) {
  if (arguments.command.empty() || arguments.command.front() != "train")
    return Error{ErrorCode::kInvalidArgument, "launch starts the ranks of a training", "plimsoll launch",
                 "run: plimsoll launch --ranks 2 -- train RUN.yaml"};
  PLIMSOLL_ASSIGN(const bool starts, reads_command(arguments.command));
  if (!starts) return Ok{};
  const BlockedSignals signals;
  const pid_t parent = ::getpid();
  const std::string job = fmt::format("launch.{}.{}", parent, static_cast<int64_t>(1e6 * now_seconds()));
  std::vector<Rank> ranks;
  for (int64_t rank = 0; rank < arguments.ranks; ++rank) {
    const pid_t pid = ::fork();
    if (pid == 0) be_rank(rank, arguments, job, signals, parent);
    if (pid < 0) {
      Error error{ErrorCode::kIo, fmt::format("cannot start rank {}: {}", rank, std::strerror(errno)),
                  "plimsoll launch", "start fewer ranks"};
      tell(ranks, SIGKILL);
      watch(ranks, signals);
      return error;
    }
    ranks.push_back({.pid = pid});
  }
  watch(ranks, signals);
  return outcome(ranks);
}

}  // namespace

Command add_launch(Parser app) {
  return add_command<LaunchArguments>(
      app, "launch", "start a training on several ranks of this machine",
      [](Parser command, LaunchArguments& arguments) {
        command.add_option("--ranks", arguments.ranks, "processes that share each step")
            .range(1, 4096)
            .required();
        command.add_option("command", arguments.command, "what each rank runs, after --: train RUN.yaml …")
            .type_name("-- train RUN.yaml");
        command.footer(
            std::string("example: plimsoll launch --ranks 2 -- train run.yaml training.max_steps=100\n"
                        "signals go to all ranks: they save after the same step and stop with 75\n"));
      },
      launch);
}

}  // namespace plimsoll::cli
