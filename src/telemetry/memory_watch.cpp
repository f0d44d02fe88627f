#include "telemetry/memory_watch.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/process.h"
#include "base/process_memory.h"
#include "base/units.h"

namespace plimsoll::telemetry {
namespace {

constexpr double kBetweenLooks = 0.1, kBetweenMachines = 2;  // seconds
/// A thirty-second of what the limit allows is little: what is beside it is swapped, or ends a process.
constexpr int64_t kLittlePart = 32;

std::string text(int64_t bytes) { return to_string(Bytes(bytes)); }

}  // namespace

MemorySources system_memory() {
  return {resident_bytes, peak_resident_bytes, [] { return read_machine_memory(); }, now_seconds};
}

MemoryWatch::MemoryWatch(int64_t planned_bytes, MemorySources sources)
    : planned_(planned_bytes), sources_(std::move(sources)) {
  first_available_ = sources_.machine().available_bytes;
  peak_ = sources_.peak_bytes();
  looked_at_machine_ = sources_.seconds();
}

void MemoryWatch::raise(std::string_view phase, int64_t bytes) {
  const auto it = std::ranges::find(phases_, phase, [](const auto& p) { return p.first; });
  if (it == phases_.end())
    phases_.emplace_back(phase, bytes);
  else
    it->second = std::max(it->second, bytes);
}

std::optional<MemoryWarning> MemoryWatch::past_plan(int64_t bytes) {
  if (told_past_plan_ || planned_ <= 0 || bytes <= planned_) return {};
  told_past_plan_ = true;
  return MemoryWarning{"over_plan",
                       fmt::format("this process uses {}, {} more than its plan of {}. This is a bug: please "
                                   "report it, with the output of plimsoll doctor",
                                   text(bytes), text(bytes - planned_), text(planned_)),
                       {{"resident_bytes", bytes}, {"planned_bytes", planned_}}};
}

std::optional<MemoryWarning> MemoryWatch::others() {
  const MachineMemory now = sources_.machine();
  const bool is_little = now.available_bytes < now.limit_bytes / kLittlePart;
  const bool fell = now.available_bytes < first_available_ / 2;
  if (told_others_ || !is_little || !fell) return {};
  told_others_ = true;
  return MemoryWarning{
      "memory_low",
      fmt::format("{} of memory are left {}, {} were left when this run had allocated its own: other "
                  "processes use it. Free memory, or the system will swap or kill a process",
                  text(now.available_bytes),
                  now.limited_by.empty() ? "on this machine" : "under " + now.limited_by,
                  text(first_available_)),
      {{"available_bytes", now.available_bytes}, {"available_at_start_bytes", first_available_}}};
}

std::vector<MemoryWarning> MemoryWatch::look(std::string_view phase) {
  const double now = sources_.seconds();
  if (phase == last_phase_ && now - looked_ < kBetweenLooks) return {};
  looked_ = now;
  last_phase_ = phase;
  const int64_t peak = sources_.peak_bytes();
  const int64_t bytes = peak > peak_ ? peak : sources_.resident_bytes();
  peak_ = std::max(peak_, peak);
  recent_ = std::max(recent_, bytes);
  raise(phase, bytes);
  std::vector<MemoryWarning> warnings;
  if (auto warning = past_plan(bytes)) warnings.push_back(std::move(*warning));
  if (now - looked_at_machine_ < kBetweenMachines) return warnings;
  looked_at_machine_ = now;
  if (auto warning = others()) warnings.push_back(std::move(*warning));
  return warnings;
}

void MemoryWatch::reset() { recent_ = sources_.resident_bytes(); }

}  // namespace plimsoll::telemetry
