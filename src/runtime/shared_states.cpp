#include "runtime/shared_states.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/units.h"
#include "runtime/session.h"

namespace plimsoll::runtime {
namespace {

/// Of what rank 0 receives at once, of all ranks together.
constexpr int64_t kReceivedBytes = int64_t{1} << 20, kLeastBytes = int64_t{16} << 10;

int64_t buffer_bytes(int64_t ranks) { return std::max(kLeastBytes, round_up(kReceivedBytes / ranks, 64)); }

}  // namespace

OwnRange own_range(const passes::SessionPlan& plan, const passes::SharedState& state, int rank,
                   int64_t offset, int64_t bytes) {
  if (state.owner >= 0) return state.owner == rank ? OwnRange{0, offset, bytes} : OwnRange{};
  const int64_t piece = plan.states[static_cast<size_t>(state.state)].decl.type.bytes().count;
  const int64_t begin = std::max(offset, rank * piece), end = std::min(offset + bytes, (rank + 1) * piece);
  if (begin >= end) return {};
  return {begin - offset, begin - rank * piece, end - begin};
}

int64_t SharedStates::host_bytes(int64_t ranks) {
  return (1 + ranks) * buffer_bytes(ranks) + ranks * static_cast<int64_t>(sizeof(Request));
}

SharedStates::SharedStates(const Session& session, Communicator& communicator)
    : session_(session),
      communicator_(communicator),
      requests_(static_cast<size_t>(communicator.ranks())),
      own_(static_cast<size_t>(buffer_bytes(communicator.ranks()))),
      received_(communicator.rank() == 0 ? own_.size() * requests_.size() : 0) {}

/// Behind what is queued: ops of programs use the communicator too.
Result<SharedStates::Request> SharedStates::ask(Request own) {
  PLIMSOLL_TRY(session_.device().synchronize(ir::Queue::kCompute));
  PLIMSOLL_TRY(
      communicator_.gather(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(requests_))));
  return requests_.front();
}

/// To rank 0, whose piece of what the ranks exchange is all of it. All give as many bytes; what of them is
/// not a rank's own is undefined.
Status SharedStates::give(const Request& request) {
  const passes::SessionPlan& plan = session_.plan();
  const passes::SharedState& state = plan.shared[static_cast<size_t>(request.state)];
  const OwnRange own = own_range(plan, state, communicator_.rank(), request.offset, request.bytes);
  if (own.bytes > 0)
    PLIMSOLL_TRY(session_.read_pieces(state.name, request.offset + own.skipped, own.bytes,
                                      [&](std::span<const std::byte> piece, int64_t at) -> Status {
                                        std::memcpy(own_.data() + own.skipped + at, piece.data(),
                                                    piece.size());
                                        return Ok{};
                                      }));
  const auto bytes = static_cast<size_t>(request.bytes);
  const std::span received = std::span(received_).first(received_.empty() ? 0 : bytes * requests_.size());
  return communicator_.exchange(std::span(own_).first(bytes), request.bytes, received);
}

Status SharedStates::read(std::string_view state, int64_t offset, int64_t bytes, const TakePiece& take) {
  const passes::SessionPlan& plan = session_.plan();
  const passes::SharedState* found = plan.find_shared(state);
  PLIMSOLL_CHECK(found != nullptr && communicator_.rank() == 0, std::string(state));
  const int64_t index = found - plan.shared.data();
  for (int64_t at = 0; at < bytes;) {
    const Request request{index, offset + at, std::min(std::ssize(own_), bytes - at)};
    PLIMSOLL_TRY(ask(request));
    PLIMSOLL_TRY(give(request));
    for (int rank = 0; rank < communicator_.ranks(); ++rank) {
      const OwnRange part = own_range(plan, *found, rank, request.offset, request.bytes);
      if (part.bytes == 0) continue;
      const std::span<const std::byte> of_rank(received_.data() + rank * request.bytes + part.skipped,
                                               static_cast<size_t>(part.bytes));
      PLIMSOLL_TRY(take(of_rank, at + part.skipped));
    }
    at += request.bytes;
  }
  return Ok{};
}

Status SharedStates::end() {
  PLIMSOLL_ASSIGN([[maybe_unused]] const Request none, ask({}));
  return Ok{};
}

Status SharedStates::serve() {
  for (;;) {
    PLIMSOLL_ASSIGN(const Request request, ask({}));
    if (request.state < 0) return Ok{};
    PLIMSOLL_TRY(give(request));
  }
}

}  // namespace plimsoll::runtime
