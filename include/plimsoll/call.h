// Calls into the library: a code and a handle become an Error.
#pragma once

#include "plimsoll/json_read.h"
#include "plimsoll/plimsoll_c.h"
#include "plimsoll/result.h"

namespace plimsoll {
inline namespace PLIMSOLL_INLINE_NAMESPACE {
namespace detail {

inline ErrorKind kind_of(int code) {
  switch (code) {
    case PLS_INVALID_ARGUMENT:
      return ErrorKind::invalid_argument;
    case PLS_BAD_DATA:
      return ErrorKind::bad_data;
    case PLS_DOES_NOT_FIT:
      return ErrorKind::does_not_fit;
    case PLS_IO:
      return ErrorKind::io;
    case PLS_INTERRUPTED:
      return ErrorKind::interrupted;
    case PLS_DIVERGED:
      return ErrorKind::diverged;
    default:
      return ErrorKind::internal;
  }
}

/// `function(&error)` is one call of plimsoll_c.h.
template <class Function>
Status call(Function&& function) {
  pls_error* error = nullptr;
  const int code = function(&error);
  if (code == PLS_OK) return Done{};
  if (error == nullptr) return Error(kind_of(code), "libplimsoll gave no message");
  const auto least = json_number<int64_t>(json_value(pls_error_json(error), "least_bytes"), 0);
  Error said(kind_of(code), pls_error_message(error), pls_error_hint(error), least);
  pls_error_free(error);
  return said;
}

}  // namespace detail
}  // namespace PLIMSOLL_INLINE_NAMESPACE
}  // namespace plimsoll
