#include "train/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>

#include "ops/ops.h"
#include "train/settings.h"

namespace plimsoll::train {
namespace {

/// The neutral element of addition: a sum that starts with it is the first term, bit for bit.
constexpr float kNothing = -0.0F;

float& scalar(runtime::Session& session, std::string_view name) { return *session.state(name).as<float>(); }

}  // namespace

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Result<std::unique_ptr<Trainer>> Trainer::create(const RunConfig& config, Prepared prepared,
                                                 cpu::CpuBackend& backend, const TrainerOptions& options) {
  std::unique_ptr<Trainer> trainer(new Trainer(config, std::move(prepared)));
  PLIMSOLL_TRY(trainer->open_data(options));
  passes::SessionPlan plan = std::move(trainer->prepared_.programs.session);
  PLIMSOLL_ASSIGN(trainer->session_,
                  runtime::Session::create(backend, std::move(plan), {.poison = config.debug.poison}));
  trainer->scratch_.resize(static_cast<size_t>(trainer->prepared_.host_scratch_bytes));
  if (trainer->train_data_)
    trainer->train_feeder_ =
        std::make_unique<BatchFeeder>(*trainer->train_data_, *trainer->session_, trainer->scratch_);
  if (trainer->eval_data_)
    trainer->eval_feeder_ =
        std::make_unique<BatchFeeder>(*trainer->eval_data_, *trainer->session_, trainer->scratch_);
  PLIMSOLL_TRY(trainer->initialise());
  return trainer;
}

Status Trainer::open_data(const TrainerOptions& options) {
  DatasetOptions data{config_.data.sequence_length, prepared_.model->vocab_size(), false, "data.train"};
  int64_t num_sequences = config_.training.global_batch_size;
  if (!options.synthetic_data) {
    PLIMSOLL_ASSIGN(Dataset train, Dataset::open(config_.data.train, data));
    train_data_ = std::make_unique<Dataset>(std::move(train));
    num_sequences = train_data_->num_sequences();
  }
  if (!config_.data.eval.empty()) {
    data.keep_tail = true;
    data.setting = "data.eval";
    PLIMSOLL_ASSIGN(Dataset eval, Dataset::open(config_.data.eval, data));
    eval_data_ = std::make_unique<Dataset>(std::move(eval));
  }
  train_order_ = std::make_unique<BatchOrder>(num_sequences, static_cast<uint64_t>(config_.training.seed),
                                              config_.data.shuffle);
  total_steps_ = plimsoll::total_steps(config_.training, num_sequences);
  PLIMSOLL_ASSIGN(Schedule schedule, make_schedule(config_.training, total_steps_));
  schedule_ = std::make_unique<Schedule>(std::move(schedule));
  if (!options.synthetic_data) {
    PLIMSOLL_TRY(create_writable_directory(config_.output.dir));
    PLIMSOLL_TRY(write_file_atomically(config_.output.dir + "/run.yaml", run_config_yaml(config_)));
  }
  if (!config_.debug.dump_dir.empty()) PLIMSOLL_TRY(create_writable_directory(config_.debug.dump_dir));
  return Ok{};
}

Status Trainer::initialise() {
  for (const models::Constant& c : prepared_.model->constants())
    if (session_->plan().find_state(c.name) != nullptr)
      std::memcpy(session_->state(c.name).data, c.data.data(), c.data.size() * sizeof(float));
  write_scalars();
  session_->run(session_->plan().find_program("init"));
  if (config_.debug.dump_dir.empty() || !config_.dumps("parameters")) return Ok{};
  PLIMSOLL_ASSIGN(StepDump dump, StepDump::create(config_, prepared_, 0, /*initial=*/true));
  PLIMSOLL_TRY(dump.write_parameters(*session_));
  return dump.finish();
}

void Trainer::write_scalars() {
  const auto seed = static_cast<uint64_t>(config_.training.seed);
  auto* random = session_->state(planner::kRandomState).as<int32_t>();
  random[0] = static_cast<int32_t>(static_cast<uint32_t>(seed));
  random[1] = static_cast<int32_t>(static_cast<uint32_t>(seed >> 32));
  random[2] = static_cast<int32_t>(step_);
  random[3] = 0;
  if (step_ == 0) return;
  const TrainingSettings& t = config_.training;
  optimizers::StepHyper hyper{schedule_->rate(step_), t.adam_beta1,   t.adam_beta2,
                              t.adam_epsilon,         t.weight_decay, step_};
  if (t.optimizer == "adam") hyper.weight_decay = 0;
  optimizers::write_groups(hyper, session_->state(optimizers::kGroupsState).as<float>());
  scalar(*session_, planner::kGradScaleState) = static_cast<float>(1.0 / static_cast<double>(num_targets()));
  scalar(*session_, planner::kLossState) = kNothing;
}

int64_t Trainer::num_targets() const {
  return config_.training.global_batch_size * (config_.data.sequence_length - 1);
}

void Trainer::feed_synthetic(int64_t micro_batch) {
  const runtime::TensorRef tokens = session_->state(planner::kTokensState),
                           targets = session_->state(planner::kTargetsState);
  const int64_t length = config_.data.sequence_length;
  uint64_t x = static_cast<uint64_t>(step_) * 0x9e3779b97f4a7c15ULL + static_cast<uint64_t>(micro_batch) + 1;
  for (int64_t i = 0; i < tokens.num_elements(); ++i) {
    x = x * 6364136223846793005ULL + 1442695040888963407ULL;
    tokens.as<int32_t>()[i] =
        static_cast<int32_t>((x >> 33) % static_cast<uint64_t>(prepared_.model->vocab_size()));
  }
  for (int64_t i = 0; i < tokens.num_elements(); ++i)
    targets.as<int32_t>()[i] = (i + 1) % length == 0 ? ops::kIgnoreTarget : tokens.as<int32_t>()[i + 1];
}

Result<int64_t> Trainer::feed_training(int64_t micro_batch) {
  if (!train_data_) {
    feed_synthetic(micro_batch);
    return int64_t{0};
  }
  const int64_t first =
      (step_ - 1) * config_.training.global_batch_size + micro_batch * prepared_.split.micro_batch_size;
  return train_feeder_->feed(*train_order_, first, std::numeric_limits<int64_t>::max());
}

Status Trainer::run_micro_batches(StepEvent& event) {
  const auto program = [&](std::string_view name) { return session_->plan().find_program(name); };
  const bool accumulates = program("update") >= 0;
  auto* random = session_->state(planner::kRandomState).as<int32_t>();
  for (int64_t m = 0; m < prepared_.split.grad_accum_steps; ++m) {
    const double start = now_seconds();
    PLIMSOLL_TRY(feed_training(m));
    event.data_wait_seconds += now_seconds() - start;
    random[3] = static_cast<int32_t>(m * prepared_.split.micro_batch_size);
    if (dump_ && dump_->wants_logits()) {
      session_->run(program("logits"));
      PLIMSOLL_TRY(dump_->write_logits(*session_, m));
    }
    session_->run(program(!accumulates ? "step" : m == 0 ? "micro_first" : "micro_next"));
  }
  if (dump_) PLIMSOLL_TRY(dump_->write_gradients(*session_, scratch_));
  if (accumulates) session_->run(program("update"));
  event.loss = static_cast<float>(static_cast<double>(scalar(*session_, planner::kLossState)) /
                                  static_cast<double>(num_targets()));
  event.grad_norm = scalar(*session_, optimizers::kGradNormState);
  return Ok{};
}

Result<StepEvent> Trainer::step() {
  const double start = now_seconds();
  ++step_;
  StepEvent event;
  event.step = step_;
  event.learning_rate = schedule_->rate(step_);
  event.samples = config_.training.global_batch_size;
  event.tokens = event.samples * config_.data.sequence_length;
  write_scalars();
  if (!config_.debug.dump_dir.empty()) {
    PLIMSOLL_ASSIGN(StepDump dump, StepDump::create(config_, prepared_, step_, /*initial=*/false));
    dump_ = std::make_unique<StepDump>(std::move(dump));
  }
  PLIMSOLL_TRY(run_micro_batches(event));
  if (dump_) {
    PLIMSOLL_TRY(dump_->write_loss(static_cast<float>(event.loss)));
    PLIMSOLL_TRY(dump_->write_parameters(*session_));
    PLIMSOLL_TRY(dump_->finish());
    dump_.reset();
  }
  event.seconds = now_seconds() - start;
  if (!std::isfinite(event.loss) || !std::isfinite(event.grad_norm))
    return Error{
        ErrorCode::kDiverged,
        fmt::format("the loss is {} and the gradient norm {}", event.loss, event.grad_norm),
        fmt::format("step {}", step_),
        "lower training.learning_rate, lengthen training.warmup_steps or set training.max_grad_norm"};
  return event;
}

Result<EvalEvent> Trainer::evaluate() {
  const int program = session_->plan().find_program("eval");
  const BatchOrder in_order(eval_data_->num_sequences(), 0, false);
  const int64_t rows = prepared_.split.micro_batch_size;
  double loss = 0;
  int64_t targets = 0;
  EvalEvent event;
  event.step = step_;
  // Summed in fp32 over a global batch, whose split does not matter, and from there on in double.
  for (int64_t block = 0; block < eval_data_->num_sequences(); block += config_.training.global_batch_size) {
    scalar(*session_, planner::kLossState) = kNothing;
    for (int64_t first = block; first < block + config_.training.global_batch_size; first += rows) {
      if (first >= eval_data_->num_sequences()) break;
      PLIMSOLL_ASSIGN(const int64_t counted,
                      eval_feeder_->feed(in_order, first, eval_data_->num_sequences()));
      session_->run(program);
      targets += counted;
    }
    loss += static_cast<double>(scalar(*session_, planner::kLossState));
  }
  for (int64_t i = 0; i < eval_data_->num_sequences(); ++i) event.tokens += eval_data_->sequence_tokens(i);
  event.loss = targets > 0 ? loss / static_cast<double>(targets) : 0;
  return event;
}

Result<std::string> Trainer::save_final() {
  const std::string path = config_.output.dir + "/final";
  PLIMSOLL_TRY(write_model(prepared_, *session_, path));
  return path;
}

}  // namespace plimsoll::train
