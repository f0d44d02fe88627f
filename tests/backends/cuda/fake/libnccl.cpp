// NCCL without a card, for tests: libnccl.so.2 as backends/cuda/nccl.h calls it, between processes of one
// machine that have the fake driver. Each exchange is work of the stream: a rank posts what it has for each
// other, all meet, each takes what is for it out of the others' memory, all meet again. Ranks that do not
// queue the same in the same order find an error, as do those of whom one has ended. PLIMSOLL_FAKE_NCCL=old:
// a version that is too old; refused: ranks are not connected; lost:N: the N-th exchange finds that the
// network is lost.
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "backends/cuda/nccl.h"
#include "driver.h"

namespace {

using plimsoll::cuda::Handle;
using plimsoll::cuda::NcclConfig;
using plimsoll::cuda::NcclId;

enum { kOk = 0, kSystem = 2, kInvalidArgument = 4, kInvalidUsage = 5, kRemote = 6 };
constexpr int kMostRanks = 64;

/// What a rank has for another, or wants of it.
struct Part {
  uint64_t address = 0, bytes = 0;
};
/// Of an exchange, by the other's rank.
struct Post {
  int kind = 0;
  std::array<Part, kMostRanks> sent = {}, wanted = {};
};
/// In memory that all ranks have mapped.
struct Meeting {
  std::atomic<uint32_t> arrived, generation;
  std::atomic<int32_t> pids[kMostRanks];
  std::atomic<uint64_t> posts[kMostRanks];
};
struct Communicator {
  Meeting* meeting = nullptr;
  int rank = 0, ranks = 0, exchanges = 0;
  std::atomic<int> error{0};
  std::atomic<bool> is_aborted{false};
};

/// Of this thread's group: what it queues at its end.
struct Group {
  bool is_open = false;
  Communicator* communicator = nullptr;
  Handle stream = nullptr;
  Post post = {};
};
thread_local Group group;
std::string last_words;

std::string asked() {
  const char* text = std::getenv("PLIMSOLL_FAKE_NCCL");
  return text == nullptr ? "" : text;
}

bool has_ended(int pid) {
  if (pid == 0) return false;
  std::FILE* stat = std::fopen(("/proc/" + std::to_string(pid) + "/stat").c_str(), "r");
  if (stat == nullptr) return true;
  char state = 'Z';
  const bool read = std::fscanf(stat, "%*d (%*[^)]) %c", &state) == 1;
  std::fclose(stat);
  return !read || state == 'Z' || state == 'X';
}

/// Until all ranks have come; false where that is in vain.
bool meet(Communicator& c) {
  Meeting& m = *c.meeting;
  const uint32_t generation = m.generation;
  if (m.arrived.fetch_add(1) + 1 == static_cast<uint32_t>(c.ranks)) {
    m.arrived = 0;
    ++m.generation;
    return true;
  }
  for (int looks = 1; m.generation == generation; ++looks) {
    looks < 100 ? void(::sched_yield()) : void(::usleep(200));
    if (c.is_aborted) return false;
    if (looks % 50 != 0) continue;
    for (int rank = 0; rank < c.ranks; ++rank)
      if (has_ended(m.pids[rank])) c.error = kRemote;
    if (c.error != kOk) return false;
  }
  return true;
}

bool read(int pid, uint64_t address, void* to, size_t bytes) {
  iovec here{to, bytes}, there{reinterpret_cast<void*>(address), bytes};
  return bytes == 0 || ::process_vm_readv(pid, &here, 1, &there, 1, 0) == static_cast<ssize_t>(bytes);
}

void exchange(Communicator& c, const Post& own) {
  const std::string mode = asked();
  if (mode == "lost:" + std::to_string(++c.exchanges)) c.error = kSystem;
  if (c.error != kOk || c.is_aborted) return;
  c.meeting->posts[c.rank] = reinterpret_cast<uint64_t>(&own);
  if (!meet(c)) return;
  for (int from = 0; from < c.ranks; ++from) {
    const auto at = static_cast<size_t>(from), self = static_cast<size_t>(c.rank);
    Post other;
    if (!read(c.meeting->pids[from], c.meeting->posts[from], &other, sizeof other))
      c.error = kRemote;
    else if (other.kind != own.kind || other.sent[self].bytes != own.wanted[at].bytes)
      c.error = kInvalidUsage;
    else if (!read(c.meeting->pids[from], other.sent[self].address,
                   reinterpret_cast<void*>(own.wanted[at].address), own.wanted[at].bytes))
      c.error = kRemote;
  }
  (void)meet(c);
}

int queue(Communicator* c, const Post& post, Handle stream) {
  for (const auto& parts : {post.sent, post.wanted})
    for (const Part& part : parts)
      if (part.bytes > 0 && !fake::is_reached(part.address, part.bytes)) return kInvalidArgument;
  std::function<void()> work = [c, post] { exchange(*c, post); };
  return plimsollFakeQueue(stream, 0, &work) == 0 ? kOk : kSystem;
}

Part part(const void* data, size_t bytes) { return {reinterpret_cast<uint64_t>(data), bytes}; }

/// One message to a rank and one from it in a group.
int put(Part& place, const void* data, size_t bytes, Handle communicator, Handle stream) {
  if (!group.is_open || place.bytes > 0) return kInvalidUsage;
  group.communicator = static_cast<Communicator*>(communicator);
  group.stream = stream;
  place = part(data, bytes);
  return kOk;
}

}  // namespace

