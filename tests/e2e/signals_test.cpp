// Signals: the run saves and leaves, or dies and goes on from its last checkpoint.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "ten_steps.h"

namespace plimsoll::e2e {
namespace {

using testing::HasSubstr;
using testing::Not;

/// The program as a child process that can be sent signals.
class Child {
 public:
  Child(const Folder& folder, const std::string& overrides) {
    pid_ = ::fork();
    if (pid_ != 0) return;
    const std::string command = "cd '" + folder.path() + "' && exec '" PLIMSOLL_BINARY "' " +
                                on_device("train run.yaml --json " + overrides) +
                                " >out.txt 2>err.txt </dev/null";
    ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    ::_exit(127);
  }
  ~Child() {  // a test that has failed leaves nothing that runs
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  void send(int signal) const { ::kill(pid_, signal); }
  /// The exit code, or 128 + the signal's number.
  [[nodiscard]] int wait() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  pid_t pid_ = -1;
};

bool wait_for(const Folder& folder, const std::string& text, const std::string& file = "out.txt") {
  for (int i = 0; i < 10'000; ++i) {  // a minute, on a machine that does other things
    if (folder.read(file).find(text) != std::string::npos) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

TEST(Signals, SaveAndLeaveWith75) {
  ::signal(SIGHUP, SIG_DFL);  // these tests may themselves be run under nohup, which is inherited
  for (const auto& [signal, name] : {std::pair(SIGTERM, "SIGTERM"), std::pair(SIGINT, "SIGINT"),
                                     std::pair(SIGHUP, "SIGHUP"), std::pair(SIGUSR1, "SIGUSR1")}) {
    const Folder folder;
    prepare_ten_steps(folder);
    Child child(folder, "runtime.threads=1 training.max_steps=100000 output.save_steps=0");
    ASSERT_TRUE(wait_for(folder, "\"step\": 3,")) << folder.read("err.txt");
    child.send(signal);
    EXPECT_EQ(child.wait(), 75);
    const std::string err = folder.read("err.txt");
    EXPECT_THAT(err, HasSubstr(std::string("error: stopped by ") + name + " after step "));
    EXPECT_THAT(err, HasSubstr("hint: run the same command again"));
    EXPECT_THAT(folder.read("out.txt"), HasSubstr("{\"event\": \"checkpoint\""));
    EXPECT_THAT(folder.read("out.txt"), Not(HasSubstr("summary")));
    EXPECT_FALSE(std::filesystem::exists(folder.path("out/final")));
    const size_t at = err.find("saved in ") + 9;
    EXPECT_TRUE(std::filesystem::exists(folder.path(err.substr(at, err.find('\n', at) - at)))) << err;
  }
}

TEST(Signals, EndAnEvaluationWhichIsMadeUpFor) {
  const Folder folder;
  prepare_ten_steps(folder);
  folder.write("eval.txt", some_text(1'000'000));  // longer than it takes to look whether step 4 is done
  const std::string overrides = "runtime.threads=1 training.max_steps=4 output.save_steps=0";
  Child child(folder, overrides);
  ASSERT_TRUE(wait_for(folder, "\"step\": 4,")) << folder.read("err.txt");
  child.send(SIGTERM);
  EXPECT_EQ(child.wait(), 75);
  EXPECT_THAT(folder.read("out.txt"), Not(HasSubstr("\"event\": \"eval\"")));
  EXPECT_THAT(folder.read("err.txt"), HasSubstr("saved in out/checkpoint-4"));
  // Where the named checkpoint is all there is, auto would not find it.
  Child elsewhere(folder, overrides + " output.dir=other --resume out/checkpoint-4");
  ASSERT_TRUE(wait_for(folder, "resuming after", "err.txt")) << folder.read("err.txt");
  elsewhere.send(SIGTERM);
  EXPECT_EQ(elsewhere.wait(), 75);
  EXPECT_THAT(folder.read("err.txt"), HasSubstr("saved in out/checkpoint-4"));
  EXPECT_THAT(folder.read("err.txt"), HasSubstr("hint: run the same command again to resume"));
  folder.write("eval.txt",
               some_text(1'000'000).substr(0, 900));  // a shorter wait; its content is not compared
  const Outcome outcome = folder.run("train run.yaml --json " + overrides);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  ASSERT_EQ(events_by_step(outcome).size(), 1U);
  EXPECT_EQ(events_by_step(outcome).begin()->first, "{\"event\": \"eval\", \"step\": 4");
}

TEST(Signals, ASecondOneLeavesAtOnceWithoutSaving) {
  const Folder folder;
  prepare_ten_steps(folder);
  // Long steps, so that the second signal comes before the end of one.
  Child child(folder,
              "runtime.threads=1 training.global_batch_size=512 training.max_steps=100000 "
              "output.save_total_limit=1");
  ASSERT_TRUE(wait_for(folder, "\"event\": \"plan\""));
  child.send(SIGTERM);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  child.send(SIGINT);
  const int code = child.wait();
  // SIGTERM last: where both wait, the system delivers the lower number first. 75: stopped before the first
  // step, in between.
  EXPECT_TRUE(code == 128 + SIGINT || code == 128 + SIGTERM || code == 75) << code << folder.read("err.txt");
  EXPECT_FALSE(std::filesystem::exists(folder.path("out/checkpoint-1")));
}

TEST(Signals, AHangupThatComesTwiceAtOnceIsOne) {
  ::signal(SIGHUP, SIG_DFL);
  const Folder folder;
  prepare_ten_steps(folder);
  Child child(folder, "runtime.threads=1 training.max_steps=100000 output.save_steps=0");
  ASSERT_TRUE(wait_for(folder, "\"step\": 3,")) << folder.read("err.txt");
  child.send(SIGHUP);
  child.send(SIGHUP);
  EXPECT_EQ(child.wait(), 75);
  EXPECT_THAT(folder.read("err.txt"), HasSubstr("stopped by SIGHUP after step"));
}

TEST(Signals, NohupMeansGoingOn) {
  const Folder folder;
  prepare_ten_steps(folder);
  ::signal(SIGHUP, SIG_IGN);  // inherited by what is started
  Child child(folder, "runtime.threads=1 training.max_steps=100000 output.save_steps=0");
  ::signal(SIGHUP, SIG_DFL);
  ASSERT_TRUE(wait_for(folder, "\"step\": 3,")) << folder.read("err.txt");
  child.send(SIGHUP);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  child.send(SIGUSR1);
  EXPECT_EQ(child.wait(), 75);
  EXPECT_THAT(folder.read("err.txt"), HasSubstr("stopped by SIGUSR1 after step"));
}

TEST(Signals, AKilledRunGoesOnFromItsLastCheckpoint) {
  const Folder folder;
  prepare_ten_steps(folder);
  Child child(folder, "runtime.threads=1");
  ASSERT_TRUE(wait_for(folder, "\"step\": 8,"));
  child.send(SIGKILL);
  EXPECT_EQ(child.wait(), 128 + SIGKILL);
  const Outcome outcome = folder.run("train run.yaml --json runtime.threads=2 training.micro_batch_size=2");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(folder.read("out/final/model.safetensors") == reference().model);
}

}  // namespace
}  // namespace plimsoll::e2e
