#include "cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "base/process.h"

namespace plimsoll::cli {
namespace {

constexpr int kUsualColumns = 80;
constexpr double kLeastSeconds = 1.0 / 30;

/// Of stderr, and of the status line that is open there.
std::recursive_mutex stderr_mutex;
StatusLine* open_line = nullptr;

bool can_rewrite() {
  const char* term = std::getenv("TERM");
  return term != nullptr && *term != '\0' && std::string_view(term) != "dumb";
}

}  // namespace

int terminal_columns(int fd) {
  if (isatty(fd) != 1) return 0;
  winsize size = {};
  int columns = ::ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
  const char* text = std::getenv("COLUMNS");
  const int given = text == nullptr ? 0 : std::atoi(text);
  if (given > 0 && (columns == 0 || given < columns)) columns = given;
  return columns > 0 ? columns : kUsualColumns;
}

void print_text(std::string_view text) {
  const std::string lines = wrapped(text, terminal_columns(STDOUT_FILENO));
  std::fwrite(lines.data(), 1, lines.size(), stdout);
  std::fflush(stdout);
}

void print_message(std::string_view text) {
  const std::scoped_lock lock(stderr_mutex);
  if (open_line != nullptr) open_line->finish();
  const std::string lines = wrapped(text, terminal_columns(STDERR_FILENO)) + "\n";
  std::fwrite(lines.data(), 1, lines.size(), stderr);
  std::fflush(stderr);
}

StatusLine::StatusLine() : terminal_(isatty(STDERR_FILENO) == 1), rewrites_(terminal_ && can_rewrite()) {}

void StatusLine::show(const std::vector<StatusPart>& parts) {
  const std::scoped_lock lock(stderr_mutex);
  if (open_line != nullptr && open_line != this) open_line->finish();
  // The last column stays free: some terminals go on to the next line once it is written.
  const int columns = terminal_ ? std::max(1, terminal_columns(STDERR_FILENO) - 1) : 0;
  if (!rewrites_) {
    std::fprintf(stderr, "%s\n", fitted(parts, columns).c_str());
    std::fflush(stderr);
    return;
  }
  const double now = now_seconds();
  if (open_ && now - drawn_seconds_ < kLeastSeconds) {
    waiting_ = parts;
    return;
  }
  waiting_.clear();
  drawn_seconds_ = now;
  draw(fitted(parts, columns));
}

void StatusLine::draw(const std::string& line) {
  const int room = std::max(1, terminal_columns(STDERR_FILENO) - 1), width = columns_of(line);
  // One blank at least where there is room: the terminal writes "^C" where the cursor stands.
  const int blanks = std::max(0, std::min(std::max(shown_columns_, width + 1), room) - width);
  const std::string out = (open_ ? "\r" : "") + line + std::string(static_cast<size_t>(blanks), ' ');
  std::fwrite(out.data(), 1, out.size(), stderr);
  std::fflush(stderr);
  shown_columns_ = width;
  open_ = true;
  open_line = this;
}

void StatusLine::close() {
  waiting_.clear();
  open_ = false;
  open_line = nullptr;
  shown_columns_ = 0;
}

void StatusLine::finish() {
  const std::scoped_lock lock(stderr_mutex);
  if (!open_) return;
  if (!waiting_.empty()) draw(fitted(waiting_, std::max(1, terminal_columns(STDERR_FILENO) - 1)));
  std::fputc('\n', stderr);
  std::fflush(stderr);
  close();
}

void StatusLine::clear() {
  const std::scoped_lock lock(stderr_mutex);
  if (!open_) return;
  draw("");
  std::fputc('\r', stderr);
  std::fflush(stderr);
  close();
}

}  // namespace plimsoll::cli
