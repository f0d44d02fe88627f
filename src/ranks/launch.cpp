#include "ranks/launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

namespace plimsoll::ranks {
namespace {

constexpr int kMostRanks = 1 << 20;
/// Below those that the system gives to whoever asks for any.
constexpr uint32_t kFirstPort = 20'000, kPorts = 10'000;

/// The names of a launcher's variables; empty: it has none.
struct Row {
  const char* source;
  const char *rank, *ranks, *local_rank, *local_ranks;
  const char* job;       ///< the job's own name
  const char* job_part;  ///< of a step within it
  const char* machines;  ///< a list, of which rank 0 has the first, or that one
  Launcher launcher;
  const char* not_with = "";  ///< another launcher's, which has been started by this one
};
constexpr std::array kRows = {
    Row{"plimsoll launch", "PLIMSOLL_RANK", "PLIMSOLL_RANKS", "PLIMSOLL_RANK", "PLIMSOLL_RANKS",
        "PLIMSOLL_JOB", "", "", Launcher::kNoMpi},
    Row{"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
        "OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_MCA_ess_base_jobid", "PMIX_NAMESPACE", "", Launcher::kOpenMpi},
    Row{"srun with PMI-2", "PMI_RANK", "PMI_SIZE", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE",
        "SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_STEP_NODELIST", Launcher::kMpich, "MPI_LOCALNRANKS"},
    Row{"mpiexec", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", "SLURM_JOB_ID",
        "SLURM_STEP_ID", "SLURM_STEP_NODELIST", Launcher::kMpich},
    Row{"srun with PMIx", "PMIX_RANK", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE",
        "SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_STEP_NODELIST", Launcher::kAnyMpi},
    Row{"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE",
        "SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_STEP_NODELIST", Launcher::kNoMpi},
    Row{"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "TORCHELASTIC_RUN_ID",
        "MASTER_PORT", "MASTER_ADDR", Launcher::kNoMpi}};

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

/// "node[003-005,9],login" -> "node003", "rack[0-3]n[7,9]" -> "rack0n7".
std::string first_machine(std::string_view list) {
  std::string name;
  for (;;) {
    const size_t end = std::min(list.find_first_of(",["), list.size());
    name += list.substr(0, end);
    if (end == list.size() || list[end] == ',') return name;
    const std::string_view numbers = list.substr(end + 1);
    name += numbers.substr(0, numbers.find_first_of(",-]"));
    list = numbers.substr(std::min(numbers.find(']'), numbers.size()));
    if (!list.empty()) list.remove_prefix(1);
  }
}

/// Where rank 0 listens: the same port on all ranks of a job, likely another one for another job.
std::string address_of(std::string_view machines, const std::string& job) {
  uint32_t sum = 0;
  for (const char c : job) sum = sum * 31 + static_cast<unsigned char>(c);
  return fmt::format("{}:{}", first_machine(machines), kFirstPort + sum % kPorts);
}

/// Slurm's variables tell its own PMI-2 from that of an mpiexec.
bool is_complete(const Row& row, const Environment& environment) {
  const auto has = [&](const char* name) { return !text_of(environment, name).empty(); };
  if (!has(row.rank) || !has(row.ranks)) return false;
  return *row.not_with == '\0' || (has(row.local_rank) && !has(row.not_with));
}

Result<Launch> read_row(const Row& row, const Environment& environment, int64_t parent) {
  Launch launch{.source = row.source, .job = job_of(row, environment, parent), .launcher = row.launcher};
  PLIMSOLL_ASSIGN(launch.rank, required(environment, row.rank));
  PLIMSOLL_ASSIGN(launch.ranks, required(environment, row.ranks));
  PLIMSOLL_ASSIGN(launch.local_rank, optional_number(environment, row.local_rank, launch.rank));
  PLIMSOLL_ASSIGN(launch.local_ranks, optional_number(environment, row.local_ranks, launch.ranks));
  if (launch.rank >= launch.ranks)
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("{} is {}, of {} ranks from 0 on ({})", row.rank, launch.rank, launch.ranks, row.ranks),
        row.source, "start all ranks with one launcher"};
  if (launch.source.starts_with("srun")) {
    PLIMSOLL_ASSIGN(launch.cpus, optional_number(environment, "SLURM_CPUS_PER_TASK", 0));
  }
  const bool is_named = !text_of(environment, row.job).empty() || !text_of(environment, row.job_part).empty();
  if (const auto machines = text_of(environment, row.machines);
      !launch.is_one_machine() && is_named && !machines.empty())
    launch.address = address_of(machines, launch.job);
  return launch;
}

}  // namespace

Result<std::optional<Launch>> detect_launch(const Environment& environment, int64_t parent) {
  for (const Row& row : kRows) {
    if (!is_complete(row, environment)) continue;
    PLIMSOLL_ASSIGN(Launch launch, read_row(row, environment, parent));
    if (launch.ranks == 1) return std::optional<Launch>();
    return std::optional(std::move(launch));
  }
  return std::optional<Launch>();
}

int threads_of_rank(const Launch& launch, int own_cpus, int launcher_cpus) {
  if (launch.cpus > 0) return std::min(own_cpus, launch.cpus);
  // What starts the ranks of a job of Slurm may be outside the job, with more than it.
  const int shared = launch.source.starts_with("srun") ? own_cpus : std::max(own_cpus, launcher_cpus);
  return std::clamp(shared / launch.local_ranks, 1, own_cpus);
}

Result<std::string> choose_transport(const Launch& launch, const std::string& wanted, bool by_cards) {
  const bool over_channel =
      by_cards && wanted == "auto" && !launch.is_one_machine() && launch.launcher == Launcher::kNoMpi;
  const bool uses_mpi = wanted == "mpi" || (wanted == "auto" && !launch.is_one_machine() && !over_channel);
  const auto refused = [&](const std::string& why, const char* hint) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} started {} ranks, {} of them on this machine{}", launch.source, launch.ranks,
                             launch.local_ranks, why),
                 "distributed.transport", hint};
  };
  if (!uses_mpi && !over_channel && !launch.is_one_machine())
    return refused(": shm is between ranks of one machine", "set distributed.transport=mpi");
  if (uses_mpi && launch.launcher == Launcher::kNoMpi)
    return refused(", and the transport mpi needs a launcher of MPI",
                   "start the ranks with mpirun, mpiexec, srun --mpi=pmix or srun --mpi=pmi2");
  if (!launch.is_one_machine() && launch.address.empty())
    return refused(", and the others do not know where rank 0 is",
                   "set distributed.address to HOST:PORT, with the machine of rank 0 and a free port");
  if (over_channel) return std::string(kChannel);
  return std::string(uses_mpi ? "mpi" : "shm");
}

}  // namespace plimsoll::ranks
