// Letters, not colours: a terminal without them, a file and a reader that speaks see the same.
#include "cli/profile/timeline_chart.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "cli/table.h"
#include "planner/report/timeline_columns.h"

namespace plimsoll::cli {
namespace {

using planner::MemoryTimeline;
using planner::PhaseRun;
using planner::TimelinePoint;

constexpr int kRows = 16, kLabel = 10;

/// The class that is `bytes` above the ground at a point.
char letter_at(const TimelinePoint& point, double bytes) {
  double sum = 0;
  for (size_t c = 0; c < planner::kNumMemoryClasses; ++c) {
    sum += static_cast<double>(point.bytes[c]);
    if (bytes < sum) return letter_of(static_cast<planner::MemoryClass>(c));
  }
  return ' ';
}

/// Whether what was measured at a point ends in that row.
bool is_measured_in(const MemoryTimeline& timeline, size_t point, double row_bytes, int row) {
  if (timeline.measured.bytes.empty()) return false;
  const auto at = static_cast<int>(static_cast<double>(timeline.measured.at(point)) / row_bytes);
  return std::min(at, kRows - 1) == row;
}

/// A mark at `column` with its text beside it, where one side has room; else the text in a line above.
std::string marked(const std::string& text, size_t column, size_t width, const std::string& margin) {
  if (column + 2 + text.size() <= width) return margin + std::string(column, ' ') + "v " + text + "\n";
  if (column > text.size()) return margin + std::string(column - text.size() - 1, ' ') + text + " v\n";
  const size_t most = width > text.size() ? width - text.size() : 0;
  const size_t before = std::min(column - std::min(column, text.size() / 2), most);
  return margin + std::string(before, ' ') + text + "\n" + margin + std::string(column, ' ') + "v\n";
}

/// "|---- forward ----|- backward -|": a bar begins each phase, a name stands where it has room.
std::string ruler(const MemoryTimeline& timeline, const std::vector<size_t>& columns) {
  std::string line(columns.size(), '-');
  for (const PhaseRun& run : planner::phase_runs(timeline, columns)) {
    line[run.first] = '|';
    const std::string label = fmt::format(" {} ", name(run.phase));
    const size_t room = run.last - run.first;
    if (room >= label.size()) line.replace(run.first + 1 + (room - label.size()) / 2, label.size(), label);
  }
  return line;
}

/// The rows at which the axis has a label, nearest to its bytes.
std::string label_at(const planner::BytesAxis& axis, double row_bytes, int row) {
  for (size_t i = 0; i < axis.labels.size(); ++i) {
    const double at = static_cast<double>(axis.step) * static_cast<double>(i);
    if (static_cast<int>(at / row_bytes) == row) return axis.labels[i];
  }
  return {};
}

}  // namespace

char letter_of(planner::MemoryClass c) {
  return std::string_view("PMOKiosr=Gaw.:bg")[static_cast<size_t>(c)];
}

std::string timeline_chart(const MemoryTimeline& timeline, int columns) {
  if (timeline.points.empty()) return {};
  const auto width = static_cast<size_t>(std::max(columns, 40) - kLabel - 2);
  const std::vector<size_t> shown = planner::timeline_columns(timeline, width);
  const auto peak = static_cast<size_t>(std::find(shown.begin(), shown.end(), timeline.peak) - shown.begin());
  const int64_t most = timeline.most_bytes();
  const double row_bytes = static_cast<double>(most) / kRows;
  const planner::BytesAxis axis = planner::bytes_axis(most, 4);
  const std::string margin(kLabel + 2, ' ');
  const std::string bytes = to_string(Bytes(timeline.at_peak().total_bytes));
  const std::string place = fmt::format("{} at {}", bytes, place_of(timeline.at_peak()));
  std::string out = marked(place.size() <= width ? place : bytes, peak, width, margin);
  for (int row = kRows - 1; row >= 0; --row) {
    std::string line;
    for (const size_t point : shown)
      line += is_measured_in(timeline, point, row_bytes, row)
                  ? '*'
                  : letter_at(timeline.points[point], (static_cast<double>(row) + 0.5) * row_bytes);
    line.erase(line.find_last_not_of(' ') + 1);
    out += fmt::format("{:>{}} |{}\n", label_at(axis, row_bytes, row), kLabel, line);
  }
  return out + margin + ruler(timeline, shown) + "\n";
}

std::string timeline_legend(const MemoryTimeline& timeline) {
  Table table({{""}, {""}, {"", Table::Align::kRight}, {"", Table::Align::kRight}});
  const int64_t most = timeline.at_peak().total_bytes;
  const auto add = [&](char letter, std::string_view label, int64_t bytes) {
    const double share = 100 * static_cast<double>(bytes) / static_cast<double>(most);
    table.add({fmt::format("  {}", letter), std::string(label), to_string(Bytes(bytes)),
               fmt::format("{:.1f} %", share)});
  };
  for (size_t i = 0; i < planner::kNumMemoryClasses; ++i) {
    const auto c = static_cast<planner::MemoryClass>(i);
    if (const int64_t bytes = of(timeline.at_peak().bytes, c); bytes != 0) add(letter_of(c), name(c), bytes);
  }
  if (!timeline.measured.bytes.empty()) add('*', "measured", timeline.measured.at(timeline.peak));
  return table.text();
}

}  // namespace plimsoll::cli
