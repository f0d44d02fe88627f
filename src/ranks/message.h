// Messages of the control channel, over a stream socket:
//
//   length of the text, 4 │ kind, 4 │ text
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace plimsoll::ranks {

enum class MessageKind : uint32_t {
  kHello = 1,  ///< a rank introduces itself
  kWelcome,    ///< rank 0 has met all ranks
  kText,       ///< for whoever waits for the other rank's next text
  kBeat,       ///< the rank lives; its text is a Progress
  kFailed,     ///< the rank ends with an error, or rank 0 says that another one has
  kBye,        ///< the rank ends in order
};

struct Message {
  MessageKind kind = MessageKind::kText;
  std::string text;
};

/// A connected stream socket. Moves, does not copy; closes at its end.
class Connection {
 public:
  Connection() = default;
  explicit Connection(int fd) : fd_(fd) {}
  Connection(Connection&& other) noexcept;
  Connection& operator=(Connection&& other) noexcept;
  ~Connection();

  [[nodiscard]] bool is_open() const { return fd_ >= 0; }
  [[nodiscard]] int fd() const { return fd_; }
  void close();

  /// All of it or an error. Errors: kIo where the other end has gone.
  Status send(MessageKind kind, std::string_view text);
  /// What has come so far; false where the other end has closed, or has sent what is no message.
  bool receive();
  /// The first message that is whole; nothing where none is.
  std::optional<Message> next();
  /// The next message, within so many seconds. Errors: kIo.
  Result<Message> wait_for_next(double seconds);

 private:
  int fd_ = -1;
  std::string buffer_;
};

}  // namespace plimsoll::ranks