extern "C" {

int ncclGetVersion(int* version) { return *version = asked() == "old" ? 21705 : 22809, kOk; }
const char* ncclGetErrorString(int error) {
  return error == kSystem         ? "unhandled system error"
         : error == kInvalidUsage ? "invalid usage"
         : error == kRemote       ? "remote process exited or there was a network error"
                                  : "invalid argument";
}
const char* ncclGetLastError(Handle) { return last_words.c_str(); }

int ncclGetUniqueId(NcclId* id) {
  const int file = ::memfd_create("fake NCCL", 0);
  if (file < 0 || ::ftruncate(file, sizeof(Meeting)) != 0) return kSystem;
  std::snprintf(id->bytes, sizeof id->bytes, "/proc/%d/fd/%d", ::getpid(), file);
  return kOk;
}
int ncclCommInitRankConfig(Handle* made, int ranks, NcclId id, int rank, NcclConfig* config) {
  if (config->bytes != sizeof(NcclConfig) || config->magic != 0xcafebeef || ranks > kMostRanks)
    return kInvalidArgument;
  if (asked() == "refused") return last_words = "Duplicate GPU detected", kInvalidUsage;
  const int file = ::open(id.bytes, O_RDWR | O_CLOEXEC);
  void* at = ::mmap(nullptr, sizeof(Meeting), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (file < 0 || at == MAP_FAILED) return kSystem;
  (void)::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
  auto* c = new Communicator{static_cast<Meeting*>(at), rank, ranks};
  c->meeting->pids[rank] = ::getpid();
  *made = c;
  return meet(*c) ? kOk : kRemote;
}
int ncclCommAbort(Handle communicator) {
  static_cast<Communicator*>(communicator)->is_aborted = true;  // work that is queued may still ask for it
  return kOk;
}
int ncclCommGetAsyncError(Handle communicator, int* error) {
  return *error = static_cast<Communicator*>(communicator)->error, kOk;
}

int ncclGroupStart() {
  if (group.is_open) return kInvalidUsage;
  group = {.is_open = true, .post = {.kind = 1}};
  return kOk;
}
int ncclGroupEnd() {
  const Group ended = group;
  group = {};
  if (!ended.is_open) return kInvalidUsage;
  return ended.communicator == nullptr ? kOk : queue(ended.communicator, ended.post, ended.stream);
}
int ncclSend(const void* from, size_t count, int, int to, Handle communicator, Handle stream) {
  return put(group.post.sent[static_cast<size_t>(to)], from, count, communicator, stream);
}
int ncclRecv(void* to, size_t count, int, int from, Handle communicator, Handle stream) {
  return put(group.post.wanted[static_cast<size_t>(from)], to, count, communicator, stream);
}
int ncclAllGather(const void* piece, void* whole, size_t count, int, Handle communicator, Handle stream) {
  auto* c = static_cast<Communicator*>(communicator);
  Post post{.kind = 2};
  for (size_t rank = 0; rank < static_cast<size_t>(c->ranks); ++rank) {
    post.sent[rank] = part(piece, count);
    post.wanted[rank] = part(static_cast<char*>(whole) + rank * count, count);
  }
  return queue(c, post, stream);
}
int ncclBroadcast(const void* from, void* to, size_t count, int, int root, Handle communicator,
                  Handle stream) {
  auto* c = static_cast<Communicator*>(communicator);
  Post post{.kind = 3};
  if (c->rank == root) {
    for (int rank = 0; rank < c->ranks; ++rank)
      if (rank != root) post.sent[static_cast<size_t>(rank)] = part(from, count);
  } else {
    post.wanted[static_cast<size_t>(root)] = part(to, count);
  }
  return queue(c, post, stream);
}

}  // extern "C"
