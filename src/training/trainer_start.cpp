// Starts a trainer: data, the output folder, the checkpoint to resume from, memory, initial parameters.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/units.h"
#include "checkpoints/adapter_start.h"
#include "checkpoints/disk_need.h"
#include "checkpoints/final_record.h"
#include "checkpoints/fp16_range.h"
#include "io/model_weights.h"
#include "settings/micro_batch.h"
#include "settings/settings.h"
#include "training/initialise.h"
#include "training/model_files.h"
#include "training/trainer.h"

namespace plimsoll::training {
namespace {

/// Whether a run has the same bits on both instruction sets: AVX-512 with and without instructions for bf16
/// differs in bf16 products alone.
bool same_bits(std::string_view a, std::string_view b, bool bf16) {
  const auto plain = [&](std::string_view isa) {
    return !bf16 && (isa == "avx512_bf16" || isa == "amx") ? std::string_view("avx512") : isa;
  };
  return plain(a) == plain(b);
}

/// Offsets of everything in the plan: the same plan, the same number.
uint64_t plan_checksum(const passes::SessionPlan& plan) {
  io::Checksum sum;
  for (const passes::PoolBytes& pool : plan.pools)
    sum.add(fmt::format("{} {} ", pool.persistent, pool.arena));
  for (const passes::SessionState& s : plan.states) sum.add(fmt::format("{} {};", s.decl.name, s.offset));
  for (const passes::Program& p : plan.programs) {
    sum.add(p.graph.name);
    sum.add(std::as_bytes(std::span(p.plan.offsets)));
  }
  return sum.value();
}

}  // namespace

Result<std::unique_ptr<Trainer>> Trainer::create(const settings::RunConfig& config,
                                                 strategy::Prepared prepared, runtime::Device& device,
                                                 const TrainerOptions& options) {
  std::unique_ptr<Trainer> trainer(new Trainer(config, std::move(prepared)));
  trainer->isa_ = device.target().instruction_set();
  trainer->stop_ = options.stop;
  trainer->scratch_.resize(static_cast<size_t>(trainer->prepared_.host_scratch_bytes));
  PLIMSOLL_TRY(trainer->take_share(options));
  PLIMSOLL_TRY(trainer->open_data(options));
  if (!options.synthetic_data) {
    PLIMSOLL_TRY(trainer->take_output_folder(options));
    PLIMSOLL_TRY(trainer->choose_checkpoint(options));
    if (trainer->finished_) return trainer;
    if (!trainer->checkpoint_) PLIMSOLL_TRY(trainer->check_places(0));
    if (trainer->is_first())
      PLIMSOLL_TRY(io::write_file_atomically(config.output.dir + "/run.yaml",
                                             settings::run_config_yaml(config, config.output.dir)));
  }
  if (!config.debug.dump_dir.empty()) PLIMSOLL_TRY(io::create_writable_directory(config.debug.dump_dir));
  passes::SessionPlan plan = std::move(trainer->prepared_.programs.session);
  PLIMSOLL_ASSIGN(trainer->session_,
                  runtime::Session::create(
                      device, std::move(plan),
                      {.poison = config.debug.poison,
                       .communicator = options.group == nullptr ? nullptr : &options.group->communicator()}));
  if (options.programs != nullptr) {
    options.programs->begin(trainer->session_->plan());
    trainer->session_->set_run_observer([to = options.programs](int program) { to->ran(program); });
  }
  trainer->find_programs();
  trainer->train_feeder_ = std::make_unique<BatchFeeder>(*trainer->session_, *trainer->prepared_.task,
                                                         trainer->prepared_.buckets.lengths);
  if (trainer->evaluator_)
    trainer->evaluator_->bind(*trainer->session_, trainer->scratch_, trainer->prepared_);
  PLIMSOLL_TRY(trainer->initialise(options));
  PLIMSOLL_ASSIGN(trainer->counts_,
                  UpdateCounts::read(*trainer->prepared_.model, *trainer->session_, trainer->step_,
                                     trainer->prepared_.split.grad_accum_steps));
  if (options.synthetic_data) return trainer;
  if (trainer->is_first()) PLIMSOLL_TRY(trainer->make_writer(options));
  PLIMSOLL_ASSIGN(trainer->loader_,
                  datasets::Loader::start(*trainer->train_data_, trainer->prepared_.loader,
                                          trainer->step_ * config.training.global_batch_size));
  return trainer;
}

Status Trainer::open_data(const TrainerOptions& options) {
  int64_t num_sequences = config_.training.global_batch_size;
  if (!options.synthetic_data) {
    preprocessing::RunData files;
    if (options.data) {
      files = *options.data;
    } else {
      PLIMSOLL_ASSIGN(files,
                      preprocessing::prepare_data(config_, {.vocab_size = prepared_.vocab_size(),
                                                            .num_threads = strategy::num_threads(config_),
                                                            .note = options.note,
                                                            .stop = options.stop}));
    }
    PLIMSOLL_ASSIGN(datasets::TrainingData train,
                    datasets::TrainingData::open(
                        files.train, strategy::data_options(config_, prepared_, files, /*eval=*/false)));
    train_data_ = std::make_unique<datasets::TrainingData>(std::move(train));
    num_sequences = train_data_->num_examples();
    for (const std::string& line : preprocessing::packing_notes(*train_data_)) options.note(line);
    if (config_.data.buckets.given()) options.note(preprocessing::bucket_note(prepared_.buckets));
    if (config_.evaluates_while_training() && (is_first() || shares_parameters())) {
      PLIMSOLL_ASSIGN(evaluator_, Evaluator::open(config_, files, prepared_));
      for (const std::string& line : evaluator_->notes()) options.note("evaluation: " + line);
    }
  }
  if (train_data_) settle_epochs(config_, num_sequences);
  total_steps_ = plimsoll::settings::total_steps(config_.training, num_sequences);
  PLIMSOLL_ASSIGN(settings::Schedule schedule, settings::make_schedule(config_.training, total_steps_));
  schedule_ = std::make_unique<settings::Schedule>(std::move(schedule));
  return Ok{};
}

Status Trainer::take_share(const TrainerOptions& options) {
  group_ = options.group;
  const int64_t ranks = config_.distributed.num_ranks(), batch = config_.training.global_batch_size;
  own_rows_ = {0, batch};
  if (ranks == 1 || options.synthetic_data) return Ok{};
  if (group_ == nullptr || group_->ranks() != ranks)
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("distributed.ranks is {}, and {}", ranks,
                             group_ == nullptr ? "no launcher has started this process as one of them"
                                               : fmt::format("{} have been started", group_->ranks())),
                 "distributed.ranks", fmt::format("run: plimsoll launch --ranks {} -- train …", ranks)};
  const int64_t share = ceil_div(batch, ranks), first = group_->rank() * share;
  own_rows_ = {first, std::min(batch, first + share)};
  return Ok{};
}

