#include "ranks/mpi_transport.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "base/process.h"
#include "ranks/pieces.h"

namespace plimsoll::ranks {
namespace {

/// Of a message: a library's buffers are small against it, and one that has arrived shows that data flows.
constexpr int64_t kChunkBytes = int64_t{1} << 20;
/// Of one direction under way at once.
constexpr int kWindow = kMpiSlots / 2;
/// Libraries move bytes only while they are called. Who finds nothing done calls again at once so many times,
/// then sleeps twice as long each time: a rank that waits leaves its core to one that computes.
constexpr int kCallsAtOnce = 64;
constexpr int kMicrosecondsFirst = 20, kMicrosecondsMost = 1000;
/// Between two looks at whether the others live.
constexpr double kCheckSeconds = 0.02;

Error not_the_launchers(int rank, int ranks, int own_rank, int own_ranks) {
  return {
      ErrorCode::kInvalidArgument,
      fmt::format("MPI counts this process as rank {} of {}, its launcher as rank {} of {}: the library is "
                  "not of the launcher's MPI",
                  rank, ranks, own_rank, own_ranks),
      "distributed.library", "set it to the library of the launcher's MPI; plimsoll doctor lists them"};
}

}  // namespace

/// The chunks of one direction, in order: step by step, from each piece's begin.
template <typename Begin>
struct MpiTransport::Lane {
  int first_slot;
  const Begin& begin;  ///< begin(step, offset, slot): the bytes left from there on; 0: begins nothing
  int step = 1;
  int64_t at = 0;
  int begun = 0, finished = 0;
};

MpiTransport::MpiTransport(int rank, int ranks, std::shared_ptr<MpiCalls> calls,
                           std::function<Status()> check)
    : rank_(rank), ranks_(ranks), calls_(std::move(calls)), check_(std::move(check)) {}

Status MpiTransport::open() {
  PLIMSOLL_TRY(calls_->init());
  is_open_ = true;
  if (calls_->rank() != rank_ || calls_->ranks() != ranks_)
    return not_the_launchers(calls_->rank(), calls_->ranks(), rank_, ranks_);
  return Ok{};
}

void MpiTransport::close() {
  if (is_open_) calls_->finalize();
  is_open_ = false;
}

/// Begins what the window has room for and takes what is done; whether anything was.
template <typename Begin>
Result<bool> MpiTransport::advance(Lane<Begin>& lane) {
  const auto slot_of = [&](int number) { return lane.first_slot + number % kWindow; };
  while (lane.step < ranks_ && lane.begun - lane.finished < kWindow) {
    PLIMSOLL_ASSIGN(const int64_t left, lane.begin(lane.step, lane.at, slot_of(lane.begun)));
    if (left > 0) ++lane.begun;
    lane.at += kChunkBytes;
    if (left > kChunkBytes) continue;
    ++lane.step;
    lane.at = 0;
  }
  bool moved = false;
  while (lane.finished < lane.begun) {
    PLIMSOLL_ASSIGN(const bool done, calls_->is_done(slot_of(lane.finished)));
    if (!done) break;
    ++lane.finished;
    moved = true;
  }
  return moved;
}

/// Nothing was done `idle` times in a row.
Status MpiTransport::pause(int idle, double& asked_at) {
  if (idle <= kCallsAtOnce) {
    ::sched_yield();
    return Ok{};
  }
  const int doublings = std::min(idle - kCallsAtOnce - 1, 6);
  std::this_thread::sleep_for(
      std::chrono::microseconds(std::min(kMicrosecondsFirst << doublings, kMicrosecondsMost)));
  const double now = now_seconds();
  if (now - asked_at < kCheckSeconds) return Ok{};
  asked_at = now;
  return check_();
}

/// A rank that has just ended is named by who watches it.
Status MpiTransport::why_failed(const Error& error) {
  for (const double end = now_seconds() + kNamedSeconds; now_seconds() < end;) {
    PLIMSOLL_TRY(check_());
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return error;
}

/// Sends `piece_to(rank)` to each other rank and receives from each into `place_of(rank)`.
template <typename PieceTo, typename PlaceOf>
Status MpiTransport::move(const PieceTo& piece_to, const PlaceOf& place_of) {
  const WaitClock::Wait wait(waits_);
  const auto send = [&](int step, int64_t at, int slot) -> Result<int64_t> {
    const int to = (rank_ + step) % ranks_;
    const std::span<const std::byte> piece = piece_to(to);
    if (at < std::ssize(piece)) PLIMSOLL_TRY(calls_->send(part(piece, at, kChunkBytes), to, slot));
    return std::ssize(piece) - at;
  };
  const auto receive = [&](int step, int64_t at, int slot) -> Result<int64_t> {
    const int from = (rank_ + ranks_ - step) % ranks_;
    const std::span<std::byte> place = place_of(from);
    if (at < std::ssize(place)) PLIMSOLL_TRY(calls_->receive(part(place, at, kChunkBytes), from, slot));
    return std::ssize(place) - at;
  };
  Lane<decltype(send)> out{0, send};
  Lane<decltype(receive)> in{kWindow, receive};
  const auto has_all = [&](const auto& lane) { return lane.step == ranks_ && lane.finished == lane.begun; };
  double asked_at = now_seconds();
  for (int idle = 0; !has_all(out) || !has_all(in);) {
    const Result<bool> sent = advance(out);
    const Result<bool> got = sent ? advance(in) : sent;
    if (!got) return why_failed(got.error());
    idle = *sent || *got ? 0 : idle + 1;
    if (idle > 0) PLIMSOLL_TRY(pause(idle, asked_at));
  }
  return Ok{};
}

Status MpiTransport::exchange(std::span<const std::byte> own, int64_t piece_bytes,
                              std::span<std::byte> received) {
  const std::span<const std::byte> mine = part(own, rank_ * piece_bytes, piece_bytes);
  for (int from = 0; from < ranks_; ++from) {
    const auto rest = part(received, from * piece_bytes + std::ssize(mine), piece_bytes - std::ssize(mine));
    if (!rest.empty()) std::memset(rest.data(), 0, rest.size());
  }
  const auto place_of = [&](int from) { return part(received, from * piece_bytes, std::ssize(mine)); };
  std::ranges::copy(mine, place_of(rank_).begin());
  return move([&](int to) { return part(own, to * piece_bytes, piece_bytes); }, place_of);
}

Status MpiTransport::gather(std::span<const std::byte> piece, std::span<std::byte> whole) {
  const auto place_of = [&](int from) { return part(whole, from * std::ssize(piece), std::ssize(piece)); };
  const std::span<std::byte> mine = place_of(rank_);
  std::ranges::copy(piece.first(mine.size()), mine.begin());
  return move([&](int /*to*/) { return piece.first(mine.size()); }, place_of);
}

Status MpiTransport::broadcast(int root, std::span<std::byte> bytes) {
  const std::span<std::byte> none = bytes.first(0);
  return move([&](int /*to*/) -> std::span<const std::byte> { return rank_ == root ? bytes : none; },
              [&](int from) { return from == root ? bytes : none; });
}

}  // namespace plimsoll::ranks
