#include "profiling/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/process.h"
#include "ir/op_def.h"
#include "planner/cost/op_work.h"
#include "profiling/step_waits.h"

namespace plimsoll::profiling {
namespace {

/// Takes down what the session's programs did, each when the next begins.
class Recorder {
 public:
  Recorder(training::Trainer& trainer, bool memory, Profile& profile)
      : trainer_(trainer), session_(trainer.session()), profile_(profile) {
    profile_.live = planner::state_bytes(session_.plan());
    started_ = session_.enable_timing(true, memory);
    session_.device().count_thread_seconds(true);
    session_.set_run_observer([this](int program) {
      collect();
      program_ = program;
    });
    SpanLog::start();
  }
  ~Recorder() {
    SpanLog::stop();
    session_.set_run_observer(nullptr);
    session_.device().count_thread_seconds(false);
    (void)session_.enable_timing(false);
  }
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  /// Errors: of the device.
  [[nodiscard]] const Status& started() const { return started_; }
  [[nodiscard]] double now() const { return now_seconds() - start_; }
  void begin() { ops_.clear(), program_ = -1; }
  void end(ProfiledStep& step) {
    collect();
    program_ = -1;
    step.ops = std::move(ops_);
    step.spans = SpanLog::take();
    for (Span& span : step.spans) span.start -= start_, span.end -= start_;
  }

 private:
  void collect() {
    if (program_ < 0) return;
    for (const runtime::TimedOp& op : session_.timed_ops(program_))
      ops_.push_back({fact_of(op.op), op.start - start_, op.seconds, op.busiest_seconds, op.mean_seconds,
                      op.measured_bytes});
  }

  size_t fact_of(const ir::Op* op) {
    const auto found = facts_.find(op);
    if (found != facts_.end()) return found->second;
    add_program();
    return facts_.at(op);
  }

  /// The facts of all ops of the program at hand.
  void add_program() {
    const auto program = static_cast<size_t>(program_);
    const ir::Graph& graph = session_.plan().programs[program].graph;
    for (size_t i = 0; i < graph.order().size(); ++i) {
      const ir::Op* op = &graph.op(graph.order()[i]);
      facts_.emplace(op, profile_.facts.size());
      OpFacts& facts = profile_.facts.emplace_back(facts_of(graph, *op));
      facts.program = program;
      facts.position = static_cast<int32_t>(i);
    }
    for (const planner::TimelinePoint& point : planner::memory_timeline(session_.plan(), program).points)
      profile_.facts[facts_.at(&graph.op(graph.order()[static_cast<size_t>(point.position)]))].live =
          point.bytes;
  }

  [[nodiscard]] OpFacts facts_of(const ir::Graph& graph, const ir::Op& op) const {
    const ir::Cost cost = ir::op_cost(graph, op);
    OpFacts facts{.op = std::string(op.def->name),
                  .layer = op.layer,
                  .is_product = op.def->work.kind == ir::WorkKind::kProduct,
                  .copies = op.def->is_copy,
                  .on_host = op.queue == ir::Queue::kHost,
                  .updates = op.block == ir::kUpdateBlock,
                  .recomputed = op.recomputed,
                  .flops = cost.flops,
                  .bytes = cost.bytes,
                  .dims = "[",
                  .types = "[",
                  .live = profile_.live};
    for (const ir::ValueId v : op.inputs) {
      if (!v.valid()) continue;
      const ir::TensorType& type = graph.type(v);
      const std::string separator = facts.dims.size() > 1 ? ", " : "";
      facts.dims += separator + ir::to_string(type.shape);
      facts.types += fmt::format("{}\"{}\"", separator, ir::name(type.dtype));
    }
    facts.dims += "]";
    facts.types += "]";
    if (!op.inputs.empty() && op.inputs[0].valid()) facts.rows = graph.type(op.inputs[0]).shape.num_rows();
    const planner::CostModel& costs = *trainer_.prepared().costs;
    planner::StepSeconds estimated;
    costs.add(graph, op, estimated);
    facts.estimated_seconds = facts.on_host ? costs.host_seconds(graph, op) : estimated.total();
    const auto type = static_cast<size_t>(planner::op_work(*op.def, ir::op_types(graph, op), cost).type);
    const auto& peaks = costs.profile().product_flops;
    const double peak = peaks[type] > 0 ? peaks[type] : peaks[0];
    if (peak > 0) facts.peak_seconds = cost.flops / peak;
    return facts;
  }

