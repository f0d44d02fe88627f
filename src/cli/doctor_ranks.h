// Shows what plimsoll doctor knows of ranks: who started this process, and by which libraries of MPI it could
// exchange.
#pragma once

#include <string>
#include <vector>

#include "io/tree.h"

namespace plimsoll::cli {

struct RanksReport {
  struct Mpi {
    std::string path, version;
  };
  std::string launcher;     ///< "mpirun: rank 1 of 4, 2 of them on this machine"; empty: none
  std::vector<Mpi> mpi;     ///< those that are installed
  std::string advice = {};  ///< what would keep the ranks from exchanging; empty: nothing
};

/// Opens each library in a process of its own: two of them in one are in each other's way.
RanksReport look_at_ranks();

/// As lines of two columns; as JSON.
std::vector<std::pair<std::string, std::string>> ranks_rows(const RanksReport& ranks);
io::Tree ranks_json(const RanksReport& ranks);

}  // namespace plimsoll::cli
