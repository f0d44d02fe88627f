// The calls of NCCL that ranks on cards exchange bytes by, looked up at run time: nothing of NCCL is linked.
// Names, arguments and numbers as its documents have them
// (docs.nvidia.com/deeplearning/nccl/user-guide/docs/api.html); a call returns 0 where all is well.
#pragma once

#include <climits>
#include <cstddef>
#include <cstdint>
#include <string>

#include "backends/cuda/api.h"
#include "base/result.h"

namespace plimsoll::cuda {

/// What rank 0 makes and all ranks connect with.
struct NcclId {
  char bytes[128];
};

/// As of NCCL 2.17; later versions take it too, for it says which it is.
struct NcclConfig {
  size_t bytes = sizeof(NcclConfig);
  unsigned magic = 0xcafebeef;
  unsigned version = 21700;
  int blocking = 1;
  int blocks_of_cluster = INT_MIN;  // INT_MIN: the library's choice
  int least_blocks = INT_MIN;
  int most_blocks = 8;  ///< of an exchange on the card; memory grows with them
  const char* network = nullptr;
};

struct Nccl {
  std::string path;     ///< of the file
  std::string version;  ///< "2.28.9"
  const char* (*error_text)(int error) = nullptr;
  const char* (*last_error)(Handle communicator) = nullptr;
  int (*make_id)(NcclId* id) = nullptr;
  int (*connect)(Handle* communicator, int ranks, NcclId id, int rank, NcclConfig* config) = nullptr;
  int (*abort)(Handle communicator) = nullptr;
  int (*async_error)(Handle communicator, int* error) = nullptr;
  int (*group_start)() = nullptr;
  int (*group_end)() = nullptr;
  int (*send)(const void* from, size_t count, int type, int to, Handle communicator, Handle stream) = nullptr;
  int (*receive)(void* to, size_t count, int type, int from, Handle communicator, Handle stream) = nullptr;
  int (*all_gather)(const void* piece, void* whole, size_t count, int type, Handle communicator,
                    Handle stream) = nullptr;
  int (*broadcast)(const void* from, void* to, size_t count, int type, int root, Handle communicator,
                   Handle stream) = nullptr;
};
inline constexpr int kNcclBytes = 0;       // ncclInt8
inline constexpr int kNcclInProgress = 7;  // ncclInProgress

/// libnccl.so.2, loaded once for the process, looked for as load_api looks for its libraries. Errors: kIo
/// where it is missing, or older than 2.18.
Result<const Nccl*> load_nccl();

}  // namespace plimsoll::cuda
