#include "cli/progress.h"

#include <fmt/format.h>

#include <algorithm>

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

Progress::Progress() : start_seconds_(now_seconds()), shown_seconds_(start_seconds_) {}

Progress::~Progress() { finish(); }

void Progress::finish() { line_.clear(); }

void Progress::show(double fraction, const std::string& text) {
  const double now = now_seconds();
  if (now - shown_seconds_ < (line_.rewrites() ? kTerminalSeconds : kFileSeconds)) return;
  shown_seconds_ = now;
  fraction = std::clamp(fraction, 0.0, 1.0);
  const double passed = now - start_seconds_;
  std::string left;
  if (passed > kSettledSeconds && fraction > 0)
    left = duration_text(passed * (1 - fraction) / fraction) + " left";
  line_.show({{fmt::format("{:3.0f}%", 100 * fraction), 0}, {text, 1}, {left, 2}});
}

}  // namespace plimsoll::cli
