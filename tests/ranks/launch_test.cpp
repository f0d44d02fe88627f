// What the variables of each launcher make of a process.
#include "ranks/launch.h"

#include <gtest/gtest.h>

#include <map>

namespace plimsoll::ranks {
namespace {

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

TEST(Launch, RanksOfOtherMachinesAreRefused) {
  EXPECT_TRUE(check_launch({.rank = 1, .ranks = 2, .local_rank = 1, .local_ranks = 2}));
  const Status status =
      check_launch({.rank = 2, .ranks = 4, .local_rank = 0, .local_ranks = 2, .source = "mpirun"});
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().what.find("4 ranks, 2 of them on this machine"), std::string::npos);
}

}  // namespace
}  // namespace plimsoll::ranks
