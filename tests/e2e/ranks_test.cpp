// Several ranks on one machine: what they compute together, what they write, and how they end when one does.
#include "e2e/ranks.h"

#include <gmock/gmock.h>

#include <array>
#include <cmath>

namespace plimsoll::e2e {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST_F(Ranks, TrainAsOneRankDoes) {
  trained(1, "one");
  const std::vector<double> alone = losses();
  ASSERT_EQ(alone.size(), 6U);
  for (const int ranks : {2, 3, 4, 9}) {  // of 7 sequences; of nine ranks two have none
    trained(ranks, "many" + std::to_string(ranks));
    const std::vector<double> together = losses();
    ASSERT_EQ(together.size(), alone.size()) << ranks;
    for (size_t i = 0; i < alone.size(); ++i)
      EXPECT_NEAR(together[i], alone[i], 1e-5 * std::fabs(alone[i])) << ranks << " ranks, step " << i + 1;
    EXPECT_THAT(out_, HasSubstr("\"median_seconds\""));
  }
}

TEST_F(Ranks, BitsDependOnTheirNumberAlone) {
  for (const int ranks : {2, 3}) {
    const std::string name = "first" + std::to_string(ranks);
    const std::string model = trained(ranks, name);
    const std::string events = events_of(out_);
    ASSERT_FALSE(model.empty());
    for (const auto& [how, more, environment] : part_of<std::tuple<std::string, std::string, std::string>>(
             {{"again", "", ""},
              {"two threads", "runtime.threads=2", ""},
              {"micro-batches", "training.micro_batch_size=1", ""},
              {"micro-batches that do not divide the batch", "training.micro_batch_size=2", ""},
              {"recompute", "memory.recompute=full", ""},
              {"through slots", "", "PLIMSOLL_RANKS_STAGED=1"},
              {"an adversary", "runtime.device=discrete runtime.discrete.seed=7 runtime.discrete.check=true",
               ""}},
             3)) {
      std::filesystem::remove_all(folder_.path("other"));
      EXPECT_TRUE(trained(ranks, "other", more, environment) == model) << how;
      EXPECT_EQ(events_of(out_), events) << how;
    }
  }
}

TEST_F(Ranks, AnyNumberResumesFromAnyOther) {
  const std::string whole = " output.save_steps=3 training.max_steps=6 ";
  for (const auto& [before, after] : {std::pair{2, 1}, {1, 3}, {3, 2}}) {
    const std::string name = "from" + std::to_string(before);
    ASSERT_EQ(train(before, " output.dir=" + name + " output.save_steps=3 training.max_steps=3 ").exit_code,
              0);
    const std::string kept = folder_.read(name + "/checkpoint-3/optimizer.safetensors");
    ASSERT_FALSE(kept.empty());
    const Outcome resumed = train(after, " output.dir=" + name + whole);
    EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
    EXPECT_EQ(number(resumed.out, "run_steps"), 6);
    EXPECT_EQ(number(resumed.out, "steps"), 3);
  }
}

TEST_F(Ranks, PlansWithoutThem) {
  const Outcome plan = folder_.run("plan run.yaml --json distributed.ranks=3");
  ASSERT_EQ(plan.exit_code, 0) << plan.err;
  EXPECT_THAT(plan.out, HasSubstr("\"ranks\": [{\"rank\": 0, \"device\": {\"peak_bytes\": "));
  EXPECT_THAT(plan.out, HasSubstr("{\"rank\": 2, "));
  const Outcome alone = folder_.run("train run.yaml distributed.ranks=3");
  EXPECT_EQ(alone.exit_code, 2);
  EXPECT_THAT(alone.err, HasSubstr("plimsoll launch --ranks 3"));
}

TEST_F(Ranks, WhatIsNotThereIsRefusedByName) {
  for (const char* setting : {"distributed.reduction=library"}) {
    const Outcome run = folder_.run(std::string("plan run.yaml ") + setting);
    EXPECT_EQ(run.exit_code, 2) << setting;
    EXPECT_THAT(run.err, HasSubstr("not available in this version")) << setting;
  }
}

TEST_F(Ranks, AnErrorIsToldOnce) {
  for (const auto& [more, code] : std::vector<std::pair<std::string, int>>{
           {" data.train=missing.txt", 65},
           {" debug.dump_dir=dump", 2},             // what ranks cannot have
           {" lora.adapter=missing", 65},           // found by all, once they have met
           {" training.learning_rate=1e6", 76}}) {  // after the same step
    const Outcome run = train(3, more);
    EXPECT_EQ(run.exit_code, code) << run.err;
    const size_t first = run.err.find("error: ");
    ASSERT_NE(first, std::string::npos) << more << "\n" << run.err;
    EXPECT_EQ(run.err.find("error: ", first + 1), std::string::npos) << run.err;
  }
  for (const char* command : {"train", "train missing.yaml", "train run.yaml --none-such",
                              "train run.yaml --resume-with training.global_batch_size=8"}) {
    const Outcome run = folder_.run(std::string("launch --ranks 3 -- ") + command);
    EXPECT_NE(run.exit_code, 0) << command;
    const size_t first = run.err.find("error: ");
    ASSERT_NE(first, std::string::npos) << command << "\n" << run.err;
    EXPECT_EQ(run.err.find("error: ", first + 1), std::string::npos) << run.err;
  }
}

/// Two ranks that a launcher of another name has started, the second with `more`; exit codes and rank 0's
/// stderr.
struct TwoRanks {
  int first = -1, second = -1;
  std::string err;
};
TwoRanks started_apart(const Folder& folder, const std::string& arguments, const std::string& more) {
  const std::string train = "'" PLIMSOLL_BINARY "' train run.yaml --json " + arguments;
  folder.write("both.sh",
               "export WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 TORCHELASTIC_RUN_ID=" + std::to_string(::getpid()) +
                   folder.path().substr(folder.path().size() - 6) + "\nRANK=1 LOCAL_RANK=1 " + train + more +
                   " >second.txt 2>&1 & other=$!\n" + "RANK=0 LOCAL_RANK=0 " + train +
                   " >first.txt 2>err.txt; echo $? >codes.txt\n" + "wait $other; echo $? >>codes.txt\n");
  EXPECT_EQ(std::system(("cd '" + folder.path() + "' && sh both.sh").c_str()), 0);
  TwoRanks ended{.err = folder.read("err.txt")};
  std::istringstream(folder.read("codes.txt")) >> ended.first >> ended.second;
  EXPECT_EQ(folder.read("second.txt"), "") << "rank 0 alone prints";
  return ended;
}

TEST_F(Ranks, VariablesOfALauncherDo) {
  const std::string launched = trained(2, "launched");
  const TwoRanks both = started_apart(folder_, "output.dir=apart", "");
  EXPECT_EQ(both.first, 0) << both.err;
  EXPECT_EQ(both.second, 0);
  EXPECT_THAT(both.err, HasSubstr("torchrun started 2 ranks"));
  EXPECT_TRUE(folder_.read("apart/final/model.safetensors") == launched);
}

TEST_F(Ranks, MeetWhereTheRunFileSays) {
  const Outcome run = folder_.run("train run.yaml distributed.address=nowhere", "RANK=0 WORLD_SIZE=2");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, HasSubstr("'nowhere' is no address"));
}

