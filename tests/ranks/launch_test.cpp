// What the variables of each launcher make of a process.
#include "ranks/launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace plimsoll::ranks {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
using Variables = std::map<std::string, std::string>;

Result<std::optional<Launch>> detect(const Variables& variables) {
  return detect_launch(
      [&](const char* name) -> const char* {
        const auto found = variables.find(name);
        return found == variables.end() ? nullptr : found->second.c_str();
      },
      4711);
}

Launch found(const Variables& variables) {
  const auto launch = detect(variables);
  EXPECT_TRUE(launch && *launch);
  return launch && *launch ? **launch : Launch{};
}

void expect_place(const Launch& launch, int rank, int ranks, int local_rank, int local_ranks,
                  const std::string& source, const std::string& job) {
  EXPECT_EQ(launch.rank, rank);
  EXPECT_EQ(launch.ranks, ranks);
  EXPECT_EQ(launch.local_rank, local_rank);
  EXPECT_EQ(launch.local_ranks, local_ranks);
  EXPECT_EQ(launch.source, source);
  EXPECT_EQ(launch.job, job);
}

TEST(Launch, EveryLauncher) {
  expect_place(found({{"PLIMSOLL_RANK", "1"}, {"PLIMSOLL_RANKS", "3"}, {"PLIMSOLL_JOB", "j"}}), 1, 3, 1, 3,
               "plimsoll launch", "j");
  expect_place(found({{"OMPI_COMM_WORLD_RANK", "2"},
                      {"OMPI_COMM_WORLD_SIZE", "4"},
                      {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                      {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                      {"OMPI_MCA_ess_base_jobid", "77"}}),
               2, 4, 0, 2, "mpirun", "77");
  expect_place(
      found({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}}), 1, 2,
      1, 2, "mpiexec", "parent.4711");
  expect_place(found({{"PMIX_RANK", "1"},
                      {"SLURM_STEP_NUM_TASKS", "4"},
                      {"SLURM_LOCALID", "1"},
                      {"SLURM_STEP_TASKS_PER_NODE", "2(x2)"},
                      {"SLURM_JOB_ID", "9"},
                      {"SLURM_STEP_ID", "3"}}),
               1, 4, 1, 2, "srun with PMIx", "9.3");
  const Variables pmi2 = {{"PMI_RANK", "3"},
                          {"PMI_SIZE", "4"},
                          {"SLURM_LOCALID", "1"},
                          {"SLURM_STEP_NUM_TASKS", "4"},
                          {"SLURM_STEP_TASKS_PER_NODE", "2(x2)"},
                          {"SLURM_JOB_ID", "9"},
                          {"SLURM_STEP_ID", "3"}};
  expect_place(found(pmi2), 3, 4, 1, 2, "srun with PMI-2", "9.3");
  Variables mpiexec = pmi2;  // within a job of Slurm, which starts a proxy on each machine
  mpiexec.insert({{"MPI_LOCALRANKID", "0"}, {"MPI_LOCALNRANKS", "1"}});
  expect_place(found(mpiexec), 3, 4, 0, 1, "mpiexec", "9.3");
  expect_place(found({{"SLURM_PROCID", "1"}, {"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_LOCALID", "1"}}), 1, 2, 1,
               2, "srun", "parent.4711");
  expect_place(found({{"RANK", "3"},
                      {"WORLD_SIZE", "4"},
                      {"LOCAL_RANK", "3"},
                      {"LOCAL_WORLD_SIZE", "4"},
                      {"MASTER_ADDR", "127.0.0.1"},
                      {"MASTER_PORT", "29500"},
                      {"TORCHELASTIC_RUN_ID", "none"}}),
               3, 4, 3, 4, "torchrun", "none.29500");
}

TEST(Launch, TheFirstCompleteRowCounts) {
  const Launch both = found({{"RANK", "0"},
                             {"WORLD_SIZE", "8"},
                             {"OMPI_COMM_WORLD_RANK", "1"},
                             {"OMPI_COMM_WORLD_SIZE", "2"},
                             {"PMI_RANK", "5"}});
  EXPECT_EQ(both.source, "mpirun");
  EXPECT_EQ(both.ranks, 2);
}

TEST(Launch, OneRankIsNone) {
  for (const Variables& variables : {Variables{},
                                     // A shell of an interactive job.
                                     {{"SLURM_NTASKS", "4"}, {"SLURM_JOB_ID", "9"}},
                                     {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}},
                                     {{"RANK", "0"}},
                                     {{"RANK", "0"}, {"WORLD_SIZE", "1"}},
                                     {{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}}}) {
    const auto launch = detect(variables);
    ASSERT_TRUE(launch);
    EXPECT_FALSE(*launch);
  }
}

