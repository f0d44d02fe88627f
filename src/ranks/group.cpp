#include "ranks/group.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <sstream>

#include "base/check.h"
#include "base/process.h"
#include "ranks/error_text.h"
#include "ranks/host_memory.h"
#include "ranks/meeting.h"

namespace plimsoll::ranks {
namespace {

constexpr int kPollMilliseconds = 100;
constexpr double kBeatSeconds = 0.5;
/// Within which a rank that has connected introduces itself; who does not keeps the others waiting.
constexpr double kHelloSeconds = 10;
/// That a process has to end by itself behind a lost rank: together with finding it out, within two.
constexpr double kLeaveSeconds = 1.0;
/// A rank that takes so many times a step's planned time for one is taken to hang.
constexpr double kStepsOfDeadline = 20;

std::string host_name() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "?";
}

struct Hello {
  int rank = -1, ranks = 0;
  int64_t pid = 0;
  std::string host, build;

  [[nodiscard]] std::string text() const {
    return fmt::format("{} {} {} {} {}", rank, ranks, pid, host, build);
  }
  static Hello parse(const std::string& text) {
    Hello hello;
    std::istringstream in(text);
    in >> hello.rank >> hello.ranks >> hello.pid >> hello.host >> hello.build;
    return hello;
  }
};

}  // namespace

/// Another rank; fields behind `connection` are the watch's, or guarded by the group's mutex.
struct Group::Peer {
  int rank = 0;
  int64_t pid = 0;
  std::string host;
  Connection connection;
  std::mutex sending;
  bool has_left = false;
  std::deque<std::string> texts;
  double heard_at = 0, moved_at = 0;  ///< its last message; the last one with other progress
  int64_t step = 0, progress = -1;
  Phase phase = Phase::kPreparing;
};

Group::Group(const Launch& launch, GroupOptions options)
    : launch_(launch), options_(std::move(options)), deadline_(options_.deadline_seconds) {}

Group::~Group() { leave(); }

// ---- meeting

Result<std::unique_ptr<Group>> Group::join(const Launch& launch, GroupOptions options) {
  std::unique_ptr<Group> group(new Group(launch, std::move(options)));
  PLIMSOLL_TRY(launch.rank == 0 ? group->meet_all() : group->meet_first());
  if (launch.rank != 0) PLIMSOLL_TRY(group->start_watching());
  return group;
}

Status Group::meet_all() {
  PLIMSOLL_ASSIGN(const Connection listener, listen_for_ranks(launch_));
  const double end = now_seconds() + options_.start_seconds;
  while (std::ssize(peers_) + 1 < launch_.ranks) {
    PLIMSOLL_ASSIGN(std::optional<Connection> accepted,
                    accept_rank(listener, std::max(0.0, end - now_seconds())));
    if (!accepted) {
      std::vector<int> missing;
      for (int rank = 1; rank < launch_.ranks; ++rank)
        if (peer_of(rank) == nullptr) missing.push_back(rank);
      return Error{ErrorCode::kIo,
                   fmt::format("rank {} of {} has not come within {:.0f} s", fmt::join(missing, ", "),
                               launch_.ranks, options_.start_seconds),
                   launch_.source, "see what it printed, and start all ranks together"};
    }
    PLIMSOLL_TRY(introduce(std::move(*accepted)));
  }
  PLIMSOLL_ASSIGN(memory_, HostMemory::create(launch_.ranks, [this] { return check_while_waiting(); }));
  for (const auto& peer : peers_)
    PLIMSOLL_TRY(peer->connection.send(MessageKind::kWelcome, memory_->place()));
  return Ok{};
}

Status Group::introduce(Connection connection) {
  auto said = connection.wait_for_next(std::min(options_.start_seconds, kHelloSeconds));
  if (!said || said->kind != MessageKind::kHello) return Ok{};  // a stranger, or one who has gone already
  const Hello hello = Hello::parse(said->text);
  std::string wrong;
  if (hello.ranks != launch_.ranks)
    wrong = fmt::format("rank {} is of {} ranks, rank 0 of {}", hello.rank, hello.ranks, launch_.ranks);
  else if (hello.rank <= 0 || hello.rank >= launch_.ranks || peer_of(hello.rank) != nullptr)
    wrong = fmt::format("two processes are rank {}", hello.rank);
  else if (hello.build != options_.build)
    wrong = fmt::format("rank {} runs build {}, rank 0 build {}", hello.rank, hello.build, options_.build);
  if (!wrong.empty()) {
    const Error error{ErrorCode::kBadData, wrong, launch_.source, "start all ranks with one launcher"};
    (void)connection.send(MessageKind::kFailed, error_text({error.code, ""}));
    for (const auto& peer : peers_)
      (void)peer->connection.send(MessageKind::kFailed, error_text({error.code, ""}));
    return error;
  }
  auto peer = std::make_unique<Peer>();
  peer->rank = hello.rank;
  peer->pid = hello.pid;
  peer->host = hello.host;
  peer->connection = std::move(connection);
  peers_.push_back(std::move(peer));
  std::ranges::sort(peers_, {}, [](const auto& p) { return p->rank; });
  return Ok{};
}

Status Group::meet_first() {
  auto first = std::make_unique<Peer>();
  PLIMSOLL_ASSIGN(first->connection, connect_to_first(launch_, options_.start_seconds));
  const Hello hello{launch_.rank, launch_.ranks, ::getpid(), host_name(), options_.build};
  PLIMSOLL_TRY(first->connection.send(MessageKind::kHello, hello.text()));
  PLIMSOLL_ASSIGN(const Message welcome, first->connection.wait_for_next(options_.start_seconds));
  if (welcome.kind == MessageKind::kFailed) return parse_error(welcome.text);
  first->host = hello.host;
  peers_.push_back(std::move(first));
  auto memory =
      HostMemory::open(launch_.rank, launch_.ranks, welcome.text, [this] { return check_while_waiting(); });
  if (!memory) return failure_of_first(*peers_.front()).value_or(memory.error());
  memory_ = std::move(*memory);
  return Ok{};
}

/// What rank 0 has told of before it ended; nothing: it still runs, or ended without a word.
std::optional<Error> Group::failure_of_first(Peer& first) {
  const double end = now_seconds() + kLeaveSeconds;
  while (now_seconds() < end) {
    auto message = first.connection.wait_for_next(end - now_seconds());
    if (!message) return std::nullopt;
    if (message->kind == MessageKind::kFailed) return parse_error(message->text);
  }
  return std::nullopt;
}

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

Status Group::open_communicator() {
  const char* staged = std::getenv("PLIMSOLL_RANKS_STAGED");  // for tests of what a container refuses
  return memory_->find_way(staged != nullptr && *staged == '1');
}

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
    leave();
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
  leave();
  return told ? Error{error.code, ""} : error;
}

void Group::leave() {
  if (leaving_.exchange(true)) return;
  for (const auto& peer : peers_) (void)send(*peer, MessageKind::kBye, "");
  watch_.join();
}

std::optional<Error> Group::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

runtime::Communicator& Group::communicator() { return *memory_; }
double Group::take_wait_seconds() { return memory_->take_wait_seconds(); }

}  // namespace plimsoll::ranks
