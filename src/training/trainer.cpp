#include "training/trainer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/process.h"
#include "base/span_log.h"
#include "checkpoints/final_record.h"
#include "checkpoints/finite_weights.h"
#include "ops/loss_scale.h"
#include "settings/settings.h"
#include "training/initialise.h"

namespace plimsoll::training {
namespace {

/// Steps in a row that may overflow under a static scale, which cannot give way.
constexpr int64_t kMostSkipped = 50;
/// The scalars' block.
enum Scalar : uint8_t { kGradScale, kGroups, kAverageShare };
/// In a message.
constexpr size_t kTensorsNamed = 4;

}  // namespace

Status Trainer::write_scalars() {
  const ScopedSpan span(SpanLane::kStep, "scalars of the step");
  const settings::TrainingSettings& t = config_.training;
  optimizers::StepHyper hyper{schedule_->rate(schedule_step()),
                              t.adam_beta1,
                              t.adam_beta2,
                              t.adam_epsilon,
                              t.weight_decay,
                              schedule_step()};
  hyper.momentum = t.momentum;
  hyper.dampening = t.dampening;
  hyper.nesterov = t.nesterov;
  hyper.schedule_factor = schedule_->factor(schedule_step());
  hyper.optimizer = t.optimizer;
  hyper.adafactor = t.adafactor;
  hyper.muon = t.muon;
  PLIMSOLL_TRY(session_->begin(scalars_));
  optimizers::write_groups(hyper, groups_, session_->of<float>(scalars_, kGroups).data());
  // Without a target there is no gradient, whatever it is divided by.
  session_->of<float>(scalars_, kGradScale)[0] =
      static_cast<float>(1.0 / static_cast<double>(std::max<int64_t>(1, num_targets_)));
  if (t.ema_decay)
    session_->of<float>(scalars_, kAverageShare)[0] =
        step_ == 1 ? 1.0F : static_cast<float>(1 - *t.ema_decay);
  PLIMSOLL_TRY(session_->commit(scalars_));
  train_feeder_->set_random(t.seed, step_);
  return session_->fill(planner::kLossState, std::bit_cast<uint32_t>(planner::kLossStart));
}

Status Trainer::take_batch(StepEvent& event) {
  event.samples = config_.training.global_batch_size;
  event.unit = prepared_.task->unit().name;
  bucket_ = prepared_.buckets.lengths.size() - 1;
  if (!loader_) {
    const datasets::ExampleCounts drawn = prepared_.task->drawn_counts();
    event.units = event.samples * drawn.units;
    num_targets_ = event.samples * drawn.targets;
    return Ok{};
  }
  const ScopedSpan span(SpanLane::kStep, "wait for data");
  const double start = now_seconds();
  PLIMSOLL_ASSIGN(batch_, loader_->next());
  event.data_wait_seconds = now_seconds() - start;
  bucket_ = train_feeder_->bucket_of(batch_.length);
  event.units = batch_.counts.units;
  num_targets_ = batch_.counts.targets;
  return Ok{};
}

Status Trainer::feed(int64_t micro_batch, size_t bucket) {
  const ScopedSpan span(SpanLane::kStep, "inputs to the device");
  const int64_t first = own_rows_.first + micro_batch * prepared_.split.micro_batch_size;
  if (loader_) return train_feeder_->copy(batch_, first, own_rows_.end, bucket);
  const uint64_t key =
      static_cast<uint64_t>(step_) * 0x9e3779b97f4a7c15ULL + static_cast<uint64_t>(micro_batch) + 1;
  return train_feeder_->synthesise(key, first, bucket);
}

void Trainer::find_programs() {
  std::vector<std::string_view> scalars = {planner::kGradScaleState, optimizers::kGroupsState};
  if (config_.training.ema_decay) scalars.push_back(optimizers::kAverageShareState);
  scalars_ = session_->make_block(scalars);
  const passes::SessionPlan& plan = session_->plan();
  update_program_ = plan.find_program({passes::ProgramRole::kUpdate});
  logits_program_ = plan.find_program({passes::ProgramRole::kLogits});
  gather_program_ = plan.find_program({passes::ProgramRole::kGather});
  const planner::Accumulation accumulation =
      planner::planned(strategy::accumulation_of(config_, prepared_.split), plan);
  const std::vector<int64_t>& lengths = prepared_.buckets.lengths;
  for (const int64_t length : lengths) {
    std::vector<int>& programs = micro_programs_.emplace_back();
    for (const auto& [id, times] : planner::runs_per_step(accumulation, planner::bucket_of(length, lengths)))
      if (passes::has_backward(id.role))
        programs.insert(programs.end(), static_cast<size_t>(times), plan.find_program(id));
  }
}

Status Trainer::run_program(int program) {
  const ScopedSpan span(SpanLane::kStep, "issue of ops");
  const int64_t every = config_.debug.verify_steps;
  if (every <= 0 || step_ % every != 0) return session_->run(program);
  Status ran = session_->run_twice(program);
  if (ran || ran.error().code != ErrorCode::kDiverged) return ran;
  if (writer_) (void)next_saved(/*wait=*/true);  // of a step before this one
  return save_failed(std::move(ran).error().at(fmt::format("step {}", step_)));
}

Status Trainer::run_micro_batches(StepEvent& event) {
  const std::vector<int>& programs = micro_programs_[bucket_];
  for (int64_t m = 0; m < std::ssize(programs); ++m) {
    PLIMSOLL_TRY(feed(m, bucket_));
    if (dump_ && dump_->wants_logits()) {
      if (const size_t longest = micro_programs_.size() - 1; longest != bucket_)
        PLIMSOLL_TRY(feed(m, longest));
      PLIMSOLL_TRY(session_->run(logits_program_));
      PLIMSOLL_TRY(dump_->write_logits(*session_, m));
    }
    PLIMSOLL_TRY(run_program(programs[static_cast<size_t>(m)]));
  }
  if (dump_) PLIMSOLL_TRY(dump_->write_gradients(*session_, scratch_));
  if (dump_) PLIMSOLL_TRY(dump_->write_quantized(*session_));
  if (dump_) PLIMSOLL_TRY(dump_->write_operands(*session_));
  if (update_program_ >= 0) PLIMSOLL_TRY(run_program(update_program_));
  const ScopedSpan span(SpanLane::kStep, "loss and norm to the host");
  PLIMSOLL_ASSIGN(const float loss, session_->value<float>(planner::kLossState));
  event.loss =
      static_cast<float>(static_cast<double>(loss) / static_cast<double>(std::max<int64_t>(1, num_targets_)));
  if (std::isnan(event.loss)) event.loss = std::fabs(event.loss);  // a NaN has no sign
  PLIMSOLL_ASSIGN(const float norm, session_->value<float>(optimizers::kGradNormState));
  event.grad_norm = std::fabs(norm);
  return Ok{};
}

Status Trainer::read_scaler() {
  if (!config_.scales_loss()) return Ok{};
  return session_->read(optimizers::kScalerState, std::as_writable_bytes(std::span(scaler_)));
}

int64_t Trainer::schedule_step() const { return std::max<int64_t>(1, step_ - skipped_); }

Result<std::string> Trainer::overflowed() const {
  std::vector<float> squares(
      static_cast<size_t>(session_->type(optimizers::kGradSquaresState).num_elements()));
  PLIMSOLL_TRY(session_->read(optimizers::kGradSquaresState, std::as_writable_bytes(std::span(squares))));
  std::vector<std::string_view> names;
  size_t update = 0;  // of trained parameters alone, in their order
  for (const models::Parameter& parameter : prepared_.model->parameters()) {
    if (!parameter.trained || std::isfinite(squares[update++])) continue;
    for (const models::ParameterView& view : parameter.views) names.push_back(view.name);
  }
  const size_t shown = std::min<size_t>(names.size(), kTensorsNamed);
  const std::string rest = names.size() > shown ? fmt::format(" and {} more", names.size() - shown) : "";
  return fmt::format("{}{}", fmt::join(names.begin(), names.begin() + static_cast<int64_t>(shown), ", "),
                     rest);
}

Status Trainer::check_scale() {
  const settings::LossScaleSettings& settings = config_.training.loss_scale;
  ++skipped_in_a_row_;
  const double scale = static_cast<double>(scaler_[ops::kScale]);
  const bool least = !settings.fixed && scale < settings.min_scale;
  // A benchmark's steps are not a run's: it ends where it likes, having measured them.
  const bool trained_nothing = loader_ && step_ == total_steps_ && skipped_ == step_;
  if (!least && !trained_nothing && !(settings.fixed && skipped_in_a_row_ >= kMostSkipped)) return Ok{};
  const std::string what =
      least ? fmt::format("the loss scale fell to {:g}, below training.loss_scale.min_scale ({:g})", scale,
                          settings.min_scale)
      : settings.fixed
          ? fmt::format("{} steps in a row overflowed under the static loss scale {:g}, {} of the run's {}",
                        skipped_in_a_row_, scale, skipped_, step_)
          : fmt::format("every step of the run overflowed, and the loss scale has only fallen to {:g}",
                        scale);
  const std::string other = config_.training.precision == settings::Precision::kFp16
                                ? "train with training.precision=bf16"
                                : "drop the overrides to fp16";
  PLIMSOLL_ASSIGN(const std::string tensors, overflowed());
  Error overflow{ErrorCode::kDiverged, fmt::format("{}: not finite are the gradients of {}", what, tensors),
                 fmt::format("step {}", step_),
                 // Checkpoints of another scale or rate are another run's.
                 fmt::format("lower training.{}, or {}",
                             settings.fixed ? "loss_scale, with --resume never"
                             : least        ? "learning_rate, with --resume never"
                                            : "loss_scale.init_scale, with --resume never, raise "
                                              "training.max_steps",
                             other)};
  return loaded_
             ? checkpoints::blame_weights(std::move(overflow), loaded_->path, strategy::num_threads(config_))
             : overflow;
}

Status Trainer::check_finite(const StepEvent& event) {
  if (event.skipped) return check_scale();
  skipped_in_a_row_ = 0;
  if (std::isfinite(event.loss) && std::isfinite(event.grad_norm)) return Ok{};
  Error diverged{
      ErrorCode::kDiverged,
      fmt::format("the loss is {} and the gradient norm {}", event.loss, event.grad_norm),
      fmt::format("step {}", step_),
      "lower training.learning_rate, lengthen training.warmup_steps or set training.max_grad_norm"};
  return loaded_
             ? checkpoints::blame_weights(std::move(diverged), loaded_->path, strategy::num_threads(config_))
             : diverged;
}

Result<StepEvent> Trainer::step() {
  const double start = now_seconds();
  ++step_;
  if (group_ != nullptr) group_->note_progress(step_, ranks::Phase::kComputing);
  StepEvent event;
  event.step = step_;
  PLIMSOLL_TRY(read_scaler());
  if (config_.scales_loss()) event.loss_scale = scaler_[ops::kScale];
  event.learning_rate = schedule_->rate(schedule_step());
  PLIMSOLL_TRY(take_batch(event));
  units_ += event.units;
  PLIMSOLL_TRY(write_scalars());
  if (!config_.debug.dump_dir.empty()) {
    PLIMSOLL_ASSIGN(StepDump dump,
                    StepDump::create(config_, prepared_, session_->plan(), step_, /*initial=*/false));
    dump_ = std::make_unique<StepDump>(std::move(dump));
  }
  is_gathered_ = false;
  PLIMSOLL_TRY(run_micro_batches(event));
  PLIMSOLL_TRY(read_scaler());
  if (event.loss_scale) event.skipped = scaler_[ops::kSkipped] != 0;
  if (event.skipped) ++skipped_;
  if (dump_) {
    PLIMSOLL_TRY(dump_->write_loss(static_cast<float>(event.loss)));
    PLIMSOLL_TRY(dump_->write_parameters(*session_));
    PLIMSOLL_TRY(write_counts());
    PLIMSOLL_TRY(dump_->write_buffers(*session_));
    PLIMSOLL_TRY(dump_->finish());
    dump_.reset();
  }
  event.seconds = now_seconds() - start;
  if (group_ != nullptr) group_->note_progress(step_, ranks::Phase::kOther);
  PLIMSOLL_TRY(check_finite(event));
  figures_.loss = event.loss;
  return event;
}

Status Trainer::gather_parameters() {
  PLIMSOLL_TRY(session_->run(gather_program_));
  PLIMSOLL_TRY(session_->synchronize());
  (void)group_->take_wait_seconds();  // none of a step's
  is_gathered_ = true;
  return Ok{};
}

/// What is queued talks to other ranks, too. An error is the next program's as well.
bool Trainer::is_evaluation_stopped() const {
  if (!shares_parameters()) return is_asked(stop_);
  if (!session_->synchronize()) return true;
  std::array stop{std::byte{is_first() && is_asked(stop_)}};
  return !group_->communicator().broadcast(0, stop) || stop[0] != std::byte{0};
}

Result<std::optional<EvalEvent>> Trainer::evaluate(const EvalProgress& progress) {
  PLIMSOLL_ASSIGN(const std::optional<EvalEvent> event,
                  evaluator_->run(
                      step_, [this] { return is_evaluation_stopped(); }, progress));
  if (group_ != nullptr) (void)group_->take_wait_seconds();  // none of a step's
  if (event) {
    evaluated_step_ = step_;
    figures_.eval = event;
    PLIMSOLL_TRY(compare_evaluation(*event));
  }
  return event;
}

Error Trainer::save_failed(Error error) const {
  const auto whole = checkpoints::find_checkpoints(config_.output.dir);
  if (!whole.empty())
    error.hint += "; the run resumes from " + whole.front().path + " when it is started again";
  return error;
}

/// A save in flight may still read them.
Status Trainer::write_counts() {
  if (prepared_.model->batch_norms().empty() || restored_) return Ok{};
  if (writer_) writer_->wait_for_sources();
  return counts_.write(*session_, step_);
}

Status Trainer::start_checkpoint() {
  PLIMSOLL_TRY(write_counts());
  auto started = writer_->start(counters());
  if (!started) return save_failed(std::move(started).error());
  saved_step_ = step_;
  return Ok{};
}

Result<std::optional<checkpoints::SaveReport>> Trainer::next_saved(bool wait) {
  if (wait) writer_->finish();
  auto saved = writer_->poll();
  if (!saved) return std::optional<checkpoints::SaveReport>();
  if (!*saved) return save_failed(std::move(*saved).error());
  return std::optional(std::move(**saved));
}

std::string Trainer::checkpoint_folder() const {
  if (checkpoint_ && checkpoint_->manifest.step == saved_step_) return checkpoint_->path;
  return checkpoints::checkpoint_path(config_.output.dir, saved_step_);
}

Result<checkpoints::SaveReport> Trainer::save_final() {
  PLIMSOLL_TRY(write_counts());
  figures_.steps = step_;
  figures_.units = units_;
  figures_.changes = manifest_.changes;
  auto saved = writer_->save_final(counters(), model_card(config_, prepared_, figures_));
  if (!saved) return save_failed(std::move(saved).error());
  return saved;
}

bool Trainer::final_is_right() const {
  const std::optional<checkpoints::Checkpoint>& held = restored_ ? restored_ : checkpoint_;
  const std::string& folder = config_.output.dir;
  if (!checkpoint_ || checkpoint_->manifest.step != step_ ||
      !writer_->files().is_final_of(*held, checkpoints::final_path(folder), strategy::num_threads(config_)))
    return false;
  const auto record = checkpoints::open_final_record(checkpoints::record_path(folder));
  return record && record->run.manifest.step == step_ &&
         is_record_of(*record, held->manifest, checkpoints::final_path(folder));
}

}  // namespace plimsoll::training
