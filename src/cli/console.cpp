#include "cli/console.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "io/file.h"

namespace plimsoll::cli {

Console::Console(bool json) {
  const bool results_on_terminal = isatty(STDOUT_FILENO) == 1;
  audience_ = {.events = json,
               .watches = !json || (line_.is_terminal() && !results_on_terminal),
               .dialogue = isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1,
               .results_on_terminal = results_on_terminal,
               .rewrites_progress = line_.rewrites()};
}

void Console::event(const io::Tree& /*event*/, std::string_view line) {
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fputc('\n', stdout);
  std::fflush(stdout);
}

void Console::text(std::string_view text) { print_text(text); }

Status Console::write(std::string_view bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), stdout) == bytes.size() && std::fflush(stdout) == 0)
    return Ok{};
  return io::io_error("cannot write", "stdout", errno);
}

void Console::message(std::string_view text) { print_message(text); }

void Console::write_message(std::string_view bytes) { std::fwrite(bytes.data(), 1, bytes.size(), stderr); }

void Console::progress(const std::vector<StatusPart>& parts) { line_.show(parts); }

void Console::end_progress(bool stays) { stays ? line_.finish() : line_.clear(); }

}  // namespace plimsoll::cli
