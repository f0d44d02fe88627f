#include "training/roll_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

namespace plimsoll::training {
namespace {

/// Below it, ranks of tiny steps differ by nothing that matters.
constexpr double kLeastSeconds = 1e-3;

Error disagree(std::string what, int rank) {
  return {ErrorCode::kBadData, std::move(what), fmt::format("rank {}", rank),
          "start all ranks with the same run file, settings, data and build"};
}

std::string trimmed(const std::string& line) {
  const size_t first = line.find_first_not_of(" \t");
  return first == line.npos ? "" : line.substr(first);
}

/// The first lines in which two runs differ; empty where none do.
std::string difference(const std::string& first, const std::string& other, int rank) {
  std::istringstream a(first), b(other);
  for (std::string x, y;;) {
    const bool has_x = static_cast<bool>(std::getline(a, x)), has_y = static_cast<bool>(std::getline(b, y));
    if (!has_x && !has_y) return "";
    if (!has_x) x.clear();
    if (!has_y) y.clear();
    if (x != y)
      return fmt::format("settings differ: '{}' on rank 0, '{}' on rank {}", trimmed(x), trimmed(y), rank);
  }
}

/// The slowest, and the lower one of two medians: of two ranks one may be slow.
RankTimes times_of(std::vector<double> seconds) {
  const auto slowest = std::ranges::max_element(seconds);
  RankTimes times{slowest - seconds.begin(), *slowest, 0};
  std::ranges::sort(seconds);
  times.median_seconds = seconds[(seconds.size() - 1) / 2];
  return times;
}

}  // namespace

Status compare_reports(const RankReport& first, const RankReport& other, int rank) {
  if (std::string differs = difference(first.settings, other.settings, rank); !differs.empty())
    return disagree(std::move(differs), rank);
  if (other.plan != first.plan)
    return disagree(fmt::format("plans differ: checksum {:016x} on rank 0, {:016x} on rank {}", first.plan,
                                other.plan, rank),
                    rank);
  if (other.step != first.step)
    return disagree(fmt::format("steps differ: rank 0 has finished step {}, rank {} step {}", first.step,
                                rank, other.step),
                    rank);
  if (other.targets != first.targets || other.length != first.length)
    return disagree(
        fmt::format("the data of step {} differs: {} targets in sequences of {} on rank 0, {} of {} "
                    "on rank {}",
                    first.step, first.targets, first.length, other.targets, other.length, rank),
        rank);
  return Ok{};
}

std::string report_text(const RankReport& r) {
  return fmt::format("{} {} {} {} {:a} {}\n{}", r.step, r.plan, r.targets, r.length, r.seconds,
                     r.stop.empty() ? "-" : r.stop, r.settings);
}

RankReport parse_report(std::string_view text) {
  RankReport r;
  const size_t end = std::min(text.find('\n'), text.size());
  std::istringstream in{std::string(text.substr(0, end))};
  std::string seconds;
  in >> r.step >> r.plan >> r.targets >> r.length >> seconds >> r.stop;
  r.seconds = std::strtod(seconds.c_str(), nullptr);
  if (r.stop == "-") r.stop.clear();
  r.settings = text.substr(std::min(end + 1, text.size()));
  return r;
}

Status RollCall::report(const RankReport& own) {
  PLIMSOLL_ASSIGN(const std::vector<std::string> texts, group_.collect(report_text(own)));
  if (group_.rank() != 0) return Ok{};
  std::vector<RankReport> reports;
  stop_.clear();
  for (size_t rank = 0; rank < texts.size(); ++rank) {
    reports.push_back(parse_report(texts[rank]));
    PLIMSOLL_TRY(compare_reports(reports.front(), reports.back(), static_cast<int>(rank)));
    if (rank > 0 && !reports.back().stop.empty() && stop_.empty())
      stop_ = fmt::format("{} at rank {}", reports.back().stop, rank);
  }
  if (own.step > 0) note_times(reports);
  return Ok{};
}

Result<RankDecision> RollCall::decide(RankDecision decision) {
  PLIMSOLL_ASSIGN(const std::string text,
                  group_.share(std::string(1, static_cast<char>('0' + static_cast<int>(decision)))));
  return static_cast<RankDecision>(text.empty() ? 0 : text.front() - '0');
}

void RollCall::note_times(const std::vector<RankReport>& reports) {
  std::vector<double> seconds;
  for (const RankReport& r : reports) seconds.push_back(r.seconds);
  sums_.resize(seconds.size(), 0.0);
  for (size_t rank = 0; rank < seconds.size(); ++rank) sums_[rank] += seconds[rank];
  ++summed_;
  times_ = times_of(std::move(seconds));
}

std::optional<std::string> RollCall::slow_rank() {
  if (summed_ < kSlowSteps) return std::nullopt;
  std::vector<double> means = sums_;
  for (double& mean : means) mean /= static_cast<double>(summed_);
  sums_.clear();
  summed_ = 0;
  const RankTimes t = times_of(std::move(means));
  if (t.slowest_seconds < kSlowFactor * t.median_seconds ||
      t.slowest_seconds - t.median_seconds < kLeastSeconds)
    return std::nullopt;
  return fmt::format("rank {} is slow: {:.3g} s of compute a step, the median of the ranks is {:.3g} s",
                     t.slowest, t.slowest_seconds, t.median_seconds);
}

}  // namespace plimsoll::training
