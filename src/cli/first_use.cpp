#include "cli/first_use.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <cerrno>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "backends/cpu/kernels/isa.h"
#include "base/host.h"
#include "base/machine_memory.h"
#include "base/process.h"
#include "base/process_memory.h"
#include "cli/child_process.h"
#include "io/descriptor.h"
#include "io/file.h"
#include "io/new_folder.h"
#include "measuring/machine_rates.h"
#include "strategy/machine_rates.h"
#include "strategy/memory_budget.h"

namespace plimsoll::cli {
namespace {

/// Another process measures for three seconds; who waits longer waits for one that was stopped.
constexpr double kMostWaiting = 20;
constexpr auto kLookAgain = std::chrono::milliseconds(50);
/// Measuring takes a third of it.
constexpr int64_t kLeastMemory = int64_t{300} << 20;

/// Whether the folder is this process's alone now. A file system without locks is let pass.
bool take_turn(const io::Descriptor& folder) {
  for (const double start = now_seconds(); ::flock(folder.get(), LOCK_EX | LOCK_NB) != 0;) {
    if (errno != EWOULDBLOCK && errno != EINTR) return true;
    if (now_seconds() - start > kMostWaiting) return false;
    std::this_thread::sleep_for(kLookAgain);
  }
  return true;
}

/// Measuring may be tried again behind a busy moment.
constexpr int64_t kTryAgainSeconds = 600;

/// Of two, what less was taken from.
planner::MachineProfile quieter(planner::MachineProfile before, planner::MachineProfile now) {
  const bool is_better = now.is_busy < before.is_busy || now.product_flops[0] >= before.product_flops[0];
  if (is_better) return now;
  before.measured_at = now.measured_at;
  return before;
}

/// Measured elsewhere, kept here. Gives what is kept.
Result<planner::MachineProfile> measure_and_keep(
    const std::string& path, const std::optional<planner::MachineProfile>& before, int64_t now,
    const std::function<Result<planner::MachineProfile>()>& measure) {
  PLIMSOLL_ASSIGN(const std::string text, in_child_process([&]() -> Result<std::string> {
                    PLIMSOLL_ASSIGN(planner::MachineProfile profile, measure());
                    profile.name = strategy::machine_name();
                    return planner::profile_json(profile);
                  }));
  PLIMSOLL_ASSIGN(planner::MachineProfile profile, planner::parse_profile(text));
  profile.measured_at = now;
  if (before) profile = quieter(*before, std::move(profile));
  PLIMSOLL_TRY(io::write_file_atomically(path, planner::profile_json(profile)));
  return profile;
}

/// Whether there are rates that need not be measured now.
bool is_known(const std::optional<planner::MachineProfile>& kept, int64_t now) {
  if (!kept) return false;
  const bool is_recent = kept->measured_at <= now && now - kept->measured_at < kTryAgainSeconds;
  return kept->is_busy == 0 || is_recent;
}

/// Whether measuring stays within what the run was given, beside this process.
bool has_memory(const settings::RunConfig& config) {
  const MachineMemory memory = read_machine_memory();
  if (memory.available_bytes < kLeastMemory) return false;
  for (const settings::MemoryBudget* budget : {&config.memory.budget, &config.memory.host_budget})
    if (budget->kind != settings::MemoryBudget::Kind::kAuto &&
        strategy::budget_bytes(*budget, memory) < measuring::kFirstRatesBytes + resident_bytes())
      return false;
  return true;
}

}  // namespace

int64_t unix_seconds() {
  using std::chrono::duration_cast, std::chrono::seconds, std::chrono::system_clock;
  return duration_cast<seconds>(system_clock::now().time_since_epoch()).count();
}

void measure_at_first_use(const settings::RunConfig& config,
                          const std::function<Result<planner::MachineProfile>()>& measure,
                          const std::function<int64_t()>& now) {
  if (config.runtime.profile != "auto" || settings::is_for_card(config)) return;
  const std::string isa(cpu::isa_name(cpu::current_isa()));
  const std::string path = strategy::first_rates_path(isa);
  const auto knows = [&] { return is_known(strategy::first_rates(isa), now()); };
  if (path.empty() || knows()) return;
  // A damaged one is an error, which planning brings.
  if (const auto calibrated = strategy::calibrated_rates(isa); !calibrated || *calibrated) return;
  if (!has_memory(config)) return;
  const std::string folder = io::folder_of(path);
  const io::NewFolder made(folder);
  if (!io::create_writable_directory(folder)) return;
  const io::Descriptor turn(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!turn.is_open() || !take_turn(turn) || knows()) return;
  const auto before = strategy::first_rates(isa);
  if (!before && io::is_file(path)) note(path + " is damaged: measuring again");
  const double start = now_seconds();
  const auto kept = measure_and_keep(path, before, now(), measure);
  if (!kept)
    note("this machine is not measured: " + kept.error().message());
  else if (kept->is_busy != 0)
    note(
        "measured this machine while other processes used its CPUs, so estimated times may be too long; "
        "Plimsoll measures again after ten minutes, or by 'plimsoll calibrate'");
  else
    note(fmt::format("measured this machine once in {:.1f} s; 'plimsoll calibrate' measures it in detail",
                     now_seconds() - start));
}

}  // namespace plimsoll::cli
