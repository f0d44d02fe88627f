// Result<T>: the value of a call, or why there is none. Functions of the API return T and throw; where
// exceptions are switched off (config.h) they return Result<T>. Inside, everything is a Result.
#pragma once

#include <cstdlib>
#include <utility>
#include <variant>

#include "plimsoll/error.h"

namespace plimsoll {
inline namespace PLIMSOLL_INLINE_NAMESPACE {

/// Test with `if (!result)`, then `*result` or `result.error()`. Asking for what is not there ends the
/// program.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // implicit by design
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // implicit by design

  explicit operator bool() const { return ok(); }
  [[nodiscard]] bool ok() const { return state_.index() == 0; }
  T& operator*() & { return held<0>(state_); }
  const T& operator*() const& { return held<0>(state_); }
  T&& operator*() && { return std::move(held<0>(state_)); }
  T* operator->() { return &held<0>(state_); }
  const T* operator->() const { return &held<0>(state_); }
  [[nodiscard]] Error& error() { return held<1>(state_); }
  [[nodiscard]] const Error& error() const { return held<1>(state_); }

 private:
  template <size_t kIndex, class State>
  static auto& held(State& state) {
    auto* value = std::get_if<kIndex>(&state);
    if (value == nullptr) std::abort();
    return *value;
  }
  std::variant<T, Error> state_;
};

/// Success, or why not.
struct Done {};
using Status = Result<Done>;

#ifdef PLIMSOLL_NO_EXCEPTIONS
/// What a function of the API returns for a T.
template <class T>
using Returned = Result<T>;
using ReturnedNothing = Status;
#else
template <class T>
using Returned = T;
using ReturnedNothing = void;
#endif

namespace detail {

template <class T>
Returned<T> returned(Result<T> result) {
#ifdef PLIMSOLL_NO_EXCEPTIONS
  return result;
#else
  if (!result) raise(std::move(result.error()));
  return *std::move(result);
#endif
}

inline ReturnedNothing returned(Status status) {
#ifdef PLIMSOLL_NO_EXCEPTIONS
  return status;
#else
  if (!status) raise(std::move(status.error()));
#endif
}

}  // namespace detail
}  // namespace PLIMSOLL_INLINE_NAMESPACE
}  // namespace plimsoll
