#include "cli/progress.h"

#include <fmt/format.h>

#include <algorithm>

namespace plimsoll::cli {
namespace {

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

Progress::~Progress() { finish(); }

void Progress::finish() { line_.clear(); }

void Progress::show(double fraction, const std::string& text) {
  if (!clock_.is_due(line_.rewrites())) return;
  fraction = std::clamp(fraction, 0.0, 1.0);
  std::string left;
  if (clock_.passed_seconds() > kSettledSeconds && fraction > 0) left = clock_.left(fraction);
  line_.show({{fmt::format("{:3.0f}%", 100 * fraction), 0}, {text, 1}, {left, 2}});
}

}  // namespace plimsoll::cli
