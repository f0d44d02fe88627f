#include "cli/exit_code.h"

#include <cstdio>
#include <string>

#include "cli/table.h"
#include "cli/terminal.h"

namespace plimsoll::cli {

int exit_code(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return 2;
    case ErrorCode::kBadData:
      return 65;
    case ErrorCode::kDoesNotFit:
      return 69;
    case ErrorCode::kIo:
      return 74;
    case ErrorCode::kInterrupted:
      return 75;
    case ErrorCode::kDiverged:
      return 76;
    case ErrorCode::kInternal:
      return 70;
  }
  return 2;
}

std::optional<ErrorCode> error_of_exit(int code) {
  for (int c = 0; c <= static_cast<int>(ErrorCode::kInternal); ++c)
    if (exit_code(static_cast<ErrorCode>(c)) == code) return static_cast<ErrorCode>(c);
  return std::nullopt;
}

int report(const Error& error) {
  if (error.what.empty()) return exit_code(error.code);
  std::fflush(stdout);
  print_message("error: " + printable(error.message()));
  const std::string hint = error.hint.empty() ? "see plimsoll --help" : error.hint;
  print_message("hint: " + printable(hint));
  for (const Error& other : error.more) report(other);
  return exit_code(error.code);
}

}  // namespace plimsoll::cli
