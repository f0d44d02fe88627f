#include "planner/report/report_disk.h"

#include <fmt/format.h>

#include "base/units.h"

namespace plimsoll::planner {

std::string disk_line(const PlanReport& r) {
  if (!r.disk) return {};
  const DiskReport& d = *r.disk;
  const auto text = [](int64_t bytes) { return to_string(Bytes(bytes)); };
  std::string out = "Disk: ";
  if (!d.checkpoints)
    out += fmt::format("checkpoints of {}, all of them are kept, and ", text(d.checkpoint_bytes));
  else if (*d.checkpoints > 0)
    out += fmt::format("{} checkpoint{} of {} at once and ", *d.checkpoints, *d.checkpoints == 1 ? "" : "s",
                       text(d.checkpoint_bytes));
  out += fmt::format("final/ of {}", text(d.final_bytes));
  if (d.cache_bytes > 0) out += fmt::format(", about {} of tokenized data", text(d.cache_bytes));
  if (d.offload_bytes > 0) out += fmt::format(", {} of offload", text(d.offload_bytes));
  return out + (d.total_bytes ? fmt::format("; at most {}\n", text(*d.total_bytes)) : "\n");
}

io::Tree disk_event(const DiskReport& d) {
  const auto known = [](std::optional<int64_t> n) { return n ? io::Tree::of(*n) : io::Tree{}; };
  return io::Tree::map({{"checkpoint_bytes", io::Tree::of(d.checkpoint_bytes)},
                        {"checkpoints", known(d.checkpoints)},
                        {"final_bytes", io::Tree::of(d.final_bytes)},
                        {"cache_bytes", io::Tree::of(d.cache_bytes)},
                        {"offload_bytes", io::Tree::of(d.offload_bytes)},
                        {"total_bytes", known(d.total_bytes)},
                        {"free_bytes", known(d.free_bytes)}});
}

}  // namespace plimsoll::planner
