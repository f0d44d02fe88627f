// Checks for bugs, active in every build. What input or environment can cause is a Result instead.
#pragma once

#include <source_location>
#include <string>
#include <string_view>

namespace plimsoll {

/// Prints the message with its place to stderr and aborts.
[[noreturn]] void fail(std::string_view what, std::source_location where = std::source_location::current());

}  // namespace plimsoll

#define PLIMSOLL_FAIL(message) ::plimsoll::fail(message)
/// PLIMSOLL_CHECK(condition) or PLIMSOLL_CHECK(condition, message); the message is built on failure only.
#define PLIMSOLL_CHECK(condition, ...)                                                           \
  do {                                                                                           \
    if (!(condition)) [[unlikely]]                                                               \
      ::plimsoll::fail(std::string("check failed: " #condition " ") + std::string{__VA_ARGS__}); \
  } while (false)
