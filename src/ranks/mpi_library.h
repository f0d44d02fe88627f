// Finds a library of MPI at run time: nothing of MPI is linked. Three families of binary interfaces exist,
// which differ in the type and the values of their handles:
//
//   Open MPI 4, 5      libmpi.so.40                    handles are addresses of the library's objects
//   MPICH, Intel MPI   libmpich.so.12, libmpi.so.12    handles are numbers of 32 bits
//   the standard's     libmpi_abi.so.1                 handles are small numbers in pointers; MPICH from 4.3,
//                                                      Open MPI from 6
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ranks/launch.h"
#include "ranks/mpi_calls.h"

namespace plimsoll::ranks {

enum class MpiDialect { kOpenMpi, kMpich, kStandard };

struct MpiLibrary {
  std::string path;     ///< of the file
  std::string version;  ///< "Open MPI v4.1.4": the library's own words, first line
  MpiDialect dialect = MpiDialect::kOpenMpi;
  bool is_open_mpi = false;  ///< else MPICH, or what comes of it: a launcher starts its own only
  std::shared_ptr<MpiCalls> calls = {};
};

/// Names by which libraries of a launcher's kind may be installed, likeliest first.
std::vector<std::string> mpi_names(Launcher launcher);

/// Opens the library of that name or path, without starting MPI. It stays open until the process ends.
/// Errors: kIo where it is missing, or is no library of MPI.
Result<MpiLibrary> open_mpi(const std::string& name);

/// Opens what a process can use that such a launcher has started. `name`: distributed.library, empty: what is
/// installed. Errors: kIo where there is none; kInvalidArgument where the library is not the launcher's.
Result<MpiLibrary> find_mpi(const Launch& launch, const std::string& name);

}  // namespace plimsoll::ranks
