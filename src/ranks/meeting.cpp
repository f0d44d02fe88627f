#include "ranks/meeting.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "base/process.h"

namespace plimsoll::ranks {
namespace {

/// Within which a machine that has gone without a word is found out: what was sent to it is not acknowledged.
constexpr unsigned kUnreachableMilliseconds = 15'000;
constexpr auto kRetry = std::chrono::milliseconds(20);

struct Address {
  sockaddr_storage bytes = {};
  socklen_t size = 0;
  int family = AF_UNIX;
};

Error cannot_meet(std::string_view what) {
  return {ErrorCode::kIo, fmt::format("{}: {}", what, std::strerror(errno)), "connection between ranks",
          "distributed.address is an address of rank 0's machine and a free port of it"};
}

/// An abstract name: the first byte is 0.
Result<Address> address_of_job(const std::string& job) {
  Address address;
  auto& place = reinterpret_cast<sockaddr_un&>(address.bytes);
  const std::string name = fmt::format("plimsoll.{}.{}", ::getuid(), job);
  if (name.size() + 1 > sizeof place.sun_path)
    return Error{ErrorCode::kInvalidArgument, "the job's name is too long: " + job,
                 "connection between ranks", "set distributed.address"};
  place.sun_family = AF_UNIX;
  std::memcpy(place.sun_path + 1, name.data(), name.size());
  address.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

Result<Address> resolve(const std::string& text) {
  const size_t colon = text.rfind(':');
  addrinfo hints = {}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  const bool split = colon != std::string::npos && colon > 0 && colon + 1 < text.size();
  const int failed =
      split ? ::getaddrinfo(text.substr(0, colon).c_str(), text.substr(colon + 1).c_str(), &hints, &found)
            : 1;
  if (failed != 0 || found == nullptr)
    return Error{ErrorCode::kInvalidArgument, fmt::format("'{}' is no address", text), "distributed.address",
                 "set it to HOST:PORT, the same on all ranks"};
  Address address;
  std::memcpy(&address.bytes, found->ai_addr, found->ai_addrlen);
  address.size = found->ai_addrlen;
  address.family = found->ai_family;
  ::freeaddrinfo(found);
  return address;
}

Result<Address> address_of(const Launch& launch) {
  return launch.address.empty() ? address_of_job(launch.job) : resolve(launch.address);
}

Result<Connection> make_socket(const Address& address) {
  Connection made(::socket(address.family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!made.is_open()) return cannot_meet("cannot open a socket");
  const int on = 1;
  if (address.family != AF_UNIX) {
    (void)::setsockopt(made.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    (void)::setsockopt(made.fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    (void)::setsockopt(made.fd(), IPPROTO_TCP, TCP_USER_TIMEOUT, &kUnreachableMilliseconds,
                       sizeof kUnreachableMilliseconds);  // what it accepts has it, too
  }
  return made;
}

/// Any user's process may take a name of the machine, or connect to one.
bool is_of_this_user(const Connection& connection) {
  int family = 0;
  socklen_t size = sizeof family;
  if (::getsockopt(connection.fd(), SOL_SOCKET, SO_DOMAIN, &family, &size) != 0) return false;
  if (family != AF_UNIX) return true;
  ucred other = {};
  size = sizeof other;
  return ::getsockopt(connection.fd(), SOL_SOCKET, SO_PEERCRED, &other, &size) == 0 &&
         other.uid == ::geteuid();
}

const sockaddr* place_of(const Address& address) { return reinterpret_cast<const sockaddr*>(&address.bytes); }

}  // namespace

Result<Connection> listen_for_ranks(const Launch& launch) {
  PLIMSOLL_ASSIGN(const Address address, address_of(launch));
  PLIMSOLL_ASSIGN(Connection listener, make_socket(address));
  if (::bind(listener.fd(), place_of(address), address.size) != 0 ||
      ::listen(listener.fd(), launch.ranks) != 0)
    return cannot_meet("rank 0 cannot listen for the others");
  return listener;
}

Result<std::optional<Connection>> accept_rank(const Connection& listener, double seconds) {
  for (const double end = now_seconds() + seconds;;) {
    pollfd readable{listener.fd(), POLLIN, 0};
    const int ready = ::poll(&readable, 1, static_cast<int>(1e3 * std::max(0.0, end - now_seconds())));
    if (ready < 0 && errno == EINTR)
      return Error{ErrorCode::kInterrupted, "stopped by a signal before all ranks had connected",
                   "connection between ranks", "start all ranks again"};
    if (ready <= 0) return std::optional<Connection>();
    Connection accepted(::accept4(listener.fd(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!accepted.is_open()) return cannot_meet("rank 0 cannot take a connection");
    if (is_of_this_user(accepted)) return std::optional(std::move(accepted));
  }
}

Result<Connection> connect_to_first(const Launch& launch, double seconds) {
  PLIMSOLL_ASSIGN(const Address address, address_of(launch));
  for (const double end = now_seconds() + seconds;;) {
    PLIMSOLL_ASSIGN(Connection made, make_socket(address));
    if (::connect(made.fd(), place_of(address), address.size) == 0) {
      if (is_of_this_user(made)) return made;
      return Error{ErrorCode::kIo, "a process of another user listens where rank 0 should",
                   "connection between ranks", "set distributed.address"};
    }
    if (now_seconds() >= end)
      return Error{ErrorCode::kIo, fmt::format("rank 0 has not listened within {:.0f} s", seconds),
                   fmt::format("rank {} of {}", launch.rank, launch.ranks), "start all ranks together"};
    std::this_thread::sleep_for(kRetry);
  }
}

}  // namespace plimsoll::ranks
