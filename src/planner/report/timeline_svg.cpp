#include "planner/report/timeline_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/numbers.h"
#include "base/svg.h"
#include "base/units.h"
#include "planner/report/timeline_columns.h"

namespace plimsoll::planner {
namespace {

constexpr int kWidth = 920, kHeight = 484;
constexpr double kLeft = 76, kRight = 904, kTop = 64, kBottom = 396;
constexpr size_t kColumns = 828;  // one a pixel

/// Mid tones, which stand apart from each other and from white and black pages; in the order of the classes.
constexpr std::array<const char*, kNumMemoryClasses> kColours = {
    "#4477aa", "#66aacc", "#7e6bb0", "#999944", "#8c8c8c", "#a0a0a0", "#777777", "#666666", "#b0b0b0",
    "#cc6677", "#e0a030", "#44a080", "#9a9aa8", "#c4bcb0", "#5b8f8f", "#335588", "#b07aa1"};

constexpr std::string_view kStyle =
    ".grid{stroke:#8886;stroke-width:1}.mark{stroke:#24292f;stroke-width:1.2;fill:none}"
    ".measured{stroke:#d1242f;stroke-width:1.6;stroke-dasharray:6 3;fill:none}"
    ".phase{stroke:#8888;stroke-dasharray:3 3}";
constexpr std::string_view kDarkStyle = ".page{fill:#0d1117}.mark{stroke:#e6edf3}";

class Picture {
 public:
  Picture(const MemoryTimeline& timeline, const std::string& title)
      : timeline_(timeline),
        columns_(timeline_columns(timeline, kColumns)),
        svg_(kWidth, kHeight, kLeft, title, kStyle, kDarkStyle) {}

  std::string draw() {
    if (!timeline_.points.empty()) {
      most_ = timeline_.most_bytes();
      areas();
      grid();
      phases();
      peak();
      measured();
      legend();
    }
    return svg_.finish();
  }

 private:
  [[nodiscard]] double y(int64_t bytes) const {
    return kBottom - (kBottom - kTop) * static_cast<double>(bytes) / (1.04 * static_cast<double>(most_));
  }
  [[nodiscard]] static double x(size_t column) { return kLeft + static_cast<double>(column); }

  /// Sum of a column's classes up to and with `c`.
  [[nodiscard]] int64_t top_of(size_t column, size_t c) const {
    const ClassBytes& bytes = timeline_.points[columns_[column]].bytes;
    int64_t sum = 0;
    for (size_t i = 0; i <= c; ++i) sum += bytes[i];
    return sum;
  }

  /// In halves of a pixel.
  [[nodiscard]] double height_of(size_t column, size_t c) const {
    return std::round(2 * y(top_of(column, c))) / 2;
  }

  /// Steps along the top of a class from left to right, or back; equal neighbours are one.
  void edge(size_t c, bool back, std::string& out) const {
    const auto at = [&](size_t k) { return back ? columns_.size() - 1 - k : k; };
    for (size_t i = 0; i < columns_.size();) {
      const double height = height_of(at(i), c);
      size_t end = i;
      while (end + 1 < columns_.size() && height_of(at(end + 1), c) == height) ++end;
      const double from = x(at(i)) + (back ? 1 : 0), to = x(at(end)) + (back ? 0 : 1);
      out += fmt::format("{:.0f},{:g} {:.0f},{:g} ", from, height, to, height);
      i = end + 1;
    }
  }

  /// Too thin to be seen anywhere.
  [[nodiscard]] bool is_thin(size_t c) const {
    return std::all_of(timeline_.points.begin(), timeline_.points.end(),
                       [&](const TimelinePoint& point) { return point.bytes[c] < most_ / 1000; });
  }

  void areas() {
    for (size_t c = 0; c < kNumMemoryClasses; ++c) {
      if (is_thin(c)) continue;
      std::string area = fmt::format("<polygon fill=\"{}\" points=\"", kColours[c]);
      edge(c, /*back=*/false, area);
      if (c == 0)
        area += fmt::format("{:.0f},{:.0f} {:.0f},{:.0f}", kRight, kBottom, kLeft, kBottom);
      else
        edge(c - 1, /*back=*/true, area);
      svg_.add(area + "\"/>\n");
    }
  }

