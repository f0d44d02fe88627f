#include "telemetry/run_snapshot.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/process.h"

namespace plimsoll::telemetry {

Result<std::unique_ptr<RunSnapshot>> RunSnapshot::create(const std::string& path, int64_t most_entries) {
  PLIMSOLL_ASSIGN(io::AtomicFile file, io::AtomicFile::create(path));
  return std::unique_ptr<RunSnapshot>(new RunSnapshot(std::move(file), most_entries));
}

void RunSnapshot::begin(const passes::SessionPlan& session) {
  start_seconds_ = now_seconds();
  entries_ = planner::trace_entries(session);
  // Programs that make no entries count as one, so that runs of them are bounded too.
  for (int64_t& entries : entries_) entries = std::max<int64_t>(1, entries);
  const int64_t least = entries_.empty() ? 1 : *std::min_element(entries_.begin(), entries_.end());
  runs_.reserve(static_cast<size_t>(most_entries_ / least + 1));
}

void RunSnapshot::ran(int program) {
  ++num_ran_;
  const int64_t entries = entries_[static_cast<size_t>(program)];
  // The first that does not fit ends it: a run with holes would be no run.
  if (num_ran_ - 1 > static_cast<int64_t>(runs_.size()) || num_entries_ + entries > most_entries_) return;
  num_entries_ += entries;
  runs_.push_back({program, static_cast<int64_t>((now_seconds() - start_seconds_) * 1e6)});
}

Status RunSnapshot::write(const passes::SessionPlan& session) {
  return planner::save_memory_snapshot(session, runs_, file_);
}

std::string RunSnapshot::left_out() const {
  const auto kept = static_cast<int64_t>(runs_.size());
  return kept == num_ran_ ? "" : fmt::format("the first {} of {} program runs", kept, num_ran_);
}

}  // namespace plimsoll::telemetry
