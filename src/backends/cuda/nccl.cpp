#include "backends/cuda/nccl.h"

#include <dlfcn.h>
#include <fmt/format.h>

namespace plimsoll::cuda {
namespace {

/// The first that names the peers of a lost connection, and whose graphs may hold sends.
constexpr int kOldest = 21800;

Error unusable(const std::string& what) {
  return {ErrorCode::kIo, what, "distributed.transport",
          "install NCCL 2.18 or later (Debian's libnccl2 of NVIDIA, or the wheel nvidia-nccl-cu13), name its "
          "folder in PLIMSOLL_CUDA_LIBRARIES, or set distributed.transport=shm"};
}

/// 22809: 2.28.9.
std::string version_text(int version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

template <typename Function>
void look_up(void* library, Function*& function, const char* name, std::string& missing) {
  function = reinterpret_cast<Function*>(::dlsym(library, name));
  if (function == nullptr && missing.empty()) missing = name;
}

Result<Nccl> find_nccl() {
  void* library = open_library({"libnccl.so.2"});
  if (library == nullptr) return unusable("NCCL is not found: there is no libnccl.so.2");
  Nccl n;
  std::string missing;
  int (*get_version)(int*) = nullptr;
  look_up(library, get_version, "ncclGetVersion", missing);
  look_up(library, n.error_text, "ncclGetErrorString", missing);
  look_up(library, n.last_error, "ncclGetLastError", missing);
  look_up(library, n.make_id, "ncclGetUniqueId", missing);
  look_up(library, n.connect, "ncclCommInitRankConfig", missing);
  look_up(library, n.abort, "ncclCommAbort", missing);
  look_up(library, n.async_error, "ncclCommGetAsyncError", missing);
  look_up(library, n.group_start, "ncclGroupStart", missing);
  look_up(library, n.group_end, "ncclGroupEnd", missing);
  look_up(library, n.send, "ncclSend", missing);
  look_up(library, n.receive, "ncclRecv", missing);
  look_up(library, n.all_gather, "ncclAllGather", missing);
  look_up(library, n.broadcast, "ncclBroadcast", missing);
  Dl_info info = {};
  n.path = ::dladdr(reinterpret_cast<void*>(get_version), &info) != 0 ? info.dli_fname : "libnccl.so.2";
  if (!missing.empty()) return unusable(fmt::format("{} has no {}", n.path, missing));
  int version = 0;
  if (get_version(&version) != 0 || version < kOldest)
    return unusable(fmt::format("{} is NCCL {}, which is too old", n.path, version_text(version)));
  n.version = version_text(version);
  return n;
}

}  // namespace

Result<const Nccl*> load_nccl() {
  static const Result<Nccl> found = find_nccl();
  if (!found) return found.error();
  return &found.value();
}

}  // namespace plimsoll::cuda
