// Checks for bugs, active in every build. What input or environment can cause is a Result instead.
#pragma once

#include <exception>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>

namespace plimsoll {

/// What a host throws for a bug that is not to end its program.
class Bug : public std::exception {
 public:
  explicit Bug(std::string text) : text_(std::move(text)) {}
  [[nodiscard]] const char* what() const noexcept override { return text_.c_str(); }

 private:
  std::string text_;
};

/// Tells the host (Host::found_bug); without one prints the message with its place to stderr and aborts.
[[noreturn]] void fail(std::string_view what, std::source_location where = std::source_location::current());

}  // namespace plimsoll

#define PLIMSOLL_FAIL(message) ::plimsoll::fail(message)
/// PLIMSOLL_CHECK(condition) or PLIMSOLL_CHECK(condition, message); the message is built on failure only.
#define PLIMSOLL_CHECK(condition, ...)                                                           \
  do {                                                                                           \
    if (!(condition)) [[unlikely]]                                                               \
      ::plimsoll::fail(std::string("check failed: " #condition " ") + std::string{__VA_ARGS__}); \
  } while (false)
