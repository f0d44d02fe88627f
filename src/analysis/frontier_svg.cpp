// The frontier as a picture: memory to the right, seconds a step up, what is best at the lower left.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "analysis/frontier.h"
#include "base/svg.h"
#include "base/units.h"

namespace plimsoll::analysis {
namespace {

constexpr int kWidth = 920;
constexpr double kLeft = 84, kRight = 880, kTop = 56, kBottom = 400;
constexpr double kRowHeight = 18;
constexpr std::string_view kStyle =
    ".grid{stroke:#888;stroke-opacity:.4}.steps{stroke:#4477aa;stroke-width:1.6;fill:none}"
    ".point{fill:#4477aa}.policy{stroke:#cc6677;stroke-width:1.6;fill:none}"
    ".chosen{stroke:#24292f;stroke-width:1.6;fill:none}.letter{fill:#cc6677;font-weight:bold}";
constexpr std::string_view kDarkStyle =
    ".letter{fill:#e08895}.page{fill:#0d1117}.steps{stroke:#79a8dd}.point{fill:#79a8dd}"
    ".policy{stroke:#e08895}.chosen{stroke:#e6edf3}";

/// 1, 2 or 5 times a power of ten, so that about `count` of them make the range.
double nice_step(double range, int count) {
  const double rough = std::max(range / count, 1e-12), power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (rough <= factor * power) return factor * power;
  return 10 * power;
}

/// What an axis shows: whole steps around all of it.
struct Range {
  double low = std::numeric_limits<double>::infinity(), high = 0, step = 1;
  void take(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  void close(double step_of_ticks) {
    step = step_of_ticks;
    low = std::floor(low / step) * step;
    high = std::max(std::ceil(high / step), low / step + 1) * step;
  }
};

class Picture {
 public:
  explicit Picture(const Frontier& frontier) : frontier_(frontier) {
    for (const FrontierPoint& p : frontier.points) take(p.peak_bytes, p.report.seconds_estimated);
    for (const FixedPolicy& p : frontier.policies) take(p.peak_bytes, p.seconds);
    if (frontier.chosen) take(frontier.chosen->peak_bytes, frontier.chosen->report.seconds_estimated);
    unit_ = bytes_.high >= 2.0 * (int64_t{1} << 30) ? Unit{"GiB", 1 << 30}
            : bytes_.high >= 2 << 20                ? Unit{"MiB", 1 << 20}
                                                    : Unit{"B", 1};
    bytes_.close(nice_step((bytes_.high - bytes_.low) / unit_.bytes, 8) * unit_.bytes);
    seconds_.close(nice_step(seconds_.high - seconds_.low, 6));
  }

  std::string draw() {
    const size_t rows = (frontier_.policies.size() + 1) / 2;
    const int height = static_cast<int>(kBottom + 78 + kRowHeight * static_cast<double>(rows));
    svg_.emplace(kWidth, height, kLeft, fmt::format("{}: step time against memory", frontier_.model), kStyle,
                 kDarkStyle);
    axes();
    steps();
    for (const FrontierPoint& p : frontier_.points)
      svg_->circle(x(p.peak_bytes), y(p.report.seconds_estimated), 3.5, "point");
    policies();
    chosen();
    legend();
    return svg_->finish();
  }

 private:
  void take(int64_t bytes, double seconds) {
    bytes_.take(static_cast<double>(bytes));
    seconds_.take(seconds);
  }
  [[nodiscard]] double x(int64_t bytes) const {
    return kLeft + (kRight - kLeft) * (static_cast<double>(bytes) - bytes_.low) / (bytes_.high - bytes_.low);
  }
  [[nodiscard]] double y(double seconds) const {
    return kBottom - (kBottom - kTop) * (seconds - seconds_.low) / (seconds_.high - seconds_.low);
  }

