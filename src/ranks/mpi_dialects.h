// The functions of a library of MPI by the handles of its dialect.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "ranks/mpi_calls.h"
#include "ranks/mpi_library.h"

namespace plimsoll::ranks {

/// `library`: as dlopen returns it. Errors: kIo where it lacks a function.
Result<std::shared_ptr<MpiCalls>> make_mpi_calls(void* library, MpiDialect dialect,
                                                 const std::string& version);

}  // namespace plimsoll::ranks