  void grid() {
    const BytesAxis axis = bytes_axis(most_, 6);
    for (size_t i = 0; i < axis.labels.size(); ++i) {
      const double at = y(static_cast<int64_t>(i) * axis.step);
      svg_.line(kLeft, at, kRight, at, "grid");
      svg_.text(kLeft - 6, at + 4, "end", axis.labels[i]);
    }
    svg_.vertical_text(14, (kTop + kBottom) / 2, "bytes alive");
  }

  void phases() {
    for (const PhaseRun& run : phase_runs(timeline_, columns_)) {
      if (run.first > 0) svg_.line(x(run.first), kTop - 8, x(run.first), kBottom + 6, "phase");
      // What is narrow has its name below the others', which it would run into.
      const bool narrow = run.last - run.first < 60, at_end = narrow && run.last + 1 == columns_.size();
      svg_.text(at_end ? kRight : (x(run.first) + x(run.last)) / 2, kBottom + (narrow ? 32 : 18),
                at_end ? "end" : "middle", name(run.phase));
    }
    svg_.text(
        kLeft, kBottom + 32, "start",
        fmt::format("ops of {} in order, {} to {}", timeline_.program,
                    grouped(timeline_.points.front().position), grouped(timeline_.points.back().position)));
  }

  void peak() {
    const auto column = std::find(columns_.begin(), columns_.end(), timeline_.peak) - columns_.begin();
    const int64_t bytes = timeline_.at_peak().total_bytes;
    const double at = x(static_cast<size_t>(column)) + 0.5, top = y(bytes);
    svg_.line(at, kTop - 14, at, top, "mark");
    svg_.circle(at, top, 3.5, "mark");
    const bool right = at < (kLeft + kRight) / 2;
    svg_.text(right ? at + 6 : at - 6, kTop - 14, right ? "start" : "end",
              fmt::format("peak {} at {}", to_string(Bytes(bytes)), place_of(timeline_.at_peak())));
  }

  /// What was measured, as a line over the areas.
  void measured() {
    if (timeline_.measured.bytes.empty()) return;
    std::string curve = "<polyline class=\"measured\" points=\"";
    int64_t most = 0;
    for (size_t i = 0; i < columns_.size(); ++i) {
      const int64_t bytes = timeline_.measured.at(columns_[i]);
      most = std::max(most, bytes);
      curve += fmt::format("{:.0f},{:.1f} {:.0f},{:.1f} ", x(i), y(bytes), x(i) + 1, y(bytes));
    }
    svg_.add(curve + "\"/>\n");
    svg_.text(kRight, kBottom + 60 + 36, "end",
              fmt::format("line: measured, at most {}", to_string(Bytes(most))));
  }

  /// Classes with their bytes at the peak, four in a row; what is too thin to be seen is one.
  void legend() {
    const ClassBytes& peak = timeline_.at_peak().bytes;
    int64_t others = 0;
    size_t cell = 0;
    for (size_t c = 0; c < kNumMemoryClasses; ++c) {
      if (is_thin(c))
        others += peak[c];
      else
        legend_cell(cell++, kColours[c], name(static_cast<MemoryClass>(c)), peak[c]);
    }
    if (others > 0) legend_cell(cell, "#999", "others", others);
  }

  void legend_cell(size_t i, std::string_view colour, std::string_view label, int64_t bytes) {
    const double at_x = kLeft + 207 * static_cast<double>(i % 4);
    const size_t row = i / 4;
    const double at_y = kBottom + 60 + 18 * static_cast<double>(row);
    svg_.add(fmt::format("<rect x=\"{:.0f}\" y=\"{:.0f}\" width=\"11\" height=\"11\" fill=\"{}\"/>\n", at_x,
                         at_y - 10, colour));
    svg_.text(at_x + 17, at_y, "start", fmt::format("{} {}", label, to_string(Bytes(bytes))));
  }

  const MemoryTimeline& timeline_;
  std::vector<size_t> columns_;
  int64_t most_ = 1;
  Svg svg_;
};

}  // namespace

std::string timeline_svg(const MemoryTimeline& timeline, const std::string& title) {
  return Picture(timeline, title).draw();
}

}  // namespace plimsoll::planner
