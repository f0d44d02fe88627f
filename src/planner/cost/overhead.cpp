#include "planner/cost/overhead.h"

#include <fmt/format.h>

#include <cinttypes>
#include <cstdio>
#include <optional>

#include "base/process.h"
#include "io/file.h"

namespace plimsoll::planner {
namespace {

std::optional<ProcessOverhead> given;

}  // namespace

void set_overhead(const ProcessOverhead& overhead) { given = overhead; }

std::string overhead_path() { return executable_path() + ".overhead"; }

ProcessOverhead load_overhead() {
  if (given) return *given;
  ProcessOverhead overhead;
  const auto text = io::read_small_file(overhead_path(), 4096);
  if (!text) return overhead;
  ProcessOverhead read;
  if (std::sscanf(text->c_str(), "base_bytes %" SCNd64 " per_op_bytes %" SCNd64 " per_thread_bytes %" SCNd64,
                  &read.base_bytes, &read.per_op_bytes, &read.per_thread_bytes) != 3)
    return overhead;
  constexpr int64_t kMost = int64_t{1} << 32;
  for (const int64_t bytes : {read.base_bytes, read.per_op_bytes, read.per_thread_bytes})
    if (bytes < 0 || bytes > kMost) return overhead;
  read.measured = true;
  return read;
}

Status store_overhead(const ProcessOverhead& o, const std::string& path) {
  return io::write_file_atomically(path, fmt::format("base_bytes {} per_op_bytes {} per_thread_bytes {}\n",
                                                     o.base_bytes, o.per_op_bytes, o.per_thread_bytes));
}

}  // namespace plimsoll::planner
