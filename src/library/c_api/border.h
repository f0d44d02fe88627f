// Runs each function of the C interface: exceptions and bugs are caught here and become an error code and an
// error handle.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "io/tree.h"
#include "plimsoll/plimsoll_c.h"

struct pls_error {
  int code = PLS_INTERNAL;
  std::string message, hint, json;
};

namespace plimsoll::library {

/// The numbers of pls_error_json beside the error's own.
using ErrorNumbers = std::vector<std::pair<std::string, int64_t>>;

/// Makes the library the host of its modules (base/host.h): nothing is printed, a bug is thrown. Once.
void be_library();

/// Of an error kDoesNotFit: the least budget that fits, and the one that there is.
inline ErrorNumbers does_not_fit_numbers(int64_t least_bytes, int64_t budget_bytes) {
  return {{"least_bytes", least_bytes}, {"budget_bytes", budget_bytes}};
}

int code_of(ErrorCode code);
std::string_view kind_of(ErrorCode code);
/// Gives the error to the caller, who frees it, and returns its code.
int give(pls_error** to, const Error& error, const ErrorNumbers& numbers = {});
/// Within a catch block: the error for the exception; kInternal if its type is unexpected.
Error thrown_error();
/// Within a catch block: gives what was thrown, without a text where there is no memory for one.
int give_thrown(pls_error** to) noexcept;

/// body(), which returns a Status, as a function of the interface. `numbers` go with its error and may be
/// filled by it.
template <typename Body>
int guarded(pls_error** to, Body&& body, const ErrorNumbers& numbers = {}) noexcept {
  try {
    be_library();
    const Status done = std::forward<Body>(body)();
    return done ? PLS_OK : give(to, done.error(), numbers);
  } catch (...) {
    return give_thrown(to);
  }
}

inline Error null_argument(const char* name) {
  return {ErrorCode::kInvalidArgument, std::string(name) + " is null"};
}
/// A text that may be null.
inline std::string_view text_of(const char* text) { return text == nullptr ? std::string_view() : text; }

}  // namespace plimsoll::library

/// An argument that must be there, within a body.
#define PLS_NEEDS(argument) \
  if ((argument) == nullptr) return ::plimsoll::library::null_argument(#argument)
