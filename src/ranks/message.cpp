#include "ranks/message.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/process.h"

namespace plimsoll::ranks {
namespace {

struct Header {
  uint32_t bytes = 0, kind = 0;
};
/// A run's settings are the longest text.
constexpr uint32_t kMostBytes = 16 << 20;

/// Of the first message in what has come; nothing where less than that has.
std::optional<Header> first_header(const std::string& buffer) {
  Header header;
  if (buffer.size() < sizeof header) return std::nullopt;
  std::memcpy(&header, buffer.data(), sizeof header);
  return header;
}

Error gone() { return {ErrorCode::kIo, "the other rank has closed the connection"}; }

}  // namespace

Connection::Connection(Connection&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), buffer_(std::move(other.buffer_)) {}
Connection& Connection::operator=(Connection&& other) noexcept {
  if (this == &other) return *this;
  close();
  fd_ = std::exchange(other.fd_, -1);
  buffer_ = std::move(other.buffer_);
  return *this;
}
Connection::~Connection() { close(); }

void Connection::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

Status Connection::send(MessageKind kind, std::string_view text) {
  const Header header{static_cast<uint32_t>(text.size()), static_cast<uint32_t>(kind)};
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
  bytes += text;
  for (std::string_view left = bytes; !left.empty();) {
    const ssize_t n = ::send(fd_, left.data(), left.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return gone();
    left.remove_prefix(static_cast<size_t>(n));
  }
  return Ok{};
}

bool Connection::receive() {
  std::array<char, 16384> bytes;
  for (;;) {
    if (const auto header = first_header(buffer_)) {
      if (header->bytes > kMostBytes) return false;
      // What follows waits in the socket, so that nobody fills the memory.
      if (buffer_.size() >= sizeof *header + header->bytes) return true;
    }
    const ssize_t n = ::recv(fd_, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (n > 0)
      buffer_.append(bytes.data(), static_cast<size_t>(n));
    else if (n == 0 || errno != EINTR)
      return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
  }
}

std::optional<Message> Connection::next() {
  const auto header = first_header(buffer_);
  if (!header || buffer_.size() < sizeof *header + header->bytes) return std::nullopt;
  Message message{static_cast<MessageKind>(header->kind), buffer_.substr(sizeof *header, header->bytes)};
  buffer_.erase(0, sizeof *header + header->bytes);
  return message;
}

Result<Message> Connection::wait_for_next(double seconds) {
  const double end = now_seconds() + seconds;
  for (;;) {
    if (std::optional<Message> message = next()) return std::move(*message);
    const double left = end - now_seconds();
    if (left <= 0) return Error{ErrorCode::kIo, "the other rank does not answer"};
    pollfd readable{fd_, POLLIN, 0};
    if (::poll(&readable, 1, static_cast<int>(1e3 * left) + 1) <= 0) continue;
    const bool open = receive();
    if (std::optional<Message> message = next()) return std::move(*message);
    if (!open) return gone();
  }
}

}  // namespace plimsoll::ranks
