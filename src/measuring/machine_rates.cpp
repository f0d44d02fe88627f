#include "measuring/machine_rates.h"

#include <fmt/format.h>

#include "measuring/copy_rates.h"
#include "measuring/quiet.h"

namespace plimsoll::measuring {
namespace {

/// Where the parts of a calibration stand on its way, from 0 to 1.
constexpr double kKernelsEnd = 0.8, kCopiesEnd = 0.88;

Shown part_of(const Shown& shown, double begin, double end) {
  return [&shown, begin, end](double fraction, const std::string& what) {
    shown(begin + fraction * (end - begin), what);
  };
}

}  // namespace

planner::MachineProfile calibrated_rates(const std::string& disk_folder, const Shown& shown,
                                         const std::function<void(const std::string&)>& note) {
  const Quiet quiet;
  const KernelPlan plan{.groups = calibration_samples(),
                        .rounds = 3,
                        .seconds_for_rounds = 38,
                        .spread_bytes = int64_t{32} << 20,
                        .memory_elements = int64_t{16} << 20,
                        .fewer_threads = true};
  planner::MachineProfile profile = measure_kernels(plan, part_of(shown, 0, kKernelsEnd));
  if (const Status copies = measure_copies({}, profile, part_of(shown, kKernelsEnd, kCopiesEnd)); !copies)
    note("copies are not measured: " + copies.error().message());
  if (const Status disk = measure_disk({}, disk_folder, profile, part_of(shown, kCopiesEnd, 1)); !disk)
    note("the disk is not measured: " + disk.error().message());
  profile.is_busy = quiet.holds() ? 0 : 1;
  if (profile.is_busy != 0)
    note(
        fmt::format("other work took the processors away {:.0f} times a second, so rates may be too low: "
                    "calibrate again when the machine is quiet",
                    quiet.interruptions()));
  profile.rates = "calibrated";
  profile.source = "measured by plimsoll calibrate";
  return profile;
}

Result<planner::MachineProfile> card_rates(const devices::DeviceSpec& card, planner::MachineProfile profile,
                                           const Shown& shown) {
  PLIMSOLL_ASSIGN(const auto device, devices::make_device(card));
  const KernelPlan plan{.groups = card_samples(),
                        .rounds = 2,
                        .seconds_for_rounds = 20,
                        .spread_bytes = int64_t{256} << 20,
                        .memory_elements = int64_t{64} << 20,
                        .most_bytes = card.cuda.memory.count / 4};
  PLIMSOLL_ASSIGN(profile,
                  measure_card_kernels(plan, *device, std::move(profile), part_of(shown, 0, kCopiesEnd)));
  const CopyPlan copies{.memory_bytes = int64_t{256} << 20};
  PLIMSOLL_TRY(measure_copies(copies, *device, profile, part_of(shown, kCopiesEnd, 1)));
  profile.rates = "calibrated";
  profile.source = "measured by plimsoll calibrate";
  return profile;
}

planner::MachineProfile first_rates() {
  const Quiet quiet;
  const KernelPlan plan{.groups = first_samples(),
                        .seconds_per_op = 0.01,
                        .rounds = 3,
                        .seconds_for_rounds = 1.8,
                        .most_seconds = 2.2,
                        .spread_bytes = int64_t{16} << 20};
  planner::MachineProfile profile = measure_kernels(plan, [](double, const std::string&) {});
  profile.is_busy = quiet.holds() ? 0 : 1;
  profile.rates = "measured";
  profile.source = "measured at first use";
  return profile;
}

}  // namespace plimsoll::measuring
