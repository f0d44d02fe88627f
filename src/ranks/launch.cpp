#include "ranks/launch.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <string_view>

namespace plimsoll::ranks {
namespace {

constexpr int kMostRanks = 1 << 20;

/// The names of a launcher's variables; empty: it has none.
struct Row {
  const char* source;
  const char *rank, *ranks, *local_rank, *local_ranks;
  const char* job;       ///< the job's own name
  const char* job_part;  ///< of a step within it
};
constexpr std::array kRows = {
    Row{"plimsoll launch", "PLIMSOLL_RANK", "PLIMSOLL_RANKS", "PLIMSOLL_RANK", "PLIMSOLL_RANKS",
        "PLIMSOLL_JOB", ""},
    Row{"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
        "OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_MCA_ess_base_jobid", "PMIX_NAMESPACE"},
    Row{"mpiexec", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", "SLURM_JOB_ID",
        "SLURM_STEP_ID"},
    Row{"srun with PMIx", "PMIX_RANK", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE",
        "SLURM_JOB_ID", "SLURM_STEP_ID"},
    Row{"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE",
        "SLURM_JOB_ID", "SLURM_STEP_ID"},
    Row{"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "TORCHELASTIC_RUN_ID",
        "MASTER_PORT"}};

std::string_view text_of(const Environment& environment, const char* name) {
  const char* text = *name == '\0' ? nullptr : environment(name);
  return text == nullptr ? std::string_view() : text;
}

/// Slurm writes "2(x3)" for three machines with two each: the first number is of this one where all are
/// alike.
std::optional<int> number_of(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = end == text.data() + text.size() || *end == '(' || *end == ',';
  if (error != std::errc() || !whole || number < 0 || number > kMostRanks) return std::nullopt;
  return number;
}

Error bad_variable(const char* name, std::string_view text) {
  return {ErrorCode::kInvalidArgument, fmt::format("{} is '{}', which is no number of a rank", name, text),
          name, "start the ranks with their launcher, or set distributed.launcher=none for one rank"};
}

Result<int> required(const Environment& environment, const char* name) {
  const std::string_view text = text_of(environment, name);
  const std::optional<int> number = number_of(text);
  if (!number) return bad_variable(name, text);
  return *number;
}

/// Absent: as if all ranks were of one machine, which is looked at later.
Result<int> optional_number(const Environment& environment, const char* name, int otherwise) {
  return text_of(environment, name).empty() ? Result<int>(otherwise) : required(environment, name);
}

std::string job_of(const Row& row, const Environment& environment, int64_t parent) {
  std::string job(text_of(environment, row.job));
  if (const std::string_view part = text_of(environment, row.job_part); !part.empty())
    job += fmt::format("{}{}", job.empty() ? "" : ".", part);
  return job.empty() ? fmt::format("parent.{}", parent) : job;
}

Result<Launch> read_row(const Row& row, const Environment& environment, int64_t parent) {
  Launch launch{.source = row.source, .job = job_of(row, environment, parent)};
  PLIMSOLL_ASSIGN(launch.rank, required(environment, row.rank));
  PLIMSOLL_ASSIGN(launch.ranks, required(environment, row.ranks));
  PLIMSOLL_ASSIGN(launch.local_rank, optional_number(environment, row.local_rank, launch.rank));
  PLIMSOLL_ASSIGN(launch.local_ranks, optional_number(environment, row.local_ranks, launch.ranks));
  if (launch.rank >= launch.ranks)
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("{} is {}, of {} ranks from 0 on ({})", row.rank, launch.rank, launch.ranks, row.ranks),
        row.source, "start all ranks with one launcher"};
  return launch;
}

}  // namespace

Result<std::optional<Launch>> detect_launch(const Environment& environment, int64_t parent) {
  for (const Row& row : kRows) {
    if (text_of(environment, row.rank).empty() || text_of(environment, row.ranks).empty()) continue;
    PLIMSOLL_ASSIGN(Launch launch, read_row(row, environment, parent));
    if (launch.ranks == 1) return std::optional<Launch>();
    return std::optional(std::move(launch));
  }
  return std::optional<Launch>();
}

Status check_launch(const Launch& launch) {
  if (launch.local_ranks >= launch.ranks) return Ok{};
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("{} started {} ranks, {} of them on this machine: ranks of several machines need "
                           "distributed.transport mpi, which this version does not have",
                           launch.source, launch.ranks, launch.local_ranks),
               "distributed.transport", "start all ranks on one machine"};
}

}  // namespace plimsoll::ranks
