#include "ranks/group.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <sstream>

#include "base/process.h"
#include "ranks/error_text.h"
#include "ranks/group_peer.h"

namespace plimsoll::ranks {
namespace {

constexpr int kPollMilliseconds = 100;
constexpr double kBeatSeconds = 0.5;
/// A rank that takes so many times a step's planned time for one is taken to hang.
constexpr double kStepsOfDeadline = 20;

}  // namespace

Group::Group(const Launch& launch, GroupOptions options)
    : launch_(launch), options_(std::move(options)), deadline_(options_.deadline_seconds) {}

Group::~Group() { end(); }

/// Who waits for others does not hang.
Status Group::check_while_waiting() {
  const std::lock_guard lock(mutex_);
  ++progress_;
  if (failure_) return *failure_;
  return Ok{};
}

Group::Peer* Group::peer_of(int rank) {
  for (const auto& peer : peers_)
    if (peer->rank == rank) return peer.get();
  return nullptr;
}

// ---- the watch

Status Group::open_communicator() { return transport_->open(); }

void Group::expect_step(double seconds) {
  if (options_.deadline_seconds >= GroupOptions().deadline_seconds)
    deadline_ = std::max(options_.deadline_seconds, kStepsOfDeadline * seconds);
}

Status Group::start_watching() {
  if (ranks() == 1 || watch_.joinable()) return Ok{};
  PLIMSOLL_ASSIGN(watch_, Thread::start("watching the ranks", [this] { watch(); }));
  return Ok{};
}

void Group::watch() {
  double beat_at = 0;
  for (const auto& peer : peers_) {
    if (rank() == 0) peer->heard_at = now_seconds();  // the others give signs of life from the start
    // What came with the introduction.
    while (const std::optional<Message> message = peer->connection.next()) take(*peer, *message);
  }
  while (!leaving_) {
    std::vector<pollfd> readable;
    for (const auto& peer : peers_)
      readable.push_back({peer->connection.is_open() ? peer->connection.fd() : -1, POLLIN, 0});
    ::poll(readable.data(), readable.size(), kPollMilliseconds);
    for (size_t i = 0; i < peers_.size(); ++i)
      if (readable[i].revents != 0) take_messages(*peers_[i]);
    if (const double now = now_seconds(); now - beat_at > kBeatSeconds) {
      beat_at = now;
      send_beats();
    }
    look_for_silence();
    if (has_failed() && now_seconds() - failed_at_ > kLeaveSeconds && options_.end_process && !leaving_)
      options_.end_process(*failure());
  }
}

void Group::take_messages(Peer& peer) {
  const bool open = peer.connection.receive();
  while (const std::optional<Message> message = peer.connection.next()) take(peer, *message);
  if (open) return;
  {
    const std::lock_guard lock(peer.sending);
    peer.connection.close();
  }
  if (!peer.has_left) lose(peer, "ended");
}

void Group::take(Peer& peer, const Message& message) {
  const std::lock_guard lock(mutex_);
  peer.heard_at = now_seconds();
  if (message.kind == MessageKind::kText) {
    peer.texts.push_back(message.text);
    changed_.notify_all();
  } else if (message.kind == MessageKind::kBye) {
    peer.has_left = true;
    changed_.notify_all();
  } else if (message.kind == MessageKind::kBeat) {
    int phase = 0;
    int64_t progress = 0;
    std::istringstream(message.text) >> peer.step >> phase >> progress;
    if (progress != peer.progress) peer.moved_at = peer.heard_at;
    peer.phase = static_cast<Phase>(phase);
    peer.progress = progress;
  } else if (message.kind == MessageKind::kFailed) {
    peer.has_left = true;
    Error error = parse_error(message.text);
    if (rank() == 0) error = std::move(error).at(fmt::format("rank {}", peer.rank));
    set_failure(std::move(error));
  }
}

void Group::lose(Peer& peer, std::string_view how) {
  const std::lock_guard lock(mutex_);
  peer.has_left = true;
  // Of those that rank 0 leaves behind one tells.
  const bool tells = rank() == 0 || rank() == 1;
  set_failure(tells ? Error{ErrorCode::kIo,
                            fmt::format("{} {} in step {}{}", name_of(peer), how, std::max(peer.step, step_),
                                        note_.empty() ? "" : "; " + note_),
                            launch_.source, "run the same command again to resume"}
                    : Error{ErrorCode::kIo, ""});
}

std::string Group::name_of(const Peer& peer) const {
  return peer.pid > 0 ? fmt::format("rank {} (host {}, pid {})", peer.rank, peer.host, peer.pid)
                      : fmt::format("rank {} (host {})", peer.rank, peer.host);
}

/// With the mutex held. The first one counts; rank 0 passes it on.
void Group::set_failure(Error error) {
  if (failure_ || leaving_) return;
  if (rank() == 0)
    for (const auto& peer : peers_)
      if (!peer->has_left) (void)send(*peer, MessageKind::kFailed, error_text({error.code, ""}));
  failure_ = std::move(error);
  failed_at_ = now_seconds();
  failed_.store(true, std::memory_order_release);
  changed_.notify_all();
}

void Group::look_for_silence() {
  const double now = now_seconds(), deadline = deadline_;
  for (const auto& peer : peers_) {
    if (peer->has_left || peer->heard_at == 0) continue;  // rank 0 may still be making ready
    // By its own signs of life: a rank that gives none has not told whether it moves.
    const bool hangs = peer->phase == Phase::kComputing && peer->heard_at - peer->moved_at > deadline;
    if (now - peer->heard_at > deadline)
      lose(*peer, fmt::format("gave no sign of life for {:.0f} s", deadline));
    else if (rank() == 0 && hangs)
      lose(*peer, fmt::format("made no progress for {:.0f} s", deadline));
  }
}

void Group::send_beats() {
  std::string text;
  {
    const std::lock_guard lock(mutex_);
    text = fmt::format("{} {} {}", step_, static_cast<int>(phase_), progress_);
  }
  for (const auto& peer : peers_)
    if (!peer->has_left) (void)send(*peer, MessageKind::kBeat, text);
}

// ---- what the run asks for

Status Group::send(Peer& peer, MessageKind kind, std::string_view text) {
  const std::lock_guard lock(peer.sending);
  if (!peer.connection.is_open()) return Error{ErrorCode::kIo, "the other rank has gone"};
  return peer.connection.send(kind, text);
}

Result<std::string> Group::next_text(Peer& peer) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !peer.texts.empty() || failure_ || peer.has_left; });
  if (!peer.texts.empty()) {
    std::string text = std::move(peer.texts.front());
    peer.texts.pop_front();
    return text;
  }
  if (failure_) return *failure_;
  return Error{ErrorCode::kIo, name_of(peer) + " ended before the others", launch_.source};
}

