#include "telemetry/machine_sample.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <thread>

#include "base/kernel_file.h"
#include "base/process.h"
#include "base/resource_use.h"

namespace plimsoll::telemetry {
namespace {

constexpr int64_t kSector = 512;  // of /proc/diskstats, whatever the disk's

/// The lines of a kernel file as far as it is read.
template <typename Take>
void for_each_line(const KernelFile& file, Take take) {
  for (const char* at = file.text.data(); *at != '\0';) {
    const char* end = std::strchr(at, '\n');
    if (end == nullptr) return;  // cut
    take(std::string(at, end));
    at = end + 1;
  }
}

/// "cpu  user nice system idle iowait irq softirq steal guest guest_nice": guests are in user already.
void read_ticks(const std::string& root, MachineSample& s) {
  const KernelFile file((root + "/proc/stat").c_str());
  long long n[8] = {};
  std::sscanf(file.text.data(), "cpu %lld %lld %lld %lld %lld %lld %lld %lld", &n[0], &n[1], &n[2], &n[3],
              &n[4], &n[5], &n[6], &n[7]);
  s.busy_ticks = n[0] + n[1] + n[2] + n[5] + n[6];
  s.idle_ticks = n[3];
  s.disk_wait_ticks = n[4];
  s.stolen_ticks = n[7];
}

double mean_mhz(const std::string& root) {
  double sum = 0;
  int count = 0;
  const KernelFile current((root + "/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq").c_str());
  if (const double khz = std::atof(current.text.data()); khz > 0) return khz / 1000;
  for_each_line(KernelFile((root + "/proc/cpuinfo").c_str()), [&](const std::string& line) {
    if (!line.starts_with("cpu MHz")) return;
    sum += std::atof(line.c_str() + std::min(line.size(), line.find(':') + 1));
    ++count;
  });
  return count > 0 ? sum / count : -1;
}

/// Whole disks: partitions and what lies on disks would count twice.
void read_disks(const std::string& root, MachineSample& s) {
  for_each_line(KernelFile((root + "/proc/diskstats").c_str()), [&](const std::string& line) {
    char name[64] = {};
    long long read = 0, written = 0;
    if (std::sscanf(line.c_str(), "%*u %*u %63s %*u %*u %lld %*u %*u %*u %lld", name, &read, &written) != 3)
      return;
    struct stat info = {};
    const std::string block = root + "/sys/block/" + name;
    if (::stat(block.c_str(), &info) != 0) return;
    for (const char* prefix : {"loop", "ram", "dm-", "md", "zram"})
      if (std::string_view(name).starts_with(prefix)) return;
    s.disk_read_bytes = std::max<int64_t>(0, s.disk_read_bytes) + read * kSector;
    s.disk_written_bytes = std::max<int64_t>(0, s.disk_written_bytes) + written * kSector;
  });
}

int64_t difference(int64_t from, int64_t to) {
  return from < 0 || to < 0 ? -1 : std::max<int64_t>(0, to - from);
}

}  // namespace

MachineSample read_machine_sample(const std::string& root) {
  MachineSample s;
  s.seconds = now_seconds();
  s.cpus = std::max(1U, std::thread::hardware_concurrency());
  const rusage use = resource_use();
  s.process_seconds = cpu_seconds(use);
  s.minor_faults = use.ru_minflt;
  s.major_faults = use.ru_majflt;
  read_ticks(root, s);
  s.mhz = mean_mhz(root);
  const KernelFile io((root + "/proc/self/io").c_str());
  s.read_bytes = io.number_after("\nread_bytes:");
  s.written_bytes = io.number_after("\nwrite_bytes:");
  read_disks(root, s);
  return s;
}

MachineInterval interval(const MachineSample& from, const MachineSample& to) {
  MachineInterval i;
  i.seconds = to.seconds - from.seconds;
  const auto ticks = [](const MachineSample& s) {
    return s.busy_ticks + s.idle_ticks + s.disk_wait_ticks + s.stolen_ticks;
  };
  const auto all = static_cast<double>(std::max<int64_t>(1, ticks(to) - ticks(from)));
  const auto share = [&](int64_t a, int64_t b) {
    return std::clamp(static_cast<double>(b - a) / all, 0.0, 1.0);
  };
  i.busy_share = share(from.busy_ticks, to.busy_ticks);
  i.disk_wait_share = share(from.disk_wait_ticks, to.disk_wait_ticks);
  i.stolen_share = share(from.stolen_ticks, to.stolen_ticks);
  if (i.seconds > 0) i.process_cpus = (to.process_seconds - from.process_seconds) / i.seconds;
  i.own_share = std::clamp(i.process_cpus / static_cast<double>(to.cpus), 0.0, 1.0);
  i.mhz = to.mhz;
  i.minor_faults = to.minor_faults - from.minor_faults;
  i.major_faults = to.major_faults - from.major_faults;
  i.read_bytes = difference(from.read_bytes, to.read_bytes);
  i.written_bytes = difference(from.written_bytes, to.written_bytes);
  i.disk_read_bytes = difference(from.disk_read_bytes, to.disk_read_bytes);
  i.disk_written_bytes = difference(from.disk_written_bytes, to.disk_written_bytes);
  i.card = to.card;
  return i;
}

MachineInterval joined(const MachineInterval& first, const MachineInterval& second) {
  MachineInterval i = second;
  i.seconds = first.seconds + second.seconds;
  const double part = i.seconds > 0 ? first.seconds / i.seconds : 0.5;
  const auto mix = [&](double MachineInterval::*field) {
    i.*field = part * first.*field + (1 - part) * second.*field;
  };
  for (const auto field :
       {&MachineInterval::process_cpus, &MachineInterval::own_share, &MachineInterval::busy_share,
        &MachineInterval::disk_wait_share, &MachineInterval::stolen_share, &MachineInterval::mhz})
    mix(field);
  i.minor_faults += first.minor_faults;
  i.major_faults += first.major_faults;
  for (const auto field : {&MachineInterval::read_bytes, &MachineInterval::written_bytes,
                           &MachineInterval::disk_read_bytes, &MachineInterval::disk_written_bytes})
    i.*field = first.*field < 0 || second.*field < 0 ? -1 : first.*field + second.*field;
  return i;
}

}  // namespace plimsoll::telemetry
