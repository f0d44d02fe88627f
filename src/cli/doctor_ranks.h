// Reports on ranks for plimsoll doctor: which launcher started this process, and the libraries of MPI and
// NCCL through which it could exchange gradients.
#pragma once

#include <string>
#include <vector>

#include "io/tree.h"

namespace plimsoll::cli {

struct RanksReport {
  struct Library {
    std::string path, version;
  };
  std::string launcher;      ///< "mpirun: rank 1 of 4, 2 of them on this machine"; empty: none
  std::vector<Library> mpi;  ///< those that are installed
  Library nccl = {};         ///< empty: none that ranks can use
  std::string no_nccl = {};  ///< why not
  std::string advice = {};   ///< what would keep the ranks from exchanging; empty: nothing
};

/// Opens each library in a process of its own, since two libraries of MPI in one process conflict.
RanksReport look_at_ranks();

/// As lines of two columns; as JSON.
std::vector<std::pair<std::string, std::string>> ranks_rows(const RanksReport& ranks);
io::Tree ranks_json(const RanksReport& ranks);

}  // namespace plimsoll::cli
