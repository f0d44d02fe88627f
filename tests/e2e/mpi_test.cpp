// Ranks that exchange by MPI, started by the launchers of Open MPI and MPICH: the bits of shared memory, and
// what becomes of a run whose launcher, library or ranks are not what they should be.
#include <gmock/gmock.h>

#include <array>
#include <chrono>
#include <thread>

#include "e2e/checkpoint_names.h"
#include "e2e/ranks.h"

namespace plimsoll::e2e {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kProgram = "'" PLIMSOLL_BINARY "' ";
/// The launcher's own messages come beside the ranks'.
constexpr const char* kOpenMpi =
    "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun.openmpi --oversubscribe --bind-to none "
    "-n ";
constexpr const char* kMpich = "mpiexec.mpich -n ";

/// What a launcher starts.
std::string train_command(const std::string& more) {
  return kProgram + on_device("train run.yaml ") + " --json " + more;
}

class Mpi : public Ranks {
 protected:
  [[nodiscard]] std::string model(const std::string& name) const {
    return folder_.read(name + "/final/model.safetensors");
  }
};

TEST_F(Mpi, HasTheBitsOfSharedMemory) {
  for (const std::string ranks : {"2", "3"}) {
    const Outcome shm = shell(kProgram + ("launch --ranks " + ranks) + " -- " + on_device("train run.yaml ") +
                              " --json output.dir=shm" + ranks);
    ASSERT_EQ(shm.exit_code, 0) << shm.err;
    for (const auto& [launcher, library] : {std::pair{kOpenMpi, "Open MPI v"}, {kMpich, "MPICH Version: "}}) {
      std::filesystem::remove_all(folder_.path("mpi"));
      const Outcome mpi =
          shell(launcher + ranks + " " + train_command("distributed.transport=mpi output.dir=mpi"));
      ASSERT_EQ(mpi.exit_code, 0) << mpi.err;
      EXPECT_THAT(mpi.err, HasSubstr(std::string("ranks exchange gradients through ") + library));
      EXPECT_TRUE(model("mpi") == model("shm" + ranks)) << library;
      EXPECT_EQ(events_of(mpi.out), events_of(shm.out)) << library;
      EXPECT_LE(number(mpi.out, "measured_peak_bytes"), number(mpi.out, "planned_peak_bytes")) << library;
    }
  }
}

TEST_F(Mpi, IsNotUsedOnOneMachineUnlessAskedFor) {
  const Outcome run = shell(kOpenMpi + ("2 " + train_command("")));
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("mpirun started 2 ranks"));
  EXPECT_THAT(run.err, Not(HasSubstr("exchange gradients through")));
}

TEST_F(Mpi, AnotherLibraryThanTheLaunchersIsRefused) {
  for (const auto& [launcher, library, both] :
       {std::tuple{kOpenMpi, "libmpich.so.12", "is MPICH Version: 4.0.2, and mpirun of Open MPI started"},
        {kMpich, "libmpi.so.40", "is Open MPI v4.1.4, and mpiexec of MPICH or Intel MPI started"}}) {
    const Outcome run = shell(
        launcher +
        ("2 " + train_command("distributed.transport=mpi distributed.library=" + std::string(library))));
    EXPECT_EQ(run.exit_code, 2) << run.err;
    EXPECT_THAT(run.err, HasSubstr(both));
    const size_t first = run.err.find("error: ");
    EXPECT_EQ(run.err.find("error: ", first + 1), std::string::npos) << run.err;
  }
  const Outcome missing =
      shell(kOpenMpi + ("2 " + train_command("distributed.transport=mpi distributed.library=libnone.so")));
  EXPECT_EQ(missing.exit_code, 74) << missing.err;
  EXPECT_THAT(missing.err, HasSubstr("distributed.library: libnone.so"));
}

TEST_F(Mpi, NeedsALauncherOfMpi) {
  const Outcome launched =
      shell(kProgram + std::string("launch --ranks 2 -- train run.yaml distributed.transport=mpi"));
  EXPECT_EQ(launched.exit_code, 2);
  EXPECT_THAT(launched.err, HasSubstr("plimsoll launch started 2 ranks, 2 of them on this machine, and the "
                                      "transport mpi needs a launcher of MPI"));
  // The variables of mpirun alone do not make a process one of its own.
  folder_.write("both.sh",
                "export OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_SIZE=2\nOMPI_COMM_WORLD_RANK=1 " +
                    train_command("distributed.transport=mpi") +
                    " >second.txt 2>&1 & other=$!\nOMPI_COMM_WORLD_RANK=0 " +
                    train_command("distributed.transport=mpi") + "; code=$?; wait $other; exit $code\n");
  const Outcome alone = shell("OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 sh both.sh");
  EXPECT_EQ(alone.exit_code, 2) << alone.err;
  EXPECT_THAT(alone.err, HasSubstr("MPI counts this process as rank 0 of 1, its launcher as rank"));
}

TEST_F(Mpi, RanksOfSeveralMachinesSayWhatIsMissing) {
  const std::string variables = "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_SIZE=2 ";
  const Outcome place = shell(variables + train_command(""));
  EXPECT_EQ(place.exit_code, 2);
  EXPECT_THAT(place.err, HasSubstr("mpirun started 4 ranks, 2 of them on this machine"));
  EXPECT_THAT(place.err, HasSubstr("set distributed.address to HOST:PORT"));
  const Outcome memory =
      shell(variables + train_command("distributed.transport=shm distributed.address=localhost:1"));
  EXPECT_EQ(memory.exit_code, 2);
  EXPECT_THAT(memory.err, HasSubstr("shm is between ranks of one machine"));
  const Outcome other = shell("RANK=0 WORLD_SIZE=4 LOCAL_WORLD_SIZE=2 " + train_command(""));
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.err, HasSubstr("start the ranks with mpirun, mpiexec, srun --mpi=pmix"));
}

