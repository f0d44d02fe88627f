// States of which each rank has a piece, read whole on rank 0. While it reads, the other ranks serve: rank 0
// says what it wants next, and each gives what it has of that.
//
//   rank 0   read ─► range ── gather ──► every rank ── exchange ──► rank 0 takes each owner's part
//            end  ─► no range: the others stop serving
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "passes/session_plan.h"
#include "runtime/communicator.h"
#include "runtime/transfer.h"

namespace plimsoll::runtime {

class Session;

/// What a rank has of a range of bytes of a state that ranks share.
struct OwnRange {
  int64_t skipped = 0;  ///< bytes of the range before it
  int64_t offset = 0;   ///< in what the rank keeps
  int64_t bytes = 0;
};
/// Of the range [offset, offset + bytes) of the state.
OwnRange own_range(const passes::SessionPlan& plan, const passes::SharedState& state, int rank,
                   int64_t offset, int64_t bytes);

/// Threads: that of the communicator.
class SharedStates {
 public:
  /// Host memory that reading takes on rank 0, which takes most.
  static int64_t host_bytes(int64_t ranks);

  /// Both outlive it. Takes its buffers.
  SharedStates(const Session& session, Communicator& communicator);

  /// On rank 0, while the others serve: bytes of the whole tensor, in order. Errors: of the communicator, of
  /// the device, or the first that `take` returns.
  Status read(std::string_view state, int64_t offset, int64_t bytes, const TakePiece& take);
  /// On rank 0: lets the others go.
  Status end();
  /// On the others, until rank 0 ends. Errors: of the communicator, of the device.
  Status serve();

 private:
  /// What rank 0 asks for; no state: it ends.
  struct Request {
    int64_t state = -1;  ///< of SessionPlan::shared
    int64_t offset = 0, bytes = 0;
  };
  Result<Request> ask(Request own);
  Status give(const Request& request);

  const Session& session_;
  Communicator& communicator_;
  std::vector<Request> requests_;  ///< of each rank; that of rank 0 counts
  std::vector<std::byte> own_, received_;
};

}  // namespace plimsoll::runtime
