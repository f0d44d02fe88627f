// Finds out which rank of how many a process is, from the environment that its launcher has set.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/result.h"

namespace plimsoll::ranks {

/// The kind of MPI that a launcher starts the processes of.
enum class Launcher { kNoMpi, kOpenMpi, kMpich, kAnyMpi };

/// A process's place among the ranks of its run.
struct Launch {
  int rank = 0, ranks = 1;
  int local_rank = 0, local_ranks = 1;  ///< among those of this machine
  std::string source = {};              ///< who says so: "mpirun", "srun", "distributed.rank", …
  /// What all ranks of this job have in common and no other job has: the name of their meeting place on this
  /// machine, where `address` is empty.
  std::string job = {};
  std::string address = {};  ///< HOST:PORT where rank 0 listens
  Launcher launcher = Launcher::kNoMpi;
  int cpus = 0;  ///< that srun gives each rank; 0: it does not say

  [[nodiscard]] bool is_one_machine() const { return local_ranks >= ranks; }
};

/// A variable of the environment; null where it is not set.
using Environment = std::function<const char*(const char* name)>;

/// What the environment says, first one that is complete:
///
///   PLIMSOLL_RANK, _RANKS, _JOB                              plimsoll launch
///   OMPI_COMM_WORLD_RANK, _SIZE, _LOCAL_RANK, _LOCAL_SIZE    mpirun of Open MPI
///   PMI_RANK, _SIZE, SLURM_LOCALID                           srun --mpi=pmi2
///   PMI_RANK, _SIZE, MPI_LOCALRANKID, MPI_LOCALNRANKS        mpiexec of MPICH and Intel MPI
///   PMIX_RANK, SLURM_STEP_NUM_TASKS                          srun --mpi=pmix
///   SLURM_PROCID, SLURM_STEP_NUM_TASKS, SLURM_LOCALID        srun; never the job's SLURM_NTASKS, which an
///                                                            interactive shell has too
///   RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE           torchrun, operators of Kubernetes
///
/// Of several machines Slurm and torchrun (MASTER_ADDR) name the first, where rank 0 listens; with other
/// launchers the user does.
///
/// Nothing for one rank, and where no launcher is there. `parent` is the process that started this one: what
/// the ranks of a launcher without a job's name have in common. Errors: kInvalidArgument for numbers that
/// cannot be.
Result<std::optional<Launch>> detect_launch(const Environment& environment, int64_t parent);

/// How many of its `own_cpus` a rank computes on. A launcher that may use more, `launcher_cpus`, has bound
/// its ranks to some each, or several to the same.
int threads_of_rank(const Launch& launch, int own_cpus, int launcher_cpus);

/// The transport by which ranks exchange bytes, shm or mpi, where `wanted` is distributed.transport: auto is
/// shm on one machine. `by_cards`: what programs exchange goes by NCCL, so that without a launcher of MPI
/// hosts of several machines need no more than kChannel. Errors: kInvalidArgument where the ranks cannot
/// exchange so.
Result<std::string> choose_transport(const Launch& launch, const std::string& wanted, bool by_cards = false);
/// The connections by which ranks control each other (channel_transport.h).
inline constexpr const char* kChannel = "channel";

}  // namespace plimsoll::ranks
