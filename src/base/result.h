// Result<T>: the value of a call, or why there is none. A small subset of std::expected.
// For anything that input or environment can cause; bugs are PLIMSOLL_CHECK (check.h).
#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/check.h"

namespace plimsoll {

/// What kind of failure it is; the command line turns it into its exit code.
enum class ErrorCode {
  kInvalidArgument,  ///< usage, run file: exit 2
  kBadData,          ///< data or model files: exit 65
  kDoesNotFit,       ///< the plan exceeds the budget: exit 69
  kIo,               ///< the operating system refused: exit 74
  kInterrupted,      ///< stopped by a signal and saved: exit 75
  kDiverged,         ///< the loss is not finite: exit 76
  kInternal,         ///< a bug, where the host does not end the program for it: exit 70
};

/// A failure in three parts: what is wrong, where, and what to do about it. A run file may have several at
/// once.
struct Error {
  ErrorCode code = ErrorCode::kInvalidArgument;
  std::string what;
  std::string where = {};
  std::string hint = {};
  std::vector<Error> more = {};  ///< what else is wrong, found beside it: each with its own place and hint

  /// "what: where", the form the command line prints after "error: ".
  [[nodiscard]] std::string message() const { return where.empty() ? what : what + ": " + where; }
  /// The same error with `outer` put before its place: "outer: where".
  [[nodiscard]] Error at(const std::string& outer) && {
    where = where.empty() ? outer : outer + ": " + where;
    for (Error& other : more) other = std::move(other).at(outer);
    return std::move(*this);
  }
};

/// Either a T or an Error. Test with `if (!r)`, then `r.value()` / `*r` or `r.error()`.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: implicit by design
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT

  explicit operator bool() const { return state_.index() == 0; }
  [[nodiscard]] bool ok() const { return state_.index() == 0; }
  T& value() & { return check_ok(), std::get<0>(state_); }
  const T& value() const& { return check_ok(), std::get<0>(state_); }
  /// By value: a reference into a Result that ends with its statement would dangle in `for (x : *f())`.
  T value() && { return check_ok(), std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  Error& error() & { return std::get<1>(state_); }
  const Error& error() const& { return std::get<1>(state_); }
  Error&& error() && { return std::get<1>(std::move(state_)); }

 private:
  void check_ok() const {
    if (!ok()) PLIMSOLL_FAIL("value() of a failed Result: " + error().message());
  }
  std::variant<T, Error> state_;
};

/// Success without a value.
struct Ok {};
using Status = Result<Ok>;

}  // namespace plimsoll

/// Evaluates a Result or Status and returns its error from the enclosing function.
#define PLIMSOLL_TRY(expr)                                           \
  do {                                                               \
    auto plimsoll_status = (expr);                                   \
    if (!plimsoll_status) return std::move(plimsoll_status).error(); \
  } while (false)

/// `PLIMSOLL_ASSIGN(auto x, f());`: x is f's value, or the enclosing function returns f's error.
#define PLIMSOLL_ASSIGN(lhs, expr) PLIMSOLL_ASSIGN_IMPL(PLIMSOLL_CONCAT(plimsoll_r, __LINE__), lhs, expr)
#define PLIMSOLL_ASSIGN_IMPL(tmp, lhs, expr) \
  auto tmp = (expr);                         \
  if (!tmp) return std::move(tmp).error();   \
  lhs = std::move(tmp).value()
#define PLIMSOLL_CONCAT(a, b) PLIMSOLL_CONCAT_IMPL(a, b)
#define PLIMSOLL_CONCAT_IMPL(a, b) a##b