TEST_F(Ranks, OtherSettingsOnOneAreFoundBeforeTheFirstStep) {
  const TwoRanks both = started_apart(folder_, "output.dir=apart", " training.learning_rate=1.0e-3");
  EXPECT_EQ(both.first, 65);
  EXPECT_EQ(both.second, 65);
  EXPECT_THAT(both.err, HasSubstr("'learning_rate: 0.003' on rank 0, 'learning_rate: 0.001' on rank 1"));
  EXPECT_THAT(folder_.read("first.txt"), Not(HasSubstr("\"event\": \"step\"")));
}

TEST_F(RunningRanks, ASignalAtAnyOfThemSavesAfterOneStep) {
  for (const int asked : {-1, 0, 1}) {
    start(2);
    const pid_t other = rank(1);
    ::kill(asked < 0 ? launcher_ : rank(asked), SIGTERM);
    EXPECT_EQ(wait().first, 75) << folder_.read("err.txt");
    EXPECT_THAT(folder_.read("err.txt"), HasSubstr("stopped by SIGTERM"));
    EXPECT_TRUE(is_gone(other));
    std::filesystem::remove_all(folder_.path("out"));
  }
}

/// What the ranks share is saved whole.
TEST_F(RunningRanks, ASignalSavesWhatTheyShare) {
  start(2, "", "distributed.mode=zero1");
  ::kill(rank(1), SIGTERM);
  EXPECT_EQ(wait().first, 75) << folder_.read("err.txt");
  EXPECT_THAT(folder_.read("err.txt"), HasSubstr("saved in out/checkpoint-"));
}

/// Ranks that share the parameters evaluate together, and stop together.
TEST_F(RunningRanks, ASignalEndsTheEvaluationOfAll) {
  for (const int asked : {0, 1}) {
    start(2, "", "distributed.mode=zero3 training.eval_strategy=steps training.eval_steps=1");
    ::kill(rank(asked), SIGTERM);
    EXPECT_EQ(wait().first, 75) << folder_.read("err.txt");
    std::filesystem::remove_all(folder_.path("out"));
  }
}

TEST_F(RunningRanks, ALostRankIsNamedAndAllEnd) {
  for (const int lost : {1, 0, 2}) {
    start(3);
    const std::array<pid_t, 3> pids = {rank(0), rank(1), rank(2)};
    ::kill(pids[static_cast<size_t>(lost)], SIGKILL);
    const auto [code, seconds] = wait();
    EXPECT_EQ(code, 74);
    EXPECT_LT(seconds, 4) << "two seconds, on a busy machine";
    EXPECT_THAT(folder_.read("err.txt"), HasSubstr("rank " + std::to_string(lost) + " (host "));
    for (const pid_t pid : pids) EXPECT_TRUE(is_gone(pid)) << "rank left behind";
    std::filesystem::remove_all(folder_.path("out"));
  }
}

TEST_F(RunningRanks, AStoppedRankIsNamedAndEnded) {
  start(2, "PLIMSOLL_RANKS_DEADLINE=2");
  const pid_t stopped = rank(1);
  ::kill(stopped, SIGSTOP);
  const auto [code, seconds] = wait();
  EXPECT_EQ(code, 74);
  EXPECT_LT(seconds, 2 + 4) << "two seconds behind the deadline, on a busy machine";
  EXPECT_THAT(folder_.read("err.txt"), HasSubstr("rank 1 (host "));
  EXPECT_THAT(folder_.read("err.txt"), HasSubstr("gave no sign of life for 2 s"));
  EXPECT_TRUE(is_gone(stopped));
}

TEST_F(RunningRanks, NoRankOutlivesTheLauncher) {
  start(2);
  const std::array<pid_t, 2> pids = {rank(0), rank(1)};
  ::kill(launcher_, SIGKILL);
  (void)wait();
  for (int i = 0; i < 400 && !(is_gone(pids[0]) && is_gone(pids[1])); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  for (const pid_t pid : pids) EXPECT_TRUE(is_gone(pid));
}

}  // namespace
}  // namespace plimsoll::e2e
