#include "cli/profile/rates_text.h"

#include <fmt/format.h>

namespace plimsoll::cli {
namespace {

std::string gigabytes(double bytes_per_second) { return fmt::format("{:.2f} GB/s", 1e-9 * bytes_per_second); }

/// "; kernels beside it take 12 % longer".
std::string slowdown(double kernel_seconds) {
  return fmt::format("kernels take {:.0f} % longer meanwhile", 100 * kernel_seconds);
}

}  // namespace

std::string copies_text(const planner::MachineProfile& p) {
  std::string text;
  if (p.copy_in_beside_kernels > 0)
    text += fmt::format("  copies        in {}, out {}; during kernels {}, {}\n                {}\n",
                        gigabytes(p.copy_in_bandwidth), gigabytes(p.copy_out_bandwidth),
                        gigabytes(p.copy_in_beside_kernels), gigabytes(p.copy_out_beside_kernels),
                        slowdown(p.copy_kernel_seconds));
  if (p.disk.empty()) return text;
  text += fmt::format(
      "  disk          read {}, write {}; both at once {}, {}\n"
      "                during kernels {}, {}; {}\n"
      "                out of the cache {}; of {}\n",
      gigabytes(p.disk_read_bandwidth), gigabytes(p.disk_write_bandwidth),
      gigabytes(p.disk_read_beside_write), gigabytes(p.disk_write_beside_read),
      gigabytes(p.disk_read_beside_kernels), gigabytes(p.disk_write_beside_kernels),
      slowdown(p.disk_kernel_seconds), gigabytes(p.disk_cached_bandwidth), p.disk);
  return text;
}

}  // namespace plimsoll::cli
