#include "reports/follow.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "base/text_layout.h"
#include "io/file.h"
#include "io/json.h"
#include "io/line_reader.h"
#include "telemetry/run_log.h"

namespace plimsoll::reports {
namespace {

constexpr size_t kPieceBytes = 256 << 10;
constexpr size_t kMostMessages = 1000;

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string text;
  std::getline(file, text);
  return text;
}

/// Whether a process of that number is one of this program: another may have got the number since.
bool is_of_this_program(int64_t process) {
  if (::kill(static_cast<pid_t>(process), 0) != 0 && errno == ESRCH) return false;
  return first_line(fmt::format("/proc/{}/comm", process)) == first_line("/proc/self/comm");
}

/// 0 where the kernel does not tell.
int64_t resident_bytes_of(int64_t process) {
  std::ifstream file(fmt::format("/proc/{}/statm", process));
  int64_t all = 0, resident = 0;
  file >> all >> resident;
  return file ? resident * ::sysconf(_SC_PAGESIZE) : 0;
}

bool is_this_host(const io::Tree& environment) {
  std::array<char, 256> name{};
  const io::Tree* host = environment.find("host");
  return ::gethostname(name.data(), name.size() - 1) == 0 && host != nullptr && host->text == name.data();
}

/// Whether nothing has been written to it for longer than a write takes.
bool is_old(const std::string& path) {
  constexpr auto kSettled = std::chrono::seconds(5);
  std::error_code code;
  const auto written = std::filesystem::last_write_time(path, code);
  return !code && std::filesystem::file_time_type::clock::now() - written > kSettled;
}

int64_t integer_of(const io::Tree& event, std::string_view key) {
  const io::Tree* value = event.find(key);
  return value != nullptr && value->kind == io::Tree::Kind::kInteger ? value->integer : 0;
}

}  // namespace

RunFollower::RunFollower(std::string folder)
    : folder_(std::move(folder)), path_(fmt::format("{}/{}", folder_, telemetry::kEventsFile)) {}

Result<RunFollower> RunFollower::open(const std::string& folder) {
  RunFollower follower(folder);
  if (!io::is_file(follower.path_))
    return Error{ErrorCode::kBadData, "this is no folder of a run: it has no events.jsonl", folder,
                 "name a run's output.dir; plimsoll train writes events.jsonl there when it begins"};
  return follower;
}

Status RunFollower::look() {
  // Before the file: what a process that has gone had to say is then all there.
  if (state_ != RunState::kEnded) look_at_process();
  PLIMSOLL_ASSIGN(const io::ReadFile file, io::ReadFile::open(path_));
  if (file.size_bytes() < offset_) {  // a process that goes on takes out what it will repeat
    offset_ = 0, rest_.clear(), passes_over_ = false;
    losses_ = {};
    last_.reset();
    summary_ = {};
  }
  std::string piece;
  while (offset_ < file.size_bytes()) {
    piece.resize(std::min<size_t>(kPieceBytes, static_cast<size_t>(file.size_bytes() - offset_)));
    PLIMSOLL_TRY(file.read_at(offset_, std::as_writable_bytes(std::span(piece))));
    offset_ += static_cast<int64_t>(piece.size());
    for (size_t begin = 0; begin < piece.size();) {
      const size_t end = piece.find('\n', begin);
      rest_.append(piece, begin, end == std::string::npos ? end : end - begin);
      if (rest_.size() > static_cast<size_t>(io::LineReader::kMostBytes)) {
        passes_over_ = true;
        rest_.clear();
      }
      if (end == std::string::npos) break;
      if (!passes_over_) line(rest_);
      rest_.clear();
      passes_over_ = false;
      begin = end + 1;
    }
  }
  if (state_ == RunState::kRuns && !rest_.empty() && !is_seen_ && is_old(path_)) take_torn();
  return Ok{};
}

/// Lines are written whole: one that stays torn is the last of a process that has gone.
void RunFollower::take_torn() {
  if (!passes_over_ && io::parse_json(rest_)) line(rest_);  // its end alone is missing
  rest_.clear();
  if (state_ == RunState::kRuns) state_ = RunState::kGone;
}

void RunFollower::look_at_process() {
  is_seen_ = false;
  const auto text = io::read_small_file(folder_ + "/environment.json", 1 << 20);
  const auto environment = text ? io::parse_json(*text) : Result<io::Tree>(io::Tree{});
  if (!environment) return;
  total_steps_ = std::max<int64_t>(0, integer_of(*environment, "total_steps"));
  const int64_t process = integer_of(*environment, "process");
  if (process <= 0 || process > (int64_t{1} << 30) || !is_this_host(*environment)) return;
  const bool runs = is_of_this_program(process);
  is_seen_ = runs;
  resident_bytes_ = runs ? resident_bytes_of(process) : 0;
  state_ = runs ? RunState::kRuns : RunState::kGone;
}

void RunFollower::line(std::string_view text) {
  StepRow row;
  if (read_step_line(text, row)) {
    take_step(row);
    return;
  }
  EventsReader reader;
  reader.line(text);
  RunEvents events = reader.finish();
  if (!events.plan.is_null()) {
    // Of a process that goes on: an earlier one's summary was not the end.
    const io::Tree* device = events.plan.find("device");
    if (device != nullptr) budget_bytes_ = std::max<int64_t>(0, integer_of(*device, "budget_bytes"));
    if (state_ == RunState::kEnded) state_ = RunState::kRuns;
    summary_ = {};
  }
  if (!events.summary.is_null()) {
    summary_ = std::move(events.summary);
    state_ = RunState::kEnded;
  }
  if (!events.steps.empty()) unit_ = events.unit;
  for (const StepRow& step : events.steps) take_step(step);
  if (messages_.size() >= kMostMessages) messages_.clear();
  for (const EvalRow& e : events.evals)
    messages_.push_back(fmt::format("eval{} at step {}: loss {:.4f}",
                                    e.name.empty() ? "" : " of " + harmless(e.name), e.step, e.loss));
  for (const CheckpointRow& c : events.checkpoints)
    messages_.push_back(fmt::format("saved {} at step {}", harmless(c.path), c.step));
  for (const std::string& warning : events.warnings) messages_.push_back("warning: " + harmless(warning));
}

void RunFollower::take_step(const StepRow& row) {
  losses_.add(row[Figure::kLoss]);
  const double seconds = row[Figure::kStepSeconds];
  if (std::isfinite(seconds) && seconds >= 0)
    step_seconds_ = !last_ ? seconds : 0.9 * step_seconds_ + 0.1 * seconds;
  last_ = row;
}

std::vector<std::string> RunFollower::take_messages() { return std::exchange(messages_, {}); }

}  // namespace plimsoll::reports
