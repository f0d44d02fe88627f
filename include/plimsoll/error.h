// Errors: what is wrong, what to do about it, and of which kind it is. Each kind is a class of its own to
// catch.
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <utility>

#include "plimsoll/config.h"

namespace plimsoll {
inline namespace PLIMSOLL_INLINE_NAMESPACE {

enum class ErrorKind {
  invalid_argument,  ///< a setting, a shape, a name: what was asked for cannot be
  bad_data,          ///< a batch or a file is not what was wanted
  does_not_fit,      ///< the plan needs more than the budget
  io,                ///< the operating system refused
  interrupted,       ///< stopped on request
  diverged,          ///< the loss or a gradient is not finite; nothing was changed
  internal           ///< a bug of Plimsoll's; the session takes no more calls
};

/// Any error. `what()` says what is wrong and where, `hint()` what to do (it may be empty).
class __attribute__((visibility("default"))) Error : public std::exception {
 public:
  Error(ErrorKind kind, std::string what, std::string hint = {}, int64_t least_bytes = 0)
      : kind_(kind), what_(std::move(what)), hint_(std::move(hint)), least_bytes_(least_bytes) {}
  [[nodiscard]] const char* what() const noexcept override { return what_.c_str(); }
  [[nodiscard]] const char* hint() const noexcept { return hint_.c_str(); }
  [[nodiscard]] ErrorKind kind() const noexcept { return kind_; }
  /// Of does_not_fit: the smallest memory_budget that fits. Otherwise 0.
  [[nodiscard]] int64_t least_bytes() const noexcept { return least_bytes_; }

 private:
  ErrorKind kind_;
  std::string what_;
  std::string hint_;
  int64_t least_bytes_;
};

/// What is thrown for a kind.
template <ErrorKind kKind>
class __attribute__((visibility("default"))) ErrorOf : public Error {
 public:
  explicit ErrorOf(Error error) : Error(std::move(error)) {}
};

using InvalidArgument = ErrorOf<ErrorKind::invalid_argument>;
using BadData = ErrorOf<ErrorKind::bad_data>;
using DoesNotFit = ErrorOf<ErrorKind::does_not_fit>;
using Io = ErrorOf<ErrorKind::io>;
using Interrupted = ErrorOf<ErrorKind::interrupted>;
using Diverged = ErrorOf<ErrorKind::diverged>;
using InternalError = ErrorOf<ErrorKind::internal>;

#ifndef PLIMSOLL_NO_EXCEPTIONS
namespace detail {

[[noreturn]] inline void raise(Error error) {
  switch (error.kind()) {
    case ErrorKind::invalid_argument:
      throw InvalidArgument(std::move(error));
    case ErrorKind::bad_data:
      throw BadData(std::move(error));
    case ErrorKind::does_not_fit:
      throw DoesNotFit(std::move(error));
    case ErrorKind::io:
      throw Io(std::move(error));
    case ErrorKind::interrupted:
      throw Interrupted(std::move(error));
    case ErrorKind::diverged:
      throw Diverged(std::move(error));
    case ErrorKind::internal:
      break;
  }
  throw InternalError(std::move(error));
}

}  // namespace detail
#endif
}  // namespace PLIMSOLL_INLINE_NAMESPACE
}  // namespace plimsoll
