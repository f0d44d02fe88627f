#include "base/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "base/duration.h"
#include "base/process.h"

namespace plimsoll {
namespace {

constexpr int kUsualColumns = 80;
constexpr double kLeastSeconds = 1.0 / 30;

/// Of stderr, and of the status line that is open there.
std::recursive_mutex stderr_mutex;
StatusLine* open_line = nullptr;

/// The first byte of a character of this many columns; continuation bytes take none.
int columns_at(unsigned char byte) {
  if ((byte & 0xC0) == 0x80) return 0;
  return byte >= 0xE1 ? 2 : 1;  // U+1000 and above; U+1100 begins the wide ones
}

bool can_rewrite() {
  const char* term = std::getenv("TERM");
  return term != nullptr && *term != '\0' && std::string_view(term) != "dumb";
}

/// As many characters as fit.
std::string cut(std::string text, int columns) {
  size_t end = 0;
  for (int taken = 0; end < text.size(); ++end) {
    taken += columns_at(static_cast<unsigned char>(text[end]));
    if (taken > columns) break;
  }
  text.resize(end);
  return text;
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

int columns_of(std::string_view text) {
  int columns = 0;
  for (const char c : text) columns += columns_at(static_cast<unsigned char>(c));
  return columns;
}

std::string wrapped(std::string_view text, int columns) {
  if (columns <= 0) return std::string(text);
  std::string out;
  int at = 0;
  bool starts_line = true;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find_first_of(" \n", begin), text.size());
    const std::string_view word = text.substr(begin, end - begin);
    const int width = columns_of(word);
    if (!starts_line && at + 1 + width > columns) {
      out += "\n  ";
      at = 2;
    } else if (!starts_line) {
      out += ' ';
      ++at;
    }
    out += word;
    at += width;
    starts_line = false;
    if (end < text.size() && text[end] == '\n') {
      out += '\n';
      at = 0;
      starts_line = true;
    }
    begin = end + 1;
  }
  return out;
}

void print_message(std::string_view text) {
  const std::scoped_lock lock(stderr_mutex);
  if (open_line != nullptr) open_line->finish();
  const std::string lines = wrapped(text, terminal_columns(STDERR_FILENO)) + "\n";
  std::fwrite(lines.data(), 1, lines.size(), stderr);
  std::fflush(stderr);
}

std::string fitted(const std::vector<StatusPart>& parts, int columns) {
  std::vector<const StatusPart*> left;
  for (const StatusPart& part : parts)
    if (!part.text.empty()) left.push_back(&part);
  const auto joined = [&] {
    std::string line;
    for (const StatusPart* part : left) line += (line.empty() ? "" : "  ") + part->text;
    return line;
  };
  if (columns <= 0) return joined();
  while (left.size() > 1 && columns_of(joined()) > columns)
    left.erase(std::max_element(left.begin(), left.end(),
                                [](const auto* a, const auto* b) { return a->rank < b->rank; }));
  return cut(joined(), columns);
}

ProgressClock::ProgressClock() : start_seconds_(now_seconds()), shown_seconds_(start_seconds_) {}

bool ProgressClock::is_due(const StatusLine& line) {
  constexpr double kTerminalSeconds = 0.1, kFileSeconds = 10;
  const double now = now_seconds();
  if (now - shown_seconds_ < (line.rewrites() ? kTerminalSeconds : kFileSeconds)) return false;
  shown_seconds_ = now;
  return true;
}

double ProgressClock::passed_seconds() const { return now_seconds() - start_seconds_; }

std::string ProgressClock::left(double fraction) const {
  return duration_text(passed_seconds() * (1 - fraction) / std::max(fraction, 1e-9)) + " left";
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
  const int blanks = std::max(0, std::min(shown_columns_, room) - width);
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

}  // namespace plimsoll