  void axes() {
    for (double at = bytes_.low; at <= bytes_.high + bytes_.step / 2; at += bytes_.step) {
      const auto bytes = static_cast<int64_t>(at);
      svg_->line(x(bytes), kTop, x(bytes), kBottom, "grid");
      svg_->text(x(bytes), kBottom + 18, "middle", fmt::format("{:.5g} {}", at / unit_.bytes, unit_.name));
    }
    for (double at = seconds_.low; at <= seconds_.high + seconds_.step / 2; at += seconds_.step) {
      svg_->line(kLeft, y(at), kRight, y(at), "grid");
      svg_->text(kLeft - 6, y(at) + 4, "end",
                 fmt::format("{:.4g}", std::abs(at) < seconds_.step / 2 ? 0 : at));
    }
    svg_->text(
        (kLeft + kRight) / 2, kBottom + 38, "middle",
        frontier_.budget == "memory.budget" ? "planned peak of the process" : "planned peak of the device");
    svg_->vertical_text(16, (kTop + kBottom) / 2, "estimated seconds per step");
  }

  /// Between two points a budget gives the lower one's plan.
  void steps() {
    if (frontier_.points.empty()) return;
    std::string line = "<polyline class=\"steps\" points=\"";
    double before = 0;
    for (const FrontierPoint& p : frontier_.points) {
      const double at_x = x(p.peak_bytes), at_y = y(p.report.seconds_estimated);
      if (&p != frontier_.points.data()) line += fmt::format("{:.1f},{:.1f} ", at_x, before);
      line += fmt::format("{:.1f},{:.1f} ", at_x, at_y);
      before = at_y;
    }
    line += fmt::format("{:.1f},{:.1f}\"/>\n", kRight, before);
    svg_->add(line);
  }

  /// A cross and a letter each; letters that would lie over each other stand in a row.
  void policies() {
    struct Label {
      double x, y;
      std::string letters;
    };
    std::vector<Label> labels;
    for (size_t i = 0; i < frontier_.policies.size(); ++i) {
      const double at_x = x(frontier_.policies[i].peak_bytes), at_y = y(frontier_.policies[i].seconds);
      svg_->add(
          fmt::format("<path class=\"policy\" d=\"M{:.1f} {:.1f}l8 8m0 -8l-8 8\"/>\n", at_x - 4, at_y - 4));
      const auto near = std::ranges::find_if(labels, [&](const Label& label) {
        return std::abs(label.x - at_x) < 16 && std::abs(label.y - at_y) < 14;
      });
      if (near == labels.end())
        labels.push_back({at_x, at_y, letter(i)});
      else
        near->letters += " " + letter(i);
    }
    for (const Label& label : labels) {
      const bool left = label.x > kRight - 40;
      svg_->text(left ? label.x - 8 : label.x + 8, label.y - 6, left ? "end" : "start", label.letters,
                 "letter");
    }
  }

  void chosen() {
    if (!frontier_.chosen) return;
    const double at_x = x(frontier_.chosen->peak_bytes), at_y = y(frontier_.chosen->report.seconds_estimated);
    svg_->circle(at_x, at_y, 8, "chosen");
    const bool left = at_x > (kLeft + kRight) / 2;
    svg_->text(left ? at_x - 12 : at_x + 12, at_y + 20, left ? "end" : "start", "this run");
  }

  void legend() {
    const double top = kBottom + 62;
    for (size_t i = 0; i < frontier_.policies.size(); ++i) {
      const FixedPolicy& policy = frontier_.policies[i];
      const size_t rows = (frontier_.policies.size() + 1) / 2;
      const double at_x = kLeft + (kRight - kLeft) / 2 * static_cast<double>(i / rows);
      const double at_y = top + kRowHeight * static_cast<double>(i % rows);
      svg_->text(at_x, at_y, "start", letter(i), "letter");
      svg_->text(
          at_x + 16, at_y, "start",
          fmt::format("{}: {}, {:.4g} s", policy.name, to_string(Bytes(policy.peak_bytes)), policy.seconds));
    }
  }

  static std::string letter(size_t i) { return std::string(1, static_cast<char>('a' + i % 26)); }

  struct Unit {
    const char* name = "B";
    double bytes = 1;
  };
  const Frontier& frontier_;
  Range bytes_, seconds_;
  Unit unit_;
  std::optional<Svg> svg_;
};

}  // namespace

std::string frontier_svg(const Frontier& frontier) { return Picture(frontier).draw(); }

}  // namespace plimsoll::analysis