RankReport Trainer::first_report() const {
  settings::RunConfig shown = config_;
  shown.distributed.rank.reset();  // what alone differs
  return {.step = step_, .plan = manifest_.plan, .settings = settings::run_config_yaml(shown)};
}

RankReport Trainer::report_of(const StepEvent& event) const {
  return {.step = event.step,
          .plan = manifest_.plan,
          .targets = num_targets_,
          .length = batch_.length,
          // A rank may wait while it computes.
          .seconds = std::max(0.0, event.seconds - event.data_wait_seconds - group_->take_wait_seconds())};
}

Status Trainer::take_output_folder(const TrainerOptions& options) {
  if (!is_first()) {
    PLIMSOLL_ASSIGN(choice_, checkpoints::choose_checkpoints(options.resume, config_.output.dir));
    return Ok{};
  }
  PLIMSOLL_TRY(io::create_writable_directory(config_.output.dir));
  PLIMSOLL_ASSIGN(lock_, io::DirectoryLock::take(config_.output.dir));
  PLIMSOLL_TRY(checkpoints::recover_final_record(config_.output.dir, strategy::num_threads(config_)));
  const auto is_ours = [](std::string_view name) {
    return name == checkpoints::kFinalFolder || name == checkpoints::kRecordFolder ||
           checkpoints::checkpoint_step(name);
  };
  PLIMSOLL_ASSIGN(const auto found, checkpoints::list_checkpoints(config_.output.dir));
  PLIMSOLL_TRY(io::clean_directory(config_.output.dir, is_ours, found.empty()));
  PLIMSOLL_ASSIGN(choice_, checkpoints::choose_checkpoints(options.resume, config_.output.dir));
  return Ok{};
}

Result<checkpoints::CheckpointManifest> Trainer::describe_run() {
  checkpoints::CheckpointManifest m;
  m.total_steps = total_steps_;
  m.seed = config_.training.seed;
  m.num_sequences = train_data_->num_examples();
  m.num_data_tokens = train_data_->num_units();
  PLIMSOLL_ASSIGN(m.data, train_data_->fingerprint(scratch_));
  if (settings::starts_pretrained(config_.model)) {
    // Weights that a resume does not need any more may be gone; what a start needs is said where it is read.
    PLIMSOLL_ASSIGN(const std::string folder, settings::model_directory(config_.model));
    if (auto weights = io::ModelWeights::open(folder)) {
      PLIMSOLL_ASSIGN(m.weights, weights->fingerprint());
    }
  }
  m.plan = plan_checksum(prepared_.programs.session);
  m.isa = isa_;
  m.takes_batch_statistics = prepared_.model->takes_batch_statistics();
  m.couples_micro_batch = settings::depends_by_order_alone(config_) ? m.takes_batch_statistics
                                                                    : prepared_.model->couples_micro_batch();
  return m;
}

