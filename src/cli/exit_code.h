// Maps errors to exit codes and prints them.
#pragma once

#include <optional>

#include "base/result.h"

namespace plimsoll::cli {

int exit_code(ErrorCode code);
/// The error that ends a process with that code; nothing where none does.
std::optional<ErrorCode> error_of_exit(int code);

/// Prints "error: what: where" and "hint: …" on stderr, nothing for an error without text: somebody else has
/// told of it. Returns its exit code.
int report(const Error& error);

}  // namespace plimsoll::cli
