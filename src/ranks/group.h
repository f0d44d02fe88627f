// The ranks of a run as one of them sees them: who they are, what they tell each other between steps, and
// whether they live. A star: rank 0 has a connection to each, the others to rank 0 alone. A thread of its own
// reads the connections and sends heartbeats, so a rank that ends, stops or hangs is found while the others
// compute.
//
//   rank 0 ◄── text of each ── collect()        rank 0 ── text to all ──► share()
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/thread.h"
#include "ranks/launch.h"
#include "ranks/message.h"
#include "ranks/mpi_calls.h"
#include "ranks/transport.h"

namespace plimsoll::ranks {

struct GroupOptions {
  double start_seconds = 120;    ///< within which all ranks must have come
  double deadline_seconds = 60;  ///< without a sign of life, or without progress within a step
  std::string build = {};        ///< the same on all ranks
  /// The functions of MPI by which ranks exchange bytes. Null: through the memory of their machine, or, with
  /// `over_channel`, over the connections of this group.
  std::shared_ptr<MpiCalls> mpi = {};
  bool over_channel = false;
  /// Ends the process where a rank is lost and this one is not on its way out within a second. Called on the
  /// group's thread. Null: nothing ends it.
  std::function<void(const Error& error)> end_process = {};
};

/// What a rank does, as its heartbeat tells.
enum class Phase : int { kPreparing, kComputing, kWaiting, kOther };

/// An error that rank 0 reports for all has no text on the others: is_told().
inline bool is_told(const Error& error) { return error.what.empty(); }

class Group {
 public:
  /// Meets the others. Errors: kIo where one does not come, named; kBadData where two are of one number, or
  /// of another job or build.
  static Result<std::unique_ptr<Group>> join(const Launch& launch, GroupOptions options);
  /// Ends without waiting for the others.
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  [[nodiscard]] int rank() const { return launch_.rank; }
  [[nodiscard]] int ranks() const { return launch_.ranks; }
  [[nodiscard]] const Launch& launch() const { return launch_; }

  /// Begins to watch the others and to tell them that this rank lives. Ranks other than the first do so from
  /// the start; rank 0 once no child process of its own is to come, which must be forked while no thread
  /// runs. Errors: kIo.
  Status start_watching();
  /// Connects the ranks for the exchange of bytes; call on all at the same place, behind the last child
  /// process. Errors: kIo, of other ranks; kInvalidArgument where MPI counts other ranks.
  Status open_communicator();
  /// The longest step that is planned: what is taken for a rank that hangs follows from it.
  void expect_step(double seconds);

  /// On rank 0 the text of each rank, its own first, once all are there; on the others an empty list, at
  /// once. Errors: kIo, or what another rank has failed with.
  Result<std::vector<std::string>> collect(std::string_view text);
  /// Rank 0's text, on all ranks. Errors: the same.
  Result<std::string> share(std::string_view text);
  /// What heartbeats tell from here on.
  void note_progress(int64_t step, Phase phase);
  /// Stands behind the error of a rank that is lost: "last checkpoint: step 800".
  void set_note(std::string note);

  /// Tells all that this rank ends with that error. What it is to return: on rank 0, and where rank 0 is
  /// gone, the error itself, else one that is_told.
  Error fail(const Error& error);
  /// Ends in order.
  void leave();
  /// What another rank has failed with, or that it is lost.
  [[nodiscard]] std::optional<Error> failure() const;
  [[nodiscard]] bool has_failed() const { return failed_.load(std::memory_order_acquire); }

  /// Between the ranks. Lives as long as the group.
  [[nodiscard]] runtime::Communicator& communicator();
  /// Seconds that this rank has waited for others in it since it was last asked.
  double take_wait_seconds();

 private:
  struct Peer;
  Group(const Launch& launch, GroupOptions options);
  Status meet_all();
  Status introduce(Connection connection);
  Status check_while_waiting();
  Status meet_first();
  std::optional<Error> failure_of_first(Peer& first);
  [[nodiscard]] bool is_one_memory() const { return options_.mpi == nullptr && !options_.over_channel; }
  void send_messages();
  void end();
  void watch();
  void take_messages(Peer& peer);
  void take(Peer& peer, const Message& message);
  void lose(Peer& peer, std::string_view how);
  void look_for_silence();
  void send_beats();
  void set_failure(Error error);
  [[nodiscard]] Peer* peer_of(int rank);
  [[nodiscard]] std::string name_of(const Peer& peer) const;
  Result<std::string> next_text(Peer& peer);
  Status send(Peer& peer, MessageKind kind, std::string_view text);

  Launch launch_;
  GroupOptions options_;
  std::vector<std::unique_ptr<Peer>> peers_;  ///< on rank 0 all others, else rank 0
  std::unique_ptr<Transport> transport_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Error> failure_;
  std::string note_;
  int64_t step_ = 0, progress_ = 0;
  Phase phase_ = Phase::kPreparing;
  double failed_at_ = 0;
  std::atomic<bool> failed_{false}, leaving_{false};
  std::atomic<double> deadline_{0};
  Thread watch_;
};

}  // namespace plimsoll::ranks