Status Trainer::choose_checkpoint(const TrainerOptions& options) {
  PLIMSOLL_ASSIGN(manifest_, describe_run());
  if (is_first()) PLIMSOLL_TRY(guard_final(options));
  if (finished_) return Ok{};
  PLIMSOLL_ASSIGN(checkpoint_, checkpoints::open_first_intact(choice_, candidate_, options.note));
  if (checkpoint_) return take_checkpoint(options);
  if (!options.resume_with.empty())
    options.note("there is no checkpoint to resume from: --resume-with applies from the first step");
  return Ok{};
}

Status Trainer::take_checkpoint(const TrainerOptions& options) {
  const checkpoints::Checkpoint& from = *checkpoint_;
  PLIMSOLL_ASSIGN(const auto changes,
                  checkpoints::check_same_run(from, config_, prepared_.model_config, manifest_,
                                              options.resume_with, options.note));
  manifest_.changes = from.manifest.changes;
  manifest_.changes.insert(manifest_.changes.end(), changes.begin(), changes.end());
  return check_places(from.manifest.step);
}

Status Trainer::check_places(int64_t step) const {
  if (config_.output.save_steps <= 0 || !is_first()) return Ok{};
  std::error_code code;
  for (std::filesystem::directory_iterator it(config_.output.dir, code), end; !code && it != end;
       it.increment(code)) {
    const std::optional<int64_t> n = checkpoints::checkpoint_step(it->path().filename().string());
    if (!n || *n <= step || *n > total_steps_ || (!saves_after(*n) && *n != total_steps_)) continue;
    const std::string path = checkpoints::checkpoint_path(config_.output.dir, *n);
    if (!checkpoints::is_checkpoint(path))
      return Error{ErrorCode::kInvalidArgument,
                   "the path of a checkpoint is occupied by a folder that Plimsoll did not create", path,
                   "choose another output.dir, or move it away"};
  }
  return Ok{};
}

Status Trainer::load(const TrainerOptions& options) {
  const checkpoints::Note& note = options.note;
  for (;;) {
    PLIMSOLL_TRY(reset_scaler());  // what a damaged checkpoint has left of its own
    Status loaded = checkpoints::load_checkpoint(*checkpoint_, *prepared_.model, *session_,
                                                 strategy::num_threads(config_));
    if (loaded) loaded = check_scaler();
    if (loaded) break;
    PLIMSOLL_TRY(checkpoints::pass_over(choice_, candidate_++, std::move(loaded).error(), note));
    PLIMSOLL_ASSIGN(checkpoint_, checkpoints::open_first_intact(choice_, candidate_, note));
    PLIMSOLL_TRY(take_checkpoint(options));
  }
  // A checkpoint of another precision may hold what fp16 does not; no older one is the answer to that.
  if (!are_parameters_shared(config_, *session_)) PLIMSOLL_TRY(check_fp16_range(checkpoint_->path));
  const checkpoints::CheckpointManifest& m = checkpoint_->manifest;
  step_ = saved_step_ = m.step;
  units_ = m.tokens;
  skipped_ = m.skipped;
  skipped_in_a_row_ = m.skipped_in_a_row;
  evaluated_step_ = m.evaluated_step;
  if (!best_.resume(m.best))
    note(fmt::format("the best evaluation so far was one of eval_{}, which is not compared any more",
                     m.best->metric));
  note(fmt::format("resuming after step {} from {}", m.step, checkpoint_->path));
  if (!same_bits(m.isa, manifest_.isa, config_.computes_in(settings::Precision::kBf16)))
    note(
        fmt::format("the checkpoint was computed with {}, this machine computes with {}: results may differ "
                    "in the last bits",
                    m.isa, manifest_.isa));
  return Ok{};
}

Status Trainer::reset_scaler() {
  if (!config_.scales_loss()) return Ok{};
  scaler_ = {};
  scaler_[ops::kScale] = static_cast<float>(config_.training.loss_scale.first());
  return session_->write(optimizers::kScalerState, std::as_bytes(std::span(scaler_)));
}

Status Trainer::check_scaler() {
  PLIMSOLL_TRY(read_scaler());
  if (!config_.scales_loss() || (std::isfinite(scaler_[ops::kScale]) && scaler_[ops::kScale] > 0 &&
                                 scaler_[ops::kCleanSteps] >= 0 && scaler_[ops::kCleanSteps] < 0x1p24F))
    return Ok{};
  return Error{ErrorCode::kBadData, fmt::format("its loss scale is {}", scaler_[ops::kScale]),
               checkpoint_->path + "/optimizer.safetensors", "start a new run with --resume never"};
}

