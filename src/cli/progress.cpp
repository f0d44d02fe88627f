#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/duration.h"
#include "base/process.h"

namespace plimsoll::cli {
namespace {

constexpr double kTerminalSeconds = 0.1, kFileSeconds = 10;
constexpr double kSettledSeconds = 1;  // before, an estimate of what is left would jump about

}  // namespace

std::function<void(double, const std::string&)> shown_by(Progress& progress) {
  return [&progress](double fraction, const std::string& text) {
    if (text.empty())
      progress.finish();
    else
      progress.show(fraction, text);
  };
}

Progress::Progress()
    : terminal_(isatty(STDERR_FILENO) == 1), start_seconds_(now_seconds()), shown_seconds_(start_seconds_) {}

Progress::~Progress() { finish(); }

void Progress::finish() {
  if (open_line_) std::fputs("\r\x1b[K", stderr);
  open_line_ = false;
}

void Progress::show(double fraction, const std::string& text) {
  const double now = now_seconds();
  if (now - shown_seconds_ < (terminal_ ? kTerminalSeconds : kFileSeconds)) return;
  shown_seconds_ = now;
  fraction = std::clamp(fraction, 0.0, 1.0);
  std::string line = fmt::format("{:3.0f}%  {}", 100 * fraction, text);
  const double passed = now - start_seconds_;
  if (passed > kSettledSeconds && fraction > 0)
    line += fmt::format("  {} left", duration_text(passed * (1 - fraction) / fraction));
  std::fputs(terminal_ ? ("\r" + line + "\x1b[K").c_str() : (line + "\n").c_str(), stderr);
  std::fflush(stderr);
  open_line_ = terminal_;
}

}  // namespace plimsoll::cli
