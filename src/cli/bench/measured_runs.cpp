#include "cli/bench/measured_runs.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <span>

#include "io/file.h"
#include "io/json.h"
#include "telemetry/run_log.h"

namespace plimsoll::cli {
namespace {

constexpr int64_t kMostBytes = int64_t{1} << 20;
/// Of a log: the first steps of a run stand there.
constexpr int64_t kMostOfLog = int64_t{4} << 20;
constexpr std::string_view kProfiled = "estimate.json";

Error at(const Error& error, const std::string& path) {
  return {error.code, error.what, path,
          "give the folder of a run, or of 'plimsoll profile', on this machine"};
}

Result<planner::StepTimes> read_event(std::string_view text, const std::string& path) {
  auto tree = io::parse_json(text, {.max_bytes = kMostBytes, .max_depth = 8});
  if (!tree) return at(tree.error(), path);
  auto times = planner::parse_step_times(*tree);
  if (!times) return at(times.error(), path);
  return times;
}

Result<planner::StepTimes> read_log(const std::string& path) {
  PLIMSOLL_ASSIGN(const io::ReadFile file, io::ReadFile::open(path));
  std::string text(static_cast<size_t>(std::min(file.size_bytes(), kMostOfLog)), '\0');
  PLIMSOLL_TRY(file.read_at(0, std::as_writable_bytes(std::span(text))));
  std::optional<std::string_view> last;
  std::string_view rest = text;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    if (line.find("\"estimate\"") != std::string_view::npos) last = line;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  if (last) return read_event(*last, path);
  return Error{
      ErrorCode::kBadData, "it has no measured step", path,
      "runs write one after six steps under a calibrated profile; 'plimsoll profile RUN --output DIR' "
      "always does: --from DIR"};
}

}  // namespace

Result<planner::StepTimes> read_measured_run(const std::string& folder) {
  std::error_code ignored;
  const std::string profiled = folder + "/" + std::string(kProfiled);
  if (!std::filesystem::exists(profiled, ignored))
    return read_log(folder + "/" + std::string(telemetry::kEventsFile));
  PLIMSOLL_ASSIGN(const std::string text, io::read_small_file(profiled, kMostBytes));
  return read_event(text, profiled);
}

}  // namespace plimsoll::cli
