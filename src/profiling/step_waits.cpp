#include "profiling/step_waits.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <string>

namespace plimsoll::profiling {
namespace {

/// As backends/cpu/thread_pool.cpp, datasets/loader.cpp and checkpoints/checkpoint_writer.cpp call their
/// threads.
constexpr std::string_view kComputing = "compute", kLoading = "loader", kSaving = "checkpoints";

struct ThreadTimes {
  double ran = 0, waited = 0;  ///< seconds; for a CPU
};
ThreadTimes times_of(const std::string& folder) {
  // Nanoseconds that it ran, nanoseconds that it waited for a CPU, slices.
  ThreadTimes times;
  if (std::ifstream(folder + "/schedstat") >> times.ran >> times.waited)
    return {1e-9 * times.ran, 1e-9 * times.waited};
  return {};
}

/// Of /proc/stat's "cpu user nice system idle iowait ...", in ticks. What runs at a lower priority than this
/// process would give way to it.
double idle_seconds() {
  std::string cpu;
  double user = 0, nice = 0, system = 0, idle = 0, disk_wait = 0;
  if (!(std::ifstream("/proc/stat") >> cpu >> user >> nice >> system >> idle >> disk_wait)) return 0;
  static const auto ticks = static_cast<double>(std::max(1L, sysconf(_SC_CLK_TCK)));
  const bool is_low = getpriority(PRIO_PROCESS, 0) > 0;
  return (idle + disk_wait + (is_low ? 0 : nice)) / ticks;
}

}  // namespace

StepWaits step_waits() {
  StepWaits waits;
  waits.taken_seconds[0] = times_of("/proc/thread-self").waited;
  std::error_code code;
  for (std::filesystem::directory_iterator it("/proc/self/task", code), end; !code && it != end;
       it.increment(code)) {
    std::string name;
    if (!(std::ifstream(it->path() / "comm") >> name)) continue;
    if (name != kComputing && name != kLoading && name != kSaving) continue;
    const ThreadTimes times = times_of(it->path().string());
    if (name == kLoading) waits.loading_seconds += times.ran;
    if (name == kSaving) waits.saving_seconds += times.ran;
    if (name != kComputing) continue;
    const std::string id = it->path().filename().string();
    int64_t thread = 0;
    std::from_chars(id.data(), id.data() + id.size(), thread);
    waits.taken_seconds[thread] = times.waited;
  }
  waits.idle_seconds = idle_seconds();
  std::ifstream io("/proc/self/io");
  std::string key;
  for (int64_t bytes = 0; io >> key >> bytes;)
    if (key == "read_bytes:") waits.read_bytes = bytes;
  return waits;
}

double StepWaits::taken_seconds_since(const StepWaits& before) const {
  double own = 0, sum = 0;
  for (const auto& [thread, seconds] : taken_seconds) {
    const auto then = before.taken_seconds.find(thread);
    if (then == before.taken_seconds.end()) continue;
    sum += seconds - then->second;
    if (thread == 0) own = seconds - then->second;
  }
  return taken_seconds.empty() ? 0 : std::max(own, sum / static_cast<double>(taken_seconds.size()));
}

}  // namespace plimsoll::profiling
