#include "cli/first_use.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <cerrno>
#include <chrono>
#include <string>
#include <thread>

#include "backends/cpu/kernels/isa.h"
#include "base/child_process.h"
#include "base/machine_memory.h"
#include "base/note.h"
#include "base/process.h"
#include "io/descriptor.h"
#include "io/file.h"
#include "io/new_folder.h"
#include "train/run_profile.h"

namespace plimsoll::cli {
namespace {

/// Another process measures for three seconds; who waits longer waits for one that was stopped.
constexpr double kMostWaiting = 20;
constexpr auto kLookAgain = std::chrono::milliseconds(50);
/// Measuring takes a third of it.
constexpr int64_t kLeastMemory = int64_t{300} << 20;

/// Whether the folder is this process's alone now. A file system without locks is let pass.
bool take_turn(const Descriptor& folder) {
  for (const double start = now_seconds(); ::flock(folder.get(), LOCK_EX | LOCK_NB) != 0;) {
    if (errno != EWOULDBLOCK && errno != EINTR) return true;
    if (now_seconds() - start > kMostWaiting) return false;
    std::this_thread::sleep_for(kLookAgain);
  }
  return true;
}

/// Measured elsewhere, kept here.
Status measure_and_keep(const std::string& path,
                        const std::function<Result<planner::MachineProfile>()>& measure) {
  PLIMSOLL_ASSIGN(const std::string text, in_child_process([&]() -> Result<std::string> {
                    PLIMSOLL_ASSIGN(planner::MachineProfile profile, measure());
                    profile.name = train::machine_name();
                    return planner::profile_json(profile);
                  }));
  PLIMSOLL_TRY(planner::parse_profile(text));
  return write_file_atomically(path, text);
}

}  // namespace

void measure_at_first_use(const RunConfig& config,
                          const std::function<Result<planner::MachineProfile>()>& measure) {
  if (config.runtime.profile != "auto" || train::is_for_card(config)) return;
  const std::string isa(cpu::isa_name(cpu::current_isa()));
  const std::string path = train::first_rates_path(isa);
  if (path.empty() || train::first_rates(isa)) return;
  // A damaged one is an error, which planning brings.
  if (const auto calibrated = train::calibrated_rates(isa); !calibrated || *calibrated) return;
  if (read_machine_memory().available_bytes < kLeastMemory) return;
  const std::string folder = folder_of(path);
  const NewFolder made(folder);
  if (!create_writable_directory(folder)) return;
  const Descriptor turn(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!turn.is_open() || !take_turn(turn) || train::first_rates(isa)) return;
  if (is_file(path)) note(path + " is damaged: measuring again");
  const double start = now_seconds();
  const Status kept = measure_and_keep(path, measure);
  note(kept ? fmt::format("measured this machine in {:.1f} s, once; 'plimsoll calibrate' measures all",
                          now_seconds() - start)
            : "this machine is not measured: " + kept.error().message());
}

}  // namespace plimsoll::cli