TEST_F(Mpi, TakesPartsOfAStepToSeveralMachines) {
  if (shell("unshare -n -u -m true").exit_code != 0) GTEST_SKIP() << "no machine within this one can be made";
  ASSERT_EQ(
      shell(kProgram + ("launch --ranks 2 -- " + on_device("train run.yaml ")) + " output.dir=shm").exit_code,
      0);
  for (const std::string launcher :
       {"OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun.openmpi --host 10.77.0.1,10.77.0.2 "
        "--mca plm_rsh_agent ./agent.sh --bind-to none -n 2 ",
        "mpiexec.mpich -launcher ssh -launcher-exec ./agent.sh -hosts 10.77.0.1,10.77.0.2 -n 2 "}) {
    std::filesystem::remove_all(folder_.path("mpi"));
    const Outcome run = shell(on_two_machines(
        folder_, launcher + train_command("output.dir=mpi distributed.address=10.77.0.1:29400")));
    ASSERT_EQ(run.exit_code, 0) << launcher << "\n" << run.err;
    EXPECT_THAT(run.err, HasSubstr("ranks exchange gradients through ")) << "auto";
    EXPECT_TRUE(model("mpi") == model("shm"));
  }
}

/// A run whose processes the test sends signals to.
class RunningMpi : public EndlessRun {
 protected:
  void start(const std::string& launcher, const std::string& environment = "") {
    start_training(environment + " " + launcher + "2 " + train_command("distributed.transport=mpi"), "");
  }
  /// The process in this test's folder that is that rank.
  [[nodiscard]] pid_t rank(int number) const {
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      std::error_code none;
      if (std::filesystem::read_symlink(entry.path() / "cwd", none) != folder_.path()) continue;
      std::ifstream environment(entry.path() / "environ");
      for (std::string word; std::getline(environment, word, '\0');)
        for (const char* name : {"OMPI_COMM_WORLD_RANK=", "PMI_RANK="})
          if (word == name + std::to_string(number))
            return static_cast<pid_t>(std::atoi(entry.path().filename().c_str()));
    }
    ADD_FAILURE() << "no rank " << number;
    return launcher_;
  }
};

TEST_F(RunningMpi, ASignalThatTheLauncherPassesOnSavesAfterOneStep) {
  for (const char* launcher : {kOpenMpi, kMpich}) {
    start(launcher);
    const pid_t other = rank(1);
    ::kill(launcher_, SIGUSR1);
    const int code = wait().first;
    const std::string err = folder_.read("err.txt");
    if (code == 0 && launcher == kMpich) {
      // Its launcher now and then ends with 0 after a signal, and passes on nothing of what its ranks still
      // do.
      for (int tries = 0; tries < 100 && !is_gone(other); ++tries)
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
    } else {
      EXPECT_EQ(code, 75) << launcher << "\n" << err;
      EXPECT_THAT(err, HasSubstr("stopped by SIGUSR1"));
    }
    EXPECT_TRUE(is_gone(other)) << launcher;
    EXPECT_FALSE(checkpoint_names(folder_).empty()) << launcher << "\n" << err;
    std::filesystem::remove_all(folder_.path("out"));
  }
}

TEST_F(RunningMpi, ALostRankIsNamedAndAllEnd) {
  for (const int lost : {0, 1}) {
    start(kOpenMpi);
    const std::array<pid_t, 2> pids = {rank(0), rank(1)};
    ::kill(pids[static_cast<size_t>(lost)], SIGKILL);
    const auto [code, seconds] = wait();
    EXPECT_NE(code, 0);
    EXPECT_LT(seconds, 6) << "two seconds, on a busy machine";
    EXPECT_THAT(folder_.read("err.txt"), HasSubstr("rank " + std::to_string(lost) + " (host "));
    for (const pid_t pid : pids) EXPECT_TRUE(is_gone(pid)) << "rank left behind";
    std::filesystem::remove_all(folder_.path("out"));
  }
}

TEST_F(RunningMpi, TheLauncherOfMpichEndsAllWithOne) {
  start(kMpich);
  const std::array<pid_t, 2> pids = {rank(0), rank(1)};
  ::kill(pids[1], SIGKILL);
  const auto [code, seconds] = wait();
  EXPECT_NE(code, 0);
  EXPECT_LT(seconds, 6);
  for (const pid_t pid : pids) EXPECT_TRUE(is_gone(pid)) << "rank left behind";
}

TEST_F(RunningMpi, AStoppedRankIsNamedAndEnded) {
  start(kOpenMpi, "PLIMSOLL_RANKS_DEADLINE=2");
  const pid_t stopped = rank(1);
  ::kill(stopped, SIGSTOP);
  EXPECT_NE(wait().first, 0);
  EXPECT_THAT(folder_.read("err.txt"), HasSubstr("gave no sign of life for 2 s"));
  EXPECT_TRUE(is_gone(stopped));
}

}  // namespace
}  // namespace plimsoll::e2e
