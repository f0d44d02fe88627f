#include "backends/cuda/nccl_collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/check.h"
#include "base/process.h"

namespace plimsoll::cuda {
namespace {

/// Within which whoever watches the ranks has named one that has ended, and ended this process.
constexpr double kNamedSeconds = 1.5;
/// That the end of a run waits for the library.
constexpr double kAbortSeconds = 2;

void sleep_a_little() { std::this_thread::sleep_for(std::chrono::milliseconds(10)); }

}  // namespace

/// Every rank has told of its last step before one ends in order, so no message is under way. ncclCommDestroy
/// and ncclCommFinalize would wait for the other ranks.
NcclCollectives::~NcclCollectives() {
  abort();
  if (abort_ == nullptr) return;
  for (const double end = now_seconds() + kAbortSeconds; !abort_->is_done && now_seconds() < end;)
    sleep_a_little();
  if (!abort_->is_done) (void)new std::shared_ptr<Abort>(abort_);  // its thread ends with the process
}

void NcclCollectives::abort() {
  if (communicator_ == nullptr || abort_ != nullptr) return;
  abort_ = std::make_shared<Abort>();
  auto thread =
      Thread::start("ending NCCL", [state = abort_.get(), end = nccl_.abort, communicator = communicator_] {
        (void)end(communicator);
        state->is_done = true;
      });
  if (thread)
    abort_->thread = std::move(*thread);
  else
    abort_->is_done = true;  // the library ends with the process
}

Status NcclCollectives::checked(int error, const char* what) const {
  if (error == 0) return Ok{};
  const char* more = nccl_.last_error(communicator_);
  return Error{ErrorCode::kIo,
               fmt::format("NCCL {}: {}{}{}", nccl_.version, nccl_.error_text(error),
                           more == nullptr || *more == '\0' ? "" : ": ", more == nullptr ? "" : more),
               what,
               "NCCL_DEBUG=WARN in the environment says more; distributed.transport=shm does without it"};
}

Status NcclCollectives::connect() {
  NcclId id = {};
  if (rank() == 0) PLIMSOLL_TRY(checked(nccl_.make_id(&id), "ncclGetUniqueId"));
  PLIMSOLL_TRY(host_.broadcast(0, std::as_writable_bytes(std::span(id.bytes))));
  NcclConfig config;
  return checked(nccl_.connect(&communicator_, ranks(), id, rank(), &config), "ncclCommInitRankConfig");
}

Status NcclCollectives::status() const {
  const std::lock_guard lock(mutex_);
  if (failure_) return *failure_;
  return Ok{};
}

/// What waits on the card for other ranks ends, and what it has received is undefined.
Status NcclCollectives::fail(Error error) {
  abort();
  const std::lock_guard lock(mutex_);
  if (!failure_) failure_ = std::move(error);
  return *failure_;
}

/// A rank that has ended is named by who watches the ranks and ends this process; a network is not.
Status NcclCollectives::look() {
  PLIMSOLL_TRY(status());
  int error = 0;
  Status asked = checked(nccl_.async_error(communicator_, &error), "ncclCommGetAsyncError");
  if (asked && (error == 0 || error == kNcclInProgress)) return Ok{};
  for (const double end = now_seconds() + kNamedSeconds; now_seconds() < end;) sleep_a_little();
  return fail((asked ? checked(error, "exchange between ranks") : std::move(asked)).error());
}

Status NcclCollectives::send(const std::byte* from, int64_t bytes, int to, Stream& stream) {
  if (bytes == 0) return Ok{};
  return checked(nccl_.send(from, static_cast<size_t>(bytes), kNcclBytes, to, communicator_, stream.handle()),
                 "ncclSend");
}

Status NcclCollectives::receive(std::byte* to, int64_t bytes, int from, Stream& stream) {
  if (bytes == 0) return Ok{};
  return checked(
      nccl_.receive(to, static_cast<size_t>(bytes), kNcclBytes, from, communicator_, stream.handle()),
      "ncclRecv");
}

/// `queue(to, from)` queues a message to a rank and one of another, for each pair.
template <typename Queue>
Status NcclCollectives::grouped(const Queue& queue) {
  PLIMSOLL_CHECK(communicator_ != nullptr, "ranks are not connected");
  PLIMSOLL_TRY(checked(nccl_.group_start(), "ncclGroupStart"));
  Status queued = Ok{};
  for (int step = 1; step < ranks() && queued; ++step)  // not all begin with rank 0
    queued = queue((rank() + step) % ranks(), (rank() + ranks() - step) % ranks());
  Status ended = checked(nccl_.group_end(), "ncclGroupEnd");
  return queued ? ended : queued;
}

Status NcclCollectives::exchange(const std::byte* own, int64_t own_bytes, int64_t piece_bytes,
                                 std::byte* received, Stream& stream) {
  const int64_t begin = rank() * piece_bytes;
  const int64_t mine = part_bytes(begin, piece_bytes, own_bytes), rest = piece_bytes - mine;
  for (int64_t from = 0; from < ranks() && rest > 0; ++from)
    PLIMSOLL_TRY(stream.fill(received + (from + 1) * piece_bytes - rest, rest, 0));
  PLIMSOLL_TRY(stream.copy(received + begin, own + begin, mine));
  return grouped([&](int to, int from) -> Status {
    PLIMSOLL_TRY(
        send(own + to * piece_bytes, part_bytes(to * piece_bytes, piece_bytes, own_bytes), to, stream));
    return receive(received + from * piece_bytes, mine, from, stream);
  });
}

/// The library's all-gather wants room for whole pieces of all ranks.
Status NcclCollectives::gather(const std::byte* piece, int64_t piece_bytes, std::byte* whole,
                               int64_t whole_bytes, Stream& stream) {
  PLIMSOLL_CHECK(communicator_ != nullptr, "ranks are not connected");
  if (whole_bytes == ranks() * piece_bytes)
    return checked(nccl_.all_gather(piece, whole, static_cast<size_t>(piece_bytes), kNcclBytes, communicator_,
                                    stream.handle()),
                   "ncclAllGather");
  const int64_t begin = rank() * piece_bytes;
  const int64_t mine = part_bytes(begin, piece_bytes, whole_bytes);
  PLIMSOLL_TRY(stream.copy(whole + begin, piece, mine));
  return grouped([&](int to, int from) -> Status {
    PLIMSOLL_TRY(send(piece, mine, to, stream));
    return receive(whole + from * piece_bytes, part_bytes(from * piece_bytes, piece_bytes, whole_bytes), from,
                   stream);
  });
}

Status NcclCollectives::broadcast(int root, std::byte* data, int64_t bytes, Stream& stream) {
  PLIMSOLL_CHECK(communicator_ != nullptr, "ranks are not connected");
  return checked(nccl_.broadcast(data, data, static_cast<size_t>(bytes), kNcclBytes, root, communicator_,
                                 stream.handle()),
                 "ncclBroadcast");
}

}  // namespace plimsoll::cuda
