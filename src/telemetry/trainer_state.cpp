#include "telemetry/trainer_state.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <utility>

#include "io/file.h"
#include "io/json.h"
#include "telemetry/run_log.h"

namespace plimsoll::telemetry {
namespace {

constexpr size_t kPieceBytes = 64 << 10;

/// A text that goes to a file piece by piece.
class TextFile {
 public:
  explicit TextFile(io::AtomicFile& file) : file_(file) {}
  Status add(std::string_view text) {
    buffer_ += text;
    return buffer_.size() < kPieceBytes ? Status(Ok{}) : flush();
  }
  Status flush() {
    PLIMSOLL_TRY(file_.write_at(at_, std::as_bytes(std::span(buffer_))));
    at_ += static_cast<int64_t>(buffer_.size());
    buffer_.clear();
    return Ok{};
  }

 private:
  io::AtomicFile& file_;
  std::string buffer_;
  int64_t at_ = 0;
};

io::Tree figure(const io::Tree& event, std::string_view key) {
  const io::Tree* value = event.find(key);
  return value == nullptr ? io::Tree{} : *value;
}

/// Of what is computed from several events: the mean loss of a step.
struct HistoryCourse {
  double sum = 0;
  int64_t steps = 0, last = 0;
  void add(int64_t step, const io::Tree& mean) {
    if (mean.kind == io::Tree::Kind::kNumber || mean.kind == io::Tree::Kind::kInteger) {
      sum += mean.number * static_cast<double>(step - last);
      steps += step - last;
    }
    last = step;
  }
};

void set_evaluation(io::Tree& entry, const io::Tree& event) {
  const io::Tree* name = event.find("name");
  const std::string prefix = name == nullptr ? "eval_" : "eval_" + name->text + "_";
  entry.set(prefix + "loss", figure(event, "loss"));
  if (const io::Tree* metrics = event.find("metrics"))
    for (const auto& [metric, value] : metrics->members) entry.set(prefix + metric, value);
}

/// The entry of log_history that an event makes; null where it makes none.
io::Tree entry_of(const io::Tree& event, double epoch, HistoryCourse& course) {
  const io::Tree* kind = event.find("event");
  const int64_t step = figure(event, "step").integer;
  io::Tree entry = io::Tree::map({{"epoch", io::Tree::of(epoch)}});
  if (kind->text == "step") {
    entry.set("grad_norm", figure(event, "grad_norm"));
    entry.set("learning_rate", figure(event, "learning_rate"));
    entry.set("loss", figure(event, "loss_mean"));
    course.add(step, figure(event, "loss_mean"));
  } else if (kind->text == "eval") {
    set_evaluation(entry, event);
  } else {
    return {};
  }
  entry.set("step", io::Tree::of(step));
  return entry;
}

io::Tree last_entry(const RunState& s, const settings::RunConfig& config, double epoch,
                    const HistoryCourse& course) {
  const double seconds = *s.seconds, steps = static_cast<double>(s.seconds_steps);
  const auto rate = [&](double n) { return seconds > 0 ? n / seconds : 0.0; };
  return io::Tree::map(
      {{"epoch", io::Tree::of(epoch)},
       {"step", io::Tree::of(s.step)},
       {"total_flos", io::Tree::of(s.flops_per_step * static_cast<double>(s.step))},
       {"train_loss",
        course.steps > 0 ? io::Tree::of(course.sum / static_cast<double>(course.steps)) : io::Tree{}},
       {"train_runtime", io::Tree::of(seconds)},
       {"train_samples_per_second",
        io::Tree::of(rate(steps * static_cast<double>(config.training.global_batch_size)))},
       {"train_steps_per_second", io::Tree::of(rate(steps))}});
}

void set_best(io::Tree& head, const settings::RunConfig& config,
              const std::optional<checkpoints::BestState>& best) {
  const bool known = best && best->step >= 0;
  head.set("best_global_step", known ? io::Tree::of(best->step) : io::Tree{});
  head.set("best_metric", known ? io::Tree::of(best->value) : io::Tree{});
  head.set("best_model_checkpoint",
           known && best->saved_step >= 0
               ? io::Tree::of(checkpoints::checkpoint_path(config.output.dir, best->saved_step))
               : io::Tree{});
}

io::Tree tail_of(const settings::RunConfig& config, const RunState& s, double epochs) {
  return io::Tree::map({{"logging_steps", io::Tree::of(config.training.logging_steps)},
                        {"max_steps", io::Tree::of(s.total_steps)},
                        {"num_input_tokens_seen", io::Tree::of(s.counts_tokens ? s.units : 0)},
                        {"num_train_epochs", io::Tree::of(static_cast<int64_t>(std::ceil(epochs)))},
                        {"save_steps", io::Tree::of(config.output.save_steps)},
                        {"stateful_callbacks", io::Tree::map()},
                        {"total_flos", io::Tree::of(s.flops_per_step * static_cast<double>(s.step))},
                        {"train_batch_size", io::Tree::of(s.micro_batch_size)},
                        {"trial_name", io::Tree{}},
                        {"trial_params", io::Tree{}}});
}

/// `unread`: what kept the events from being read to their end.
Status write_file(const std::string& path, const std::string& events, const settings::RunConfig& config,
                  const RunState& s, Status& unread) {
  const double per_step = static_cast<double>(config.training.global_batch_size) /
                          static_cast<double>(std::max<int64_t>(1, s.sequences_per_epoch));
  const auto epoch_at = [&](int64_t step) { return static_cast<double>(step) * per_step; };
  PLIMSOLL_ASSIGN(io::AtomicFile file, io::AtomicFile::create(path));
  TextFile out(file);
  io::Tree head = io::Tree::map();
  set_best(head, config, s.best);
  head.set("epoch", io::Tree::of(epoch_at(s.step)));
  head.set("eval_steps", io::Tree::of(config.training.eval_steps));
  head.set("global_step", io::Tree::of(s.step));
  head.set("is_hyper_param_search", io::Tree::of(false));
  head.set("is_local_process_zero", io::Tree::of(true));
  head.set("is_world_process_zero", io::Tree::of(true));
  std::string text = io::to_json(head);
  text.pop_back();
  PLIMSOLL_TRY(out.add(text + ", \"log_history\": ["));
  HistoryCourse course;
  std::string_view separator = "\n  ";
  const auto add = [&](const io::Tree& entry) -> Status {
    PLIMSOLL_TRY(out.add(separator));
    separator = ",\n  ";
    return out.add(io::to_json(entry));
  };
  Status added = Ok{};
  unread = for_each_event(events, [&](std::string_view line) -> Status {
    const int64_t step = step_of_event(line);
    if (step < 0 || step > s.step) return Ok{};
    const auto event = io::parse_json(line);
    if (!event) return Ok{};
    const io::Tree entry = entry_of(*event, epoch_at(step), course);
    return added = entry.is_null() ? Status(Ok{}) : add(entry);
  });
  PLIMSOLL_TRY(added);
  if (s.seconds) PLIMSOLL_TRY(add(last_entry(s, config, epoch_at(s.step), course)));
  PLIMSOLL_TRY(out.add("], " + io::to_json(tail_of(config, s, epoch_at(s.total_steps))).substr(1) + "\n"));
  PLIMSOLL_TRY(out.flush());
  return file.commit();
}

/// Of the file that has the name; 0 where none has it.
ino_t inode_of(const std::string& path) {
  struct stat info = {};
  return ::stat(path.c_str(), &info) == 0 ? info.st_ino : 0;
}

}  // namespace

Status write_trainer_state(const std::string& path, const std::string& events,
                           const settings::RunConfig& config, const RunState& s) {
  const ino_t before = inode_of(path);
  Status unread = Ok{};
  Status written = write_file(path, events, config, s, unread);
  if (written) return unread;
  // An older step's would go into this one's checkpoint.
  if (inode_of(path) == before) ::unlink(path.c_str());
  return written;
}

}  // namespace plimsoll::telemetry
