#include "checkpoints/disk_need.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <filesystem>
#include <utility>

#include "base/units.h"
#include "checkpoints/checkpoint.h"
#include "checkpoints/tensor_files.h"
#include "io/atomic_directory.h"
#include "settings/best_model.h"

namespace plimsoll::checkpoints {
namespace {

int64_t file_bytes(const std::vector<StoredTensor>& tensors) {
  if (tensors.empty()) return 0;
  const auto layout = layout_of(tensors);
  return layout ? layout->file_bytes() : 0;  // what is wrong with it, saving says
}

/// How many will be saved; a great many where nobody knows.
int64_t num_saves(const SaveSchedule& s) {
  if (s.save_steps <= 0) return 0;
  if (!s.total_steps) return INT64_MAX;
  const int64_t last = *s.total_steps > s.step && *s.total_steps % s.save_steps != 0 ? 1 : 0;
  return *s.total_steps / s.save_steps - s.step / s.save_steps + last;
}

/// Saves one after the other until every following one finds what it leaves.
class Simulation {
 public:
  explicit Simulation(const SaveSchedule& schedule) : s_(schedule) {
    for (const PresentCheckpoint& p : s_.present) there_.push_back(p);
  }

  DiskNeed operator()() {
    int64_t saves = num_saves(s_);
    if (s_.total_limit) {
      const auto settled = static_cast<int64_t>(s_.present.size()) + *s_.total_limit + 1;
      for (saves = std::min(saves, settled); saves > 0; --saves) save();
    } else if (saves > 0) {
      save();
      taken_ += (saves - 1) * checkpoint_bytes();
      need_.bytes = std::max(need_.bytes, taken_);
      need_.checkpoints = std::max(need_.checkpoints, static_cast<int64_t>(there_.size()) + saves - 1);
    }
    need_.bytes = std::max(need_.bytes, taken_ + s_.bytes.final);  // what stood there goes afterwards
    need_.bytes += 2 * s_.state_bytes + s_.events_bytes;           // the state is written beside its old one
    return need_;
  }

 private:
  /// Without a limit early ones have short histories, and most such runs are stopped long before their end:
  /// one copy is counted, in operator().
  [[nodiscard]] int64_t checkpoint_bytes() const {
    return s_.bytes.checkpoint + (s_.total_limit ? s_.state_bytes : 0);
  }
  void add(int64_t bytes) {
    there_.push_back({bytes});
    taken_ += bytes;
    need_.bytes = std::max(need_.bytes, taken_);
    need_.checkpoints = std::max(need_.checkpoints, static_cast<int64_t>(there_.size()));
  }
  void save() {
    add(checkpoint_bytes());
    if (!std::exchange(has_saved_, true))
      std::erase_if(there_, [&](const PresentCheckpoint& p) {
        if (p.stale) taken_ -= p.bytes;
        return p.stale;
      });
    while (s_.total_limit && static_cast<int64_t>(there_.size()) > *s_.total_limit) {
      taken_ -= there_.front().bytes;
      there_.pop_front();
    }
  }

