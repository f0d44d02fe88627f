// Brings the ranks of a run together: rank 0 waits for the others, who introduce themselves and learn from it
// how they exchange.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <sstream>

#include "base/process.h"
#include "ranks/channel_transport.h"
#include "ranks/error_text.h"
#include "ranks/group_peer.h"
#include "ranks/host_memory.h"
#include "ranks/meeting.h"
#include "ranks/mpi_transport.h"

namespace plimsoll::ranks {
namespace {

/// Within which a rank that has connected introduces itself; who does not keeps the others waiting.
constexpr double kHelloSeconds = 10;

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
                   fmt::format("rank {} of {} has not connected within {:.0f} s", fmt::join(missing, ", "),
                               launch_.ranks, options_.start_seconds),
                   launch_.source, "see what it printed, and start all ranks together"};
    }
    PLIMSOLL_TRY(introduce(std::move(*accepted)));
  }
  std::string place;
  if (!is_one_memory()) {
    send_messages();
  } else {
    PLIMSOLL_ASSIGN(auto memory, HostMemory::create(launch_.ranks, [this] { return check_while_waiting(); }));
    place = memory->place();
    transport_ = std::move(memory);
  }
  for (const auto& peer : peers_) PLIMSOLL_TRY(peer->connection.send(MessageKind::kWelcome, place));
  return Ok{};
}

Status Group::introduce(Connection connection) {
  auto said = connection.wait_for_next(std::min(options_.start_seconds, kHelloSeconds));
  if (!said || said->kind != MessageKind::kHello) return Ok{};  // a stranger, or one who has gone already
  const Hello hello = Hello::parse(said->text);
  std::string wrong;
  if (hello.ranks != launch_.ranks)
    wrong = fmt::format("rank {} was started as one of {} ranks, rank 0 as one of {}", hello.rank,
                        hello.ranks, launch_.ranks);
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
  if (!is_one_memory()) {
    send_messages();
    return Ok{};
  }
  auto memory =
      HostMemory::open(launch_.rank, launch_.ranks, welcome.text, [this] { return check_while_waiting(); });
  if (!memory) return failure_of_first(*peers_.front()).value_or(memory.error());
  transport_ = std::move(*memory);
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

void Group::send_messages() {
  if (options_.mpi == nullptr)
    transport_ = std::make_unique<ChannelTransport>(*this);
  else
    transport_ = std::make_unique<MpiTransport>(launch_.rank, launch_.ranks, options_.mpi,
                                                [this] { return check_while_waiting(); });
}

}  // namespace plimsoll::ranks
