#include "ranks/mpi_library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <sstream>

#include "ranks/mpi_dialects.h"

namespace plimsoll::ranks {
namespace {

constexpr const char* kStandardName = "libmpi_abi";
/// More than any library's MPI_MAX_LIBRARY_VERSION_STRING.
constexpr size_t kVersionBytes = 16384;

/// The part of the library's description that names it: Open MPI's goes on behind a comma, MPICH's on a line.
std::string version_of(void* library) {
  const auto ask = reinterpret_cast<int (*)(char*, int*)>(::dlsym(library, "MPI_Get_library_version"));
  if (ask == nullptr) return "";
  std::string text(kVersionBytes, '\0');
  int length = 0;
  if (ask(text.data(), &length) != 0) return "";
  text.resize(text.find_first_of(std::string_view("\n,\0", 3)));
  std::string words;
  std::istringstream in(text);
  for (std::string word; in >> word;) words += (words.empty() ? "" : " ") + word;
  return words;
}

std::string file_of(void* library, const std::string& otherwise) {
  Dl_info info = {};
  const void* symbol = ::dlsym(library, "MPI_Init_thread");
  return symbol != nullptr && ::dladdr(symbol, &info) != 0 ? info.dli_fname : otherwise;
}

/// A launcher's kind in words, and whether a library is of it.
const char* words_of(Launcher launcher) {
  return launcher == Launcher::kOpenMpi ? "Open MPI" : "MPICH or Intel MPI";
}
bool fits(Launcher launcher, const MpiLibrary& library) {
  return launcher == Launcher::kAnyMpi || (launcher == Launcher::kOpenMpi) == library.is_open_mpi;
}

Error no_library(const Launch& launch, const std::vector<std::string>& tried) {
  return {ErrorCode::kIo,
          fmt::format("{} started this process, and no library of its MPI is found (looked for {})",
                      launch.source, fmt::join(tried, ", ")),
          "distributed.transport", "install libopenmpi3 or libmpich12, or set distributed.library to a path"};
}

}  // namespace

std::vector<std::string> mpi_names(Launcher launcher) {
  const std::vector<std::string> open_mpi = {"libmpi.so.40"}, mpich = {"libmpich.so.12", "libmpi.so.12"};
  std::vector<std::string> names;
  if (launcher != Launcher::kMpich) names.insert(names.end(), open_mpi.begin(), open_mpi.end());
  if (launcher != Launcher::kOpenMpi) names.insert(names.end(), mpich.begin(), mpich.end());
  names.push_back(std::string(kStandardName) + ".so.1");
  return names;
}

Result<MpiLibrary> open_mpi(const std::string& name) {
  void* library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = ::dlerror();
    return Error{ErrorCode::kIo, fmt::format("cannot open the library: {}", why == nullptr ? "?" : why), name,
                 "set distributed.library to the path of a library of MPI"};
  }
  MpiLibrary found{.path = file_of(library, name), .version = version_of(library)};
  found.is_open_mpi = found.version.starts_with("Open MPI");
  // The standard's library may bring the objects of its own dialect along.
  if (found.path.find(kStandardName) != std::string::npos)
    found.dialect = MpiDialect::kStandard;
  else if (::dlsym(library, "ompi_mpi_comm_world") != nullptr)
    found.dialect = MpiDialect::kOpenMpi;
  else if (!found.version.empty() && !found.is_open_mpi)
    found.dialect = MpiDialect::kMpich;
  else
    return Error{ErrorCode::kIo, "the library has none of the three binary interfaces of MPI", name,
                 "set distributed.library to Open MPI's, MPICH's or libmpi_abi.so.1"};
  PLIMSOLL_ASSIGN(found.calls, make_mpi_calls(library, found.dialect, found.version));
  return found;
}

Result<MpiLibrary> find_mpi(const Launch& launch, const std::string& name) {
  const std::vector<std::string> names =
      name.empty() ? mpi_names(launch.launcher) : std::vector<std::string>{name};
  std::optional<Error> refused;
  for (const std::string& candidate : names) {
    Result<MpiLibrary> found = open_mpi(candidate);
    if (!found) {
      if (!name.empty()) return std::move(found.error()).at("distributed.library");
      continue;
    }
    if (fits(launch.launcher, *found)) {
      // Modules that the library opens look for its functions among those of the whole process.
      (void)::dlopen(candidate.c_str(), RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
      return found;
    }
    refused = Error{ErrorCode::kInvalidArgument,
                    fmt::format("{} is {}, and {} of {} started this process", found->path, found->version,
                                launch.source, words_of(launch.launcher)),
                    "distributed.library",
                    "start the ranks with that library's own launcher, or name the launcher's library"};
  }
  if (refused) return *refused;
  return no_library(launch, names);
}

}  // namespace plimsoll::ranks
