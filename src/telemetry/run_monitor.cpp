#include "telemetry/run_monitor.h"

#include <utility>

#include "base/process.h"
#include "strategy/run_device.h"

namespace plimsoll::telemetry {
namespace {

/// Kept for the sentences at the end: where they are more, each two become one.
constexpr size_t kMostIntervals = 512;

void set_known(io::Tree& event, std::string_view name, int64_t value) {
  if (value >= 0) event.set(std::string(name), io::Tree::of(value));
}

io::Tree card_of(const devices::CardSample& c) {
  io::Tree card = io::Tree::map();
  set_known(card, "busy_percent", c.busy_percent);
  set_known(card, "memory_busy_percent", c.memory_busy_percent);
  set_known(card, "memory_used_bytes", c.memory_used_bytes);
  set_known(card, "memory_total_bytes", c.memory_total_bytes);
  set_known(card, "clock_mhz", c.clock_mhz);
  set_known(card, "memory_clock_mhz", c.memory_clock_mhz);
  if (c.milliwatts >= 0) card.set("watts", io::Tree::of(static_cast<double>(c.milliwatts) / 1000));
  set_known(card, "celsius", c.celsius);
  std::vector<io::Tree> reasons;
  for (const std::string& reason : c.slowed_by) reasons.push_back(io::Tree::of(reason));
  card.set("slowed_by", io::Tree::list(std::move(reasons)));
  return card;
}

}  // namespace

io::Tree machine_event(const MachineInterval& i) {
  io::Tree event = io::Tree::map({{"event", io::Tree::of(std::string("machine"))},
                                  {"step", io::Tree::of(i.step)},
                                  {"seconds", io::Tree::of(i.seconds)},
                                  {"process_cpus", io::Tree::of(i.process_cpus)},
                                  {"cpu_own_share", io::Tree::of(i.own_share)},
                                  {"cpu_busy_share", io::Tree::of(i.busy_share)},
                                  {"cpu_disk_wait_share", io::Tree::of(i.disk_wait_share)},
                                  {"cpu_stolen_share", io::Tree::of(i.stolen_share)}});
  if (i.mhz > 0) event.set("cpu_mhz", io::Tree::of(i.mhz));
  event.set("minor_faults", io::Tree::of(i.minor_faults));
  event.set("major_faults", io::Tree::of(i.major_faults));
  set_known(event, "read_bytes", i.read_bytes);
  set_known(event, "written_bytes", i.written_bytes);
  set_known(event, "disk_read_bytes", i.disk_read_bytes);
  set_known(event, "disk_written_bytes", i.disk_written_bytes);
  if (i.card) event.set("card", card_of(*i.card));
  return event;
}

RunMonitor::RunMonitor(const settings::RunConfig& config) : every_(config.output.monitor_seconds) {
  if (every_ <= 0) return;
  const devices::DeviceSpec spec = strategy::device_spec(config, 1);
  if (spec.kind == devices::DeviceKind::kCuda)
    if (auto card = devices::open_card_monitor(spec.cuda.ordinal)) card_ = std::move(*card);
  last_ = look();
  intervals_.reserve(kMostIntervals);
}

void RunMonitor::keep(MachineInterval interval) {
  if (intervals_.size() == kMostIntervals) {
    for (size_t i = 0; i < kMostIntervals / 2; ++i)
      intervals_[i] = joined(intervals_[2 * i], intervals_[2 * i + 1]);
    intervals_.resize(kMostIntervals / 2);
  }
  intervals_.push_back(std::move(interval));
}

MachineSample RunMonitor::look() const {
  MachineSample sample = read_machine_sample();
  if (card_) sample.card = card_->sample();
  return sample;
}

io::Tree RunMonitor::after(int64_t step) {
  if (every_ <= 0 || now_seconds() - last_.seconds < every_) return {};
  const MachineSample now = look();
  MachineInterval since = interval(last_, now);
  since.step = step;
  last_ = now;
  io::Tree event = machine_event(since);
  keep(std::move(since));
  return event;
}

}  // namespace plimsoll::telemetry