TEST(Launch, WhatCannotBeIsRefused) {
  for (const Variables& variables : {Variables{{"RANK", "2"}, {"WORLD_SIZE", "2"}},
                                     {{"RANK", "-1"}, {"WORLD_SIZE", "2"}},
                                     {{"RANK", "one"}, {"WORLD_SIZE", "2"}},
                                     {{"RANK", "0"}, {"WORLD_SIZE", "99999999999"}}}) {
    const auto launch = detect(variables);
    ASSERT_FALSE(launch);
    EXPECT_EQ(launch.error().code, ErrorCode::kInvalidArgument);
  }
}

TEST(Launch, ThreadsAreARanksPartOfTheCpus) {
  const auto threads = [](const char* source, int local_ranks, int cpus, int own, int launchers) {
    return threads_of_rank({.local_ranks = local_ranks, .source = source, .cpus = cpus}, own, launchers);
  };
  EXPECT_EQ(threads("mpirun", 2, 0, 16, 16), 8) << "not bound";
  EXPECT_EQ(threads("mpirun", 2, 0, 1, 16), 1) << "bound to a core each";
  EXPECT_EQ(threads("mpirun", 2, 0, 4, 16), 4) << "bound to four each";
  EXPECT_EQ(threads("mpirun", 4, 0, 8, 16), 4) << "two bound to each socket";
  EXPECT_EQ(threads("mpirun", 4, 0, 2, 2), 1) << "more ranks than CPUs";
  EXPECT_EQ(threads("srun", 2, 8, 8, 64), 8) << "eight for each task";
  EXPECT_EQ(threads("srun", 2, 8, 16, 64), 8);
  EXPECT_EQ(threads("srun", 2, 0, 16, 64), 8) << "the job's, for both";
  EXPECT_EQ(found({{"SLURM_PROCID", "1"}, {"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_CPUS_PER_TASK", "8"}}).cpus,
            8);
}

/// The second of four, two on each machine.
Launch on_two_machines(Launcher launcher, const std::string& address) {
  return {.rank = 1,
          .ranks = 4,
          .local_rank = 1,
          .local_ranks = 2,
          .source = "it",
          .address = address,
          .launcher = launcher};
}

std::string transport(const Launch& launch, const std::string& wanted, bool by_cards = false) {
  const auto chosen = choose_transport(launch, wanted, by_cards);
  return chosen ? *chosen : chosen.error().message();
}

TEST(Launch, TransportFollowsFromTheMachines) {
  Launch one = on_two_machines(Launcher::kNoMpi, "");
  one.local_ranks = 4;
  EXPECT_EQ(transport(one, "auto"), "shm");
  EXPECT_EQ(transport(one, "shm"), "shm");
  EXPECT_THAT(transport(one, "mpi"), HasSubstr("the transport mpi needs a launcher of MPI"));
  one.launcher = Launcher::kOpenMpi;
  EXPECT_EQ(transport(one, "auto"), "shm");
  EXPECT_EQ(transport(one, "mpi"), "mpi");
  const Launch two = on_two_machines(Launcher::kMpich, "a:1");
  EXPECT_EQ(transport(two, "auto"), "mpi");
  EXPECT_THAT(transport(two, "shm"), HasSubstr("4 ranks, 2 of them on this machine: shm is between ranks"));
  EXPECT_THAT(transport(on_two_machines(Launcher::kMpich, ""), "auto"), HasSubstr("where rank 0 is"));
  const Launch apart = on_two_machines(Launcher::kNoMpi, "a:1");
  EXPECT_THAT(transport(apart, "auto"), HasSubstr("needs a launcher of MPI"));
  EXPECT_EQ(transport(apart, "auto", /*by_cards=*/true), kChannel);
  EXPECT_EQ(transport(two, "auto", true), "mpi") << "of hosts that have it";
  EXPECT_EQ(transport(one, "auto", true), "shm");
  EXPECT_THAT(transport(on_two_machines(Launcher::kNoMpi, ""), "auto", true), HasSubstr("where rank 0 is"));
}