  const SaveSchedule& s_;
  std::deque<PresentCheckpoint> there_;
  int64_t taken_ = 0;  ///< beyond what lay there; less than nothing where larger ones went
  bool has_saved_ = false;
  DiskNeed need_;
};

/// The greatest limit on checkpoints whose need is at most `free`; 0 where there is none.
int64_t limit_within(SaveSchedule schedule, int64_t free) {
  const auto fits = [&](int64_t limit) {
    schedule.total_limit = limit;
    return Simulation(schedule)().bytes + kSaveSlackBytes <= free;
  };
  int64_t low = 0, high = 1000;  // more than anybody keeps
  while (low < high) {
    const int64_t middle = (low + high + 1) / 2;
    if (fits(middle))
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

int64_t folder_bytes(const std::string& path) {
  int64_t bytes = 0;
  std::error_code code;
  for (std::filesystem::recursive_directory_iterator it(path, code), end; !code && it != end;
       it.increment(code)) {
    std::error_code unreadable;
    const uintmax_t size = it->is_regular_file(unreadable) ? it->file_size(unreadable) : 0;
    if (!unreadable) bytes += static_cast<int64_t>(size);
  }
  return bytes;
}

/// Nobody waits for more.
constexpr int64_t kMostLines = 1 << 20;

/// Lines of steps and evaluations that a run tells.
int64_t num_lines(const settings::RunConfig& config, int64_t total_steps) {
  const settings::TrainingSettings& t = config.training;
  const int64_t evaluations = t.eval_steps > 0 ? total_steps / t.eval_steps : 0;
  const int64_t lines = total_steps / std::max<int64_t>(1, t.logging_steps) + evaluations + 2;
  return std::min(lines, kMostLines);
}

}  // namespace

SavedBytes saved_bytes(const models::Model& model, const passes::SessionPlan& session,
                       const FinalFormat& format) {
  const int64_t weights = file_bytes(parameter_tensors(model, session));
  const int64_t checkpoint = weights + file_bytes(optimizer_tensors(model, session));
  if (model.adapters()) return {checkpoint, weights};
  const auto final = FinalWeights::create(model, session, format);
  return {checkpoint, final ? final->bytes() : weights};
}

SaveSchedule save_schedule(const settings::RunConfig& config, std::optional<int64_t> total_steps,
                           int64_t step, const SavedBytes& bytes) {
  const settings::OutputSettings& output = config.output;
  std::optional<int64_t> limit = output.save_total_limit;
  if (limit && best_metric(config.training)) limit = std::max<int64_t>(2, *limit);  // the best and the newest
  // As they are: 150 and 330 bytes a step, an evaluation's more; the rest of the state about 500.
  constexpr int64_t kStateBytes = 1024, kStateBytesPerLine = 192, kEventBytesPerLine = 400;
  const int64_t lines = num_lines(config, total_steps.value_or(0));
  int64_t save_steps = output.save_steps;
  // Before the data is known an epoch is as good as a step.
  if (output.save_strategy == "epoch" && save_steps == 0 && !total_steps) {
    total_steps = static_cast<int64_t>(std::ceil(config.training.num_epochs.value_or(1.0)));
    save_steps = 1;
  }
  return {.step = step,
          .total_steps = total_steps,
          .save_steps = save_steps,
          .total_limit = limit,
          .bytes = bytes,
          .state_bytes = kStateBytes + lines * kStateBytesPerLine,
          .events_bytes = lines * kEventBytesPerLine};
}

std::optional<DiskNeed> disk_need(const SaveSchedule& schedule) {
  if (schedule.save_steps > 0 && !schedule.total_limit && !schedule.total_steps) return std::nullopt;
  return Simulation(schedule)();
}

Status check_disk(const SaveSchedule& schedule, const std::string& directory) {
  const std::optional<DiskNeed> need = disk_need(schedule);
  if (!need) return Ok{};
  Status enough = io::check_free_space(directory, need->bytes + kSaveSlackBytes);
  if (enough) return enough;
  Error error = std::move(enough).error();
  const std::string checkpoints =
      need->checkpoints == 0
          ? ""
          : fmt::format("{} checkpoint{} of {} at once and ", need->checkpoints,
                        need->checkpoints == 1 ? "" : "s", to_string(Bytes(schedule.bytes.checkpoint)));
  error.what += fmt::format(": {}final/ of {}", checkpoints, to_string(Bytes(schedule.bytes.final)));
  const std::optional<int64_t> free = io::free_space(directory);
  const int64_t limit = schedule.save_steps > 0 && free ? limit_within(schedule, *free) : 0;
  if (limit > 0 && limit < schedule.total_limit.value_or(INT64_MAX))
    error.hint =
        fmt::format("output.save_total_limit={} fits (one more is there while it is written); or ", limit) +
        error.hint;
  return error;
}

std::vector<PresentCheckpoint> present_checkpoints(const std::string& directory,
                                                   const std::vector<std::string>& stale) {
  std::vector<PresentCheckpoint> present;
  for (const FoundCheckpoint& found : find_checkpoints(directory))
    present.push_back(
        {folder_bytes(found.path), std::find(stale.begin(), stale.end(), found.path) != stale.end()});
  std::reverse(present.begin(), present.end());
  return present;
}

}  // namespace plimsoll::checkpoints