  training::Trainer& trainer_;
  runtime::Session& session_;
  Profile& profile_;
  Status started_ = Ok{};
  const double start_ = now_seconds();
  int program_ = -1;
  std::vector<OpRun> ops_;
  std::map<const ir::Op*, size_t> facts_;
};

/// As the run saves: an earlier save is waited for.
Status save_if_due(training::Trainer& trainer) {
  if (!trainer.saves_after(trainer.steps_done())) return Ok{};
  PLIMSOLL_TRY(trainer.start_checkpoint());
  for (;;) {
    PLIMSOLL_ASSIGN(const auto saved, trainer.next_saved(/*wait=*/false));
    if (!saved) return Ok{};
  }
}

/// What the verdict knows of the machine.
void describe_machine(const training::Trainer& trainer, Profile& profile) {
  const settings::RunConfig& config = trainer.config();
  const planner::MachineProfile& machine = trainer.prepared().costs->profile();
  profile.rates = machine.rates;
  const auto rate = [&](planner::ProductType type) {
    return machine.product_flops[static_cast<size_t>(type)];
  };
  if (config.training.precision == settings::Precision::kFp32 && rate(planner::ProductType::kF32) > 0)
    profile.bf16_gain = rate(planner::ProductType::kBf16) / rate(planner::ProductType::kF32);
  profile.on_device = !trainer.session().device().target().shares_host_memory();
  if (profile.on_device && !trainer.session().device().target().is_in_process()) return;
  profile.num_threads = strategy::num_threads(config);
  profile.num_cpus = num_available_cpus();
}

}  // namespace

bool ProfileSchedule::is_active(int64_t step) const {
  if (step < skip_first || step >= num_steps()) return false;
  return (step - skip_first) % (wait + warmup + active) >= wait + warmup;
}

Result<Profile> profile_steps(training::Trainer& trainer, const ProfileOptions& options) {
  Profile profile;
  describe_machine(trainer, profile);
  Recorder recorder(trainer, options.memory, profile);
  PLIMSOLL_TRY(Status(recorder.started()));
  for (int64_t i = 0; i < options.schedule.num_steps(); ++i) {
    recorder.begin();
    ProfiledStep step;
    const StepWaits before = step_waits();
    const images::LoadTimes images_before = images::load_times();
    step.start = recorder.now();
    PLIMSOLL_ASSIGN(const training::StepEvent event, trainer.step());
    if (options.saves) PLIMSOLL_TRY(save_if_due(trainer));
    step.seconds = recorder.now() - step.start;
    recorder.end(step);
    step.data_wait_seconds = event.data_wait_seconds;
    step.units = event.units;
    const StepWaits after = step_waits();
    step.taken_seconds = after.taken_seconds_since(before);
    if (step.seconds > 0) step.idle_cpus = (after.idle_seconds - before.idle_seconds) / step.seconds;
    step.loading_seconds = after.loading_seconds - before.loading_seconds;
    step.saving_seconds = after.saving_seconds - before.saving_seconds;
    step.read_bytes = after.read_bytes - before.read_bytes;
    step.images = images::load_times().since(images_before);
    if (options.schedule.is_active(i)) profile.steps.push_back(std::move(step));
  }
  if (options.saves) (void)trainer.next_saved(/*wait=*/true);
  return profile;
}

}  // namespace plimsoll::profiling