TEST(Launch, TorchrunNamesTheMachineOfRankZero) {
  Variables variables = {{"RANK", "3"},
                         {"WORLD_SIZE", "4"},
                         {"LOCAL_RANK", "1"},
                         {"LOCAL_WORLD_SIZE", "2"},
                         {"MASTER_ADDR", "10.0.0.7"},
                         {"MASTER_PORT", "29500"}};
  const std::string address = found(variables).address;
  EXPECT_THAT(address, StartsWith("10.0.0.7:"));
  EXPECT_NE(address, "10.0.0.7:29500") << "a store of torchrun's listens there";
  variables["RANK"] = "0";
  EXPECT_EQ(found(variables).address, address);
  variables["MASTER_PORT"] = "29501";
  EXPECT_NE(found(variables).address, address) << "another job";
  variables.erase("MASTER_PORT");
  EXPECT_EQ(found(variables).address, "") << "nothing that all have in common names a port";
}

/// Where rank 0 listens as Slurm has it, without the port.
std::string first_of(const std::string& machines, const std::string& step = "3") {
  return found({{"SLURM_PROCID", "1"},
                {"SLURM_STEP_NUM_TASKS", "4"},
                {"SLURM_LOCALID", "1"},
                {"SLURM_STEP_TASKS_PER_NODE", "2(x2)"},
                {"SLURM_STEP_NODELIST", machines},
                {"SLURM_JOB_ID", "9"},
                {"SLURM_STEP_ID", step}})
      .address;
}

TEST(Launch, SlurmNamesTheMachineOfRankZero) {
  for (const auto& [machines, first] :
       std::vector<std::pair<std::string, std::string>>{{"node[003-005,9],login", "node003:"},
                                                        {"a,b", "a:"},
                                                        {"a", "a:"},
                                                        {"rack2-n[7,9]", "rack2-n7:"},
                                                        {"n[1-2]-ib,m", "n1-ib:"},
                                                        {"rack[0-3]n[7,9],m", "rack0n7:"},
                                                        {"n[5", "n5:"},
                                                        {"n[", "n:"},
                                                        {"n[5]", "n5:"}})
    EXPECT_THAT(first_of(machines), StartsWith(first)) << machines;
  EXPECT_EQ(first_of("a,b"), first_of("a,b"));
  EXPECT_NE(first_of("a,b"), first_of("a,b", "4")) << "another step, another port";
  const Launch local = found({{"SLURM_PROCID", "1"},
                              {"SLURM_STEP_NUM_TASKS", "2"},
                              {"SLURM_STEP_TASKS_PER_NODE", "2"},
                              {"SLURM_STEP_NODELIST", "a"}});
  EXPECT_EQ(local.address, "") << "ranks of one machine meet there";
}

TEST(Launch, KnowsWhoseMpiALauncherStarts) {
  EXPECT_EQ(found({{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}}).launcher,
            Launcher::kOpenMpi);
  EXPECT_EQ(found({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}}).launcher, Launcher::kMpich);
  EXPECT_EQ(found({{"PMIX_RANK", "1"}, {"SLURM_STEP_NUM_TASKS", "2"}}).launcher, Launcher::kAnyMpi);
  EXPECT_EQ(found({{"SLURM_PROCID", "1"}, {"SLURM_STEP_NUM_TASKS", "2"}}).launcher, Launcher::kNoMpi)
      << "srun --mpi=none";
  EXPECT_EQ(found({{"RANK", "1"}, {"WORLD_SIZE", "2"}}).launcher, Launcher::kNoMpi);
}

}  // namespace
}  // namespace plimsoll::ranks