Result<std::vector<std::string>> Group::collect(std::string_view text) {
  if (auto failed = failure()) return *failed;
  std::vector<std::string> texts;
  if (rank() != 0) {
    (void)send(*peers_.front(), MessageKind::kText, text);
    return texts;
  }
  texts.emplace_back(text);
  for (const auto& peer : peers_) {
    PLIMSOLL_ASSIGN(std::string next, next_text(*peer));
    texts.push_back(std::move(next));
  }
  return texts;
}

Result<std::string> Group::share(std::string_view text) {
  if (auto failed = failure()) return *failed;
  if (rank() != 0) return next_text(*peers_.front());
  for (const auto& peer : peers_) (void)send(*peer, MessageKind::kText, text);
  return std::string(text);
}

void Group::note_progress(int64_t step, Phase phase) {
  const std::lock_guard lock(mutex_);
  step_ = step;
  phase_ = phase;
  ++progress_;
}

void Group::set_note(std::string note) {
  const std::lock_guard lock(mutex_);
  note_ = std::move(note);
}

Error Group::fail(const Error& error) {
  const auto before = failure();
  if (before) {
    end();
    return *before;
  }
  bool told = rank() != 0;
  for (const auto& peer : peers_)
    if (!send(*peer, MessageKind::kFailed, error_text(rank() == 0 ? Error{error.code, ""} : error)))
      told = false;
  if (rank() != 0 && !told) {
    // Rank 0 has gone. The watch finds out whether it has told of an error before.
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::duration<double>(kLeaveSeconds),
                      [&] { return failure_.has_value(); });
    told = failure_ && is_told(*failure_);
  }
  end();
  return told ? Error{error.code, ""} : error;
}

void Group::leave() {
  // The others are watched meanwhile: where one is lost, the library may wait for it in vain.
  if (!leaving_ && !has_failed() && transport_ != nullptr) transport_->close();
  end();
}

void Group::end() {
  if (leaving_.exchange(true)) return;
  for (const auto& peer : peers_) (void)send(*peer, MessageKind::kBye, "");
  watch_.join();
}

std::optional<Error> Group::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

runtime::Communicator& Group::communicator() { return *transport_; }
double Group::take_wait_seconds() { return transport_->take_wait_seconds(); }

}  // namespace plimsoll::ranks
