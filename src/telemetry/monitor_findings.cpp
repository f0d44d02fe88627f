#include "telemetry/monitor_findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

namespace plimsoll::telemetry {
namespace {

constexpr double kNoticed = 0.01, kMuch = 0.1;
/// A share of CPUs below which they count as all busy.
constexpr double kIdle = 0.1;

using Intervals = std::span<const MachineInterval>;

std::string percent(double share) { return fmt::format("{:.0f} %", 100 * share); }

/// Weighted by their lengths.
double mean(Intervals all, const std::function<double(const MachineInterval&)>& of) {
  double sum = 0, seconds = 0;
  for (const MachineInterval& i : all) sum += of(i) * i.seconds, seconds += i.seconds;
  return seconds > 0 ? sum / seconds : 0;
}

struct Fall {
  double from = 0, to = 0;
  [[nodiscard]] double share() const { return from > 0 ? 1 - to / from : 0; }
};

/// From the highest that held for a quarter of the samples to the mean of the last quarter.
Fall fall_of(std::vector<double> clocks) {
  std::erase_if(clocks, [](double mhz) { return mhz <= 0; });
  if (clocks.size() < 2) return {};
  const size_t quarter = std::max<size_t>(1, clocks.size() / 4);
  double last = 0;
  for (size_t i = clocks.size() - quarter; i < clocks.size(); ++i)
    last += clocks[i] / static_cast<double>(quarter);
  std::ranges::sort(clocks, std::greater<>());
  return {clocks[quarter - 1], last};
}

void add_clock(const Fall& fall, std::string_view whose, std::string hint,
               std::vector<MachineFinding>& findings) {
  if (fall.share() < kMuch) return;
  findings.push_back(
      {fmt::format("{} fell from {:.1f} to {:.1f} GHz", whose, fall.from / 1000, fall.to / 1000),
       fall.share(), std::move(hint)});
}

void find_cpu(Intervals all, std::vector<MachineFinding>& findings) {
  const double stolen = mean(all, [](const auto& i) { return i.stolen_share; });
  if (stolen >= kNoticed)
    findings.push_back(
        {percent(stolen) + " of the time was stolen by the hypervisor", stolen,
         "the host has more work than CPUs: move the virtual machine, or lower runtime.threads"});
  const double waited = mean(all, [](const auto& i) { return i.disk_wait_share; });
  if (waited >= kNoticed)
    findings.push_back({"the CPUs waited for the disk " + percent(waited) + " of the time", waited,
                        "put the data or memory.offload_dir on a faster disk"});
  const double others = mean(all, [](const auto& i) { return std::max(0.0, i.busy_share - i.own_share); });
  const double idle = mean(all, [](const auto& i) { return 1 - i.busy_share - i.stolen_share; });
  if (others >= kMuch && idle < kIdle)
    findings.push_back({fmt::format("other processes took {} of the CPUs' time", percent(others)), others,
                        "stop them, or leave them CPUs with runtime.threads"});
}

void find_pages(Intervals all, std::vector<MachineFinding>& findings) {
  const double seconds = mean(all, [](const auto& i) { return i.seconds > 0 ? 1.0 : 0.0; });
  if (seconds == 0) return;
  const double pages = mean(
      all, [](const auto& i) { return static_cast<double>(i.major_faults) / std::max(i.seconds, 1e-9); });
  if (pages >= 1)
    findings.push_back({fmt::format("{:.0f} pages a second were read back from the disk", pages), 0,
                        "memory is short: lower memory.budget, or free memory"});
}

void find_card(Intervals all, std::vector<MachineFinding>& findings) {
  std::map<std::string, double> slowed;
  double seconds = 0, busy = 0, known = 0;
  std::vector<double> clocks;
  for (const MachineInterval& i : all) {
    if (!i.card) continue;
    seconds += i.seconds;
    for (const std::string& reason : i.card->slowed_by) slowed[reason] += i.seconds;
    if (i.card->busy_percent >= 0) {
      busy += static_cast<double>(i.card->busy_percent) / 100 * i.seconds;
      known += i.seconds;
    }
    clocks.push_back(static_cast<double>(i.card->clock_mhz));
  }
  if (seconds == 0) return;
  for (const auto& [reason, time] : slowed)
    if (time / seconds >= kMuch)
      findings.push_back(
          {fmt::format("the card was slowed {} of the time: {}", percent(time / seconds), reason), 0,
           "nvidia-smi -q -d PERFORMANCE,POWER,TEMPERATURE has details"});
  if (known > 0 && busy / known < 1 - kMuch)
    findings.push_back({fmt::format("the card was idle {} of the time", percent(1 - busy / known)),
                        1 - busy / known, "plimsoll profile RUN shows what it waited for"});
  add_clock(fall_of(std::move(clocks)), "the card's clock", "check its cooling and power limit", findings);
}

}  // namespace

std::vector<MachineFinding> machine_findings(Intervals all) {
  std::vector<MachineFinding> findings;
  find_cpu(all, findings);
  std::vector<double> clocks;
  for (const MachineInterval& i : all) clocks.push_back(i.mhz);
  add_clock(fall_of(std::move(clocks)), "the CPUs' clock", "check the cooling and the power profile",
            findings);
  find_pages(all, findings);
  find_card(all, findings);
  std::ranges::stable_sort(findings, std::greater<>(), &MachineFinding::share);
  return findings;
}

}  // namespace plimsoll::telemetry