Status Trainer::initialise(const TrainerOptions& options) {
  PLIMSOLL_TRY(reset_scaler());
  // A benchmark's weights may be any.
  const bool pretrained = !options.synthetic_data && starts_pretrained(config_.model);
  if (checkpoint_) {
    PLIMSOLL_TRY(write_constants(*prepared_.model, *session_));
    // The base of adapters is in no checkpoint.
    if (prepared_.model->adapters())
      PLIMSOLL_TRY(
          training::initialise(config_, prepared_, *session_, pretrained, strategy::num_threads(config_)));
    return load(options);
  }
  PLIMSOLL_ASSIGN(loaded_, training::initialise(config_, prepared_, *session_, pretrained,
                                                strategy::num_threads(config_)));
  if (config_.debug.dump_dir.empty() || !config_.dumps("parameters")) return Ok{};
  PLIMSOLL_ASSIGN(StepDump dump, StepDump::create(config_, prepared_, session_->plan(), 0, /*initial=*/true));
  PLIMSOLL_TRY(dump.write_parameters(*session_));
  return dump.finish();
}

Status Trainer::check_fp16_range(const std::string& source, runtime::Communicator* ranks) {
  Status in_range = checkpoints::check_fp16_range(config_, *prepared_.model, *session_,
                                                  strategy::num_threads(config_), ranks);
  if (in_range) return in_range;
  return std::move(in_range).error().at(source);
}

Status Trainer::start_shared_parameters() {
  // Where every parameter is too small to be shared, each rank has begun by itself (initialise, load).
  if (group_ == nullptr || !are_parameters_shared(config_, *session_)) return Ok{};
  runtime::Communicator* ranks = &group_->communicator();
  if (prepared_.model->adapters()) {
    const bool has_adapter = checkpoint_ || !config_.lora.adapter.empty();
    PLIMSOLL_TRY(
        checkpoints::start_adapters(*prepared_.model, *session_, {.ranks = ranks, .base_only = has_adapter}));
  }
  if (checkpoint_) return check_fp16_range(checkpoint_->path, ranks);
  if (!starts_pretrained(config_.model)) return Ok{};
  PLIMSOLL_ASSIGN(const std::string folder, settings::model_directory(config_.model));
  return check_fp16_range(folder, ranks);
}

Status Trainer::check_room(const std::vector<std::string>& stale, const checkpoints::Note& note) const {
  const checkpoints::CheckpointFiles& files = writer_->files();
  checkpoints::SaveSchedule schedule = checkpoints::save_schedule(
      config_, total_steps_, step_, {files.checkpoint_bytes(), files.final_bytes()});
  schedule.present = checkpoints::present_checkpoints(config_.output.dir, stale);
  PLIMSOLL_TRY(checkpoints::check_disk(schedule, config_.output.dir));
  const std::optional<int64_t> free = io::free_space(config_.output.dir);
  if (schedule.save_steps == 0 && step_ < total_steps_ && free && *free < schedule.bytes.checkpoint)
    note(fmt::format(
        "a checkpoint takes {} and the disk has {} free: if a signal stops the run, it cannot be saved",
        to_string(Bytes(schedule.bytes.checkpoint)), to_string(Bytes(*free))));
  return Ok{};
}

Status Trainer::make_writer(const TrainerOptions& options) {
  // What ranks share is read while no step runs.
  const checkpoints::SaveOptions saving{config_.output.save_steps > 0 && !shares_states(),
                                        checkpoints::stale_checkpoints(config_.output.dir, checkpoint_)};
  if (!saving.stale.empty())
    options.note(
        fmt::format("{} earlier checkpoint{} in {} will be removed when the first new folder is complete",
                    saving.stale.size(), saving.stale.size() == 1 ? "" : "s", config_.output.dir));
  checkpoints::ModelFileSet beside;
  if (options.model_files) {
    beside = *options.model_files;
  } else {
    PLIMSOLL_ASSIGN(beside, model_files(config_, prepared_.model_config));
  }
  manifest_.best = best_.state();
  PLIMSOLL_ASSIGN(auto files,
                  checkpoints::CheckpointFiles::create(config_, prepared_.model_config, *prepared_.model,
                                                       std::move(beside), *session_, manifest_));
  PLIMSOLL_ASSIGN(writer_, checkpoints::CheckpointWriter::create(config_, std::move(files), saving));
  // A process that was killed after its save and before it took the old one away.
  if (checkpoint_ && saving.stale.empty()) writer_->rotate(step_);
  PLIMSOLL_TRY(check_room(saving.stale, options.note));
  session_->set_update_gate([this] { writer_->wait_for_sources(); });
  return Ok{};
}

}  // namespace plimsoll::training
