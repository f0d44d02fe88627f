// Runs of several ranks on one machine, as processes that a launcher starts.
#pragma once

#include <gtest/gtest.h>
#include <sys/prctl.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "e2e/program.h"

namespace plimsoll::e2e {

inline std::string run_of(const std::string& batch, int steps) {
  // A table that is large enough to be cut into a piece for each rank.
  std::string run =
      run_file("training: {global_batch_size: " + batch + ", max_steps: " + std::to_string(steps) +
               ", learning_rate: 3.0e-3, seed: 5, logging_steps: 1}\nruntime: {threads: 1}\n");
  run.replace(run.find("259"), 3, "1000");
  return run;
}

/// Two machines on this one, each with a network and a name of its own, and a cable between them; the
/// launchers start the second's processes through agent.sh. `command` is run on the first.
inline std::string on_two_machines(const Folder& folder, const std::string& command) {
  folder.write("machines.sh",
               "hostname first; ip link set lo up\n"
               "unshare -n -u sleep 1000 & second=$!\n"
               "trap 'kill $second' EXIT\n"
               "sleep 0.3; ip link add va type veth peer name vb; ip link set vb netns $second\n"
               "ip addr add 10.77.0.1/24 dev va; ip link set va up\n"
               "nsenter -t $second -n -u sh -c 'hostname second; ip link set lo up;"
               " ip addr add 10.77.0.2/24 dev vb; ip link set vb up'\n"
               "printf '#!/bin/sh\\nwhile [ \"${1#-}\" != \"$1\" ]; do shift; done\\nshift\\n"
               "exec nsenter -t %s -n -u sh -c \"$*\"\\n' $second >agent.sh; chmod +x agent.sh\n" +
                   command + "\n");
  return "unshare -n -u -m sh machines.sh";
}

class Ranks : public testing::Test {
 protected:
  void SetUp() override {
    if (sanitized()) GTEST_SKIP() << "many processes";
    folder_.write("train.txt", some_text(60'000));
    folder_.write("eval.txt", some_text(4000));
    folder_.write("run.yaml", run_of("7", 6));
  }
  /// Trains into a folder of its own.
  Outcome train(int ranks, const std::string& more = "", const std::string& environment = "") {
    const std::string command = "train run.yaml --json " + on_device("") + more;
    return folder_.run(ranks == 1 ? command : "launch --ranks " + std::to_string(ranks) + " -- " + command,
                       environment);
  }
  std::string trained(int ranks, const std::string& name, const std::string& more = "",
                      const std::string& environment = "") {
    const Outcome run = train(ranks, " output.dir=" + name + " " + more, environment);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    out_ = run.out;
    return folder_.read(name + "/final/model.safetensors");
  }
  /// A shell's command.
  [[nodiscard]] Outcome shell(const std::string& command) const {
    const int status =
        std::system(("cd '" + folder_.path() + "' && " + command + " >out.txt 2>err.txt </dev/null").c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), folder_.read("out.txt"),
            folder_.read("err.txt")};
  }
  /// The losses of what was trained last.
  [[nodiscard]] std::vector<double> losses() const {
    std::vector<double> all;
    std::istringstream lines(events_of(out_));
    for (std::string line; std::getline(lines, line);)
      if (const size_t at = line.find("\"loss\": ");
          at != line.npos && line.find("\"event\": \"step\"") != line.npos)
        all.push_back(std::strtod(line.c_str() + at + 8, nullptr));
    return all;
  }

  Folder folder_;
  std::string out_;
};

/// A run that goes on until the test ends its launcher or a rank.
class EndlessRun : public Ranks {
 protected:
  static constexpr const char* kSettings =
      " output.save_steps=20 output.save_total_limit=2 training.eval_strategy=no output.monitor_seconds=0 ";

  /// `launcher`: variables, then what starts `train run.yaml`. Returns once it trains.
  void start_training(const std::string& launcher, const std::string& more) {
    folder_.write("run.yaml", run_of("6", 100'000));
    folder_.write("out.txt", "");
    const std::string command = "cd '" + folder_.path() + "' && exec env " + launcher + kSettings + more +
                                " >out.txt 2>err.txt </dev/null";
    launcher_ = ::fork();
    if (launcher_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
      ::_exit(127);
    }
    const auto trains = [&] {
      return folder_.read("out.txt").find("\"event\": \"step\"") != std::string::npos;
    };
    for (int i = 0; i < 2400 && !trains(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    ASSERT_TRUE(trains()) << folder_.read("err.txt");
  }
  void TearDown() override {
    if (launcher_ > 0) ::kill(launcher_, SIGKILL);
  }
  /// Its exit code, and how long it took.
  std::pair<int, double> wait() {
    const auto begin = std::chrono::steady_clock::now();
    int status = 0;
    ::waitpid(launcher_, &status, 0);
    launcher_ = 0;
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1,
            std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()};
  }
  /// Whoever inherits a process that has ended may leave it a zombie.
  [[nodiscard]] static bool is_gone(pid_t pid) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    std::string stat;
    std::getline(file, stat);
    const size_t name_end = stat.rfind(") ");
    return name_end == std::string::npos || stat[name_end + 2] == 'Z';
  }

  pid_t launcher_ = 0;
};

/// A run of `plimsoll launch` whose processes the test looks for and sends signals to.
class RunningRanks : public EndlessRun {
 protected:
  void start(int ranks, const std::string& environment = "", const std::string& more = "") {
    start_training(environment + " " PLIMSOLL_BINARY " launch --ranks " + std::to_string(ranks) +
                       " -- train run.yaml --json",
                   more);
  }
  /// The process that the launcher has started as that rank.
  [[nodiscard]] pid_t rank(int number) const {
    const std::string job = "PLIMSOLL_JOB=launch." + std::to_string(launcher_) + ".";
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      std::ifstream environment(entry.path() / "environ");
      bool is_job = false, is_rank = false;
      for (std::string word; std::getline(environment, word, '\0');) {
        is_job = is_job || word.starts_with(job);
        is_rank = is_rank || word == "PLIMSOLL_RANK=" + std::to_string(number);
      }
      if (is_job && is_rank) return static_cast<pid_t>(std::atoi(entry.path().filename().c_str()));
    }
    ADD_FAILURE() << "no rank " << number;
    return launcher_;
  }
};

}  // namespace plimsoll::e2e
