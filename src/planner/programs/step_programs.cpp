#include "planner/programs/step_programs.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/check.h"
#include "models/language_model.h"
#include "ops/granules.h"
#include "ops/op_list.h"
#include "ops/ops.h"
#include "passes/training/accumulate.h"
#include "passes/training/store_gradients.h"
#include "planner/cost/known_profiles.h"
#include "planner/cost/queue_times.h"
#include "planner/programs/finish_program.h"
#include "planner/programs/initial_values.h"

namespace plimsoll::planner {
namespace {

using ir::Builder;
using ir::DType;
using ir::Graph;
using ir::StateClass;
using ir::ValueId;
using passes::ProgramId;
using passes::ProgramRole;

constexpr ProgramId kUpdate{ProgramRole::kUpdate};

ir::StateDecl random_state() { return {std::string(kRandomState), {DType::kI32, {4}}, StateClass::kScalars}; }

class ProgramBuilder {
 public:
  ProgramBuilder(const models::Model& model, const StepOptions& options, const runtime::Target& target)
      : model_(model),
        options_(options),
        target_(target),
        costs_(options.costs != nullptr
                   ? *options.costs
                   : CostModel(generic_cpu(target.instruction_set()), target.num_threads())),
        length_(options.sequence_length) {
    PLIMSOLL_CHECK(options.task != nullptr, "programs without a task");
    PLIMSOLL_CHECK(options.buckets.empty() || options.buckets.back() == options.sequence_length,
                   "the last bucket is the sequence");
    PLIMSOLL_CHECK(!options.optimizer_in_backward || !options.accumulate,
                   "an optimizer in backward, and accumulators");
    for (const models::Parameter& p : model.parameters()) {
      if (p.trained) trained_.push_back(&p);
      if (!p.trained) frozen_.push_back(p.name);
    }
  }

  Result<TrainingPrograms> run() {
    std::vector<passes::Program> programs;
    const auto add = [&](Result<passes::Program> program) -> Status {
      if (!program) return std::move(program).error();
      programs.push_back(std::move(*program));
      return Ok{};
    };
    if (outlines() && !options_.scheduled->programs.empty()) return outline();
    std::vector<int64_t> lengths = options_.buckets;
    if (lengths.empty() || options_.estimate) lengths = {options_.sequence_length};
    for (const int64_t length : lengths) {
      length_ = length;
      if (!options_.training) break;
      if (!options_.accumulate) {
        PLIMSOLL_TRY(add(micro(ProgramRole::kStep)));
      } else if (options_.estimate) {
        PLIMSOLL_TRY(add(micro(ProgramRole::kMicroNext)));
      } else {
        PLIMSOLL_TRY(micros(add));
      }
    }
    if (options_.training && options_.accumulate) PLIMSOLL_TRY(add(update()));
    if (outlines()) {
      scheduled_.about = std::move(result_);
      *options_.scheduled = std::move(scheduled_);
      return outline();
    }
    if (options_.estimate) {
      PLIMSOLL_ASSIGN(result_.session, finish_session(std::move(programs), target_));
      return std::move(result_);
    }
    for (const int64_t length : lengths) {
      length_ = length;
      if (options_.eval) PLIMSOLL_TRY(add(eval()));
    }
    if (options_.logits) PLIMSOLL_TRY(add(logits()));
    PLIMSOLL_TRY(add(init(ProgramRole::kInit, [](const models::Parameter& p) {
      return !p.is_adapter && !ir::is_block(p.dtype);
    })));
    if (!options_.drawn_alone.empty())
      PLIMSOLL_TRY(add(init(ProgramRole::kInitHead,
                            [&](const models::Parameter& p) { return p.name == options_.drawn_alone; })));
    PLIMSOLL_ASSIGN(result_.session, finish_session(std::move(programs), target_));
    return std::move(result_);
  }

 private:
  [[nodiscard]] bool outlines() const {
    return options_.estimate && options_.scheduled != nullptr && !options_.pipeline.runs_twice;
  }
  /// The sketch of programs that are scheduled.
  Result<TrainingPrograms> outline() {
    const passes::OffloadOptions& offload = options_.pipeline.offload;
    result_ = options_.scheduled->about;
    std::vector<passes::Program> programs;
    for (ProgramEstimates& scheduled : options_.scheduled->programs) {
      PLIMSOLL_ASSIGN(const ProgramEstimate estimate, scheduled.estimate(offload, costs_, result_.cost));
      passes::Program& program = programs.emplace_back();
      program.id = scheduled.id();
      program.graph.name = passes::name(program.id);
      for (size_t s = 0; s < ir::kNumSpaces; ++s) {
        passes::PoolPlan& pool = program.plan.pools[s];
        pool.lower_bound_bytes = estimate.alive_bytes[s];
        pool.arena_bytes =
            round_up(passes::enough_bytes(estimate.alive_bytes[s], options_.memory), passes::kPageBytes);
      }
      result_.unwritten_ops += estimate.num_ops;
    }
    std::vector<ir::StateDecl> states = options_.scheduled->states;
    for (ir::StateDecl& decl : states)
      if (decl.space == ir::MemorySpace::kDevice) decl.space = passes::offloaded_space(offload, decl);
    result_.session = estimate_session(std::move(states), target_, std::move(programs));
    return std::move(result_);
  }
  /// Up to its order, for outlines.
  Status schedule(const ProgramId& id, Graph graph, passes::Pipeline& pipeline) {
    PLIMSOLL_TRY(pipeline.backward(graph));
    PLIMSOLL_TRY(pipeline.schedule(graph));
    describe(id, graph, pipeline);
    for (const ir::StateDecl& decl : graph.states())
      if (scheduled_states_.insert(decl.name).second) scheduled_.states.push_back(decl);
    scheduled_.programs.emplace_back(id, std::move(graph), pipeline);
    return Ok{};
  }

  /// The caller's options, with a folder of its own for each program's text.
  [[nodiscard]] passes::PipelineOptions pipeline_options(const Graph& graph, bool grad = true) {
    passes::PipelineOptions options = options_.pipeline;
    options.grad = grad;
    options.optimizer_in_backward = options_.optimizer_in_backward;
    options.second_backward = options_.second_backward;
    options.chunk_tokens = chunk_tokens();
    options.frozen = frozen_;
    if (options_.finds_gains && length_ == options_.sequence_length)
      options.look_at_blocks = [this](const passes::RecomputeAnalysis& program) {
        if (result_.gains.empty()) result_.gains = layer_gains(program, costs_);
      };
    options.kernel_seconds = [this](const Graph& g) { return kernel_seconds(op_costs(g, costs_, false)); };
    options.copy_seconds = copy_seconds(costs_.profile());
    return program_options(std::move(options), graph, target_);
  }
  /// As given, else whole granules; at least one, at most the micro-batch.
  [[nodiscard]] int64_t chunk_tokens() const {
    const bool is_given = options_.chunk_tokens > 0;
    const int64_t unit = is_given ? ops::kLossRows : ops::kGranule;
    const models::LanguageModel* language = models::as_language_model(model_);
    const int64_t row_bytes = 4 * (language == nullptr ? 1 : language->vocab_size());
    const int64_t tokens = is_given ? options_.chunk_tokens : options_.logits_bytes / row_bytes;
    const int64_t most = round_up(options_.micro_batch_size * length_, ops::kGranule);
    return std::clamp(tokens / unit * unit, unit, most);
  }
  /// Of the length at hand.
  [[nodiscard]] int64_t bucket() const { return bucket_of(length_, options_.buckets); }
  [[nodiscard]] ProgramId at_length(ProgramRole role) const { return {role, bucket()}; }
  /// The task's, in its order.
  std::vector<ValueId> inputs(Builder& b) const {
    std::vector<ValueId> values;
    for (const datasets::TensorSpec& input : options_.task->inputs())
      values.push_back(b.state({input_state(input.name, bucket()),
                                input.batch_type(options_.micro_batch_size, length_), StateClass::kInput}));
    return values;
  }
  /// The logits as the host reads them.
  static void assign_logits(Graph& graph, Builder& b, ValueId logits) {
    graph.declare_state(
        {std::string(kLogitsState), {DType::kF32, b.type(logits).shape}, StateClass::kOutput});
    b.assign(kLogitsState, logits);
  }

  /// f32[1]: what the loss is multiplied with before it is differentiated.
  static ValueId loss_scale(Builder& b) {
    return ops::split(b, b.state(optimizers::scaler_state()), {1, ops::kScalerFields - 1})[ops::kScale];
  }

  /// Forward to the loss, which is added to its state; in training with dropout. The passes have run; `loss`
  /// stands for the loss after them.
  Status forward(Graph& graph, passes::Pipeline& pipeline, ValueId& loss, bool training) {
    Builder b(graph, ops::find_op);
    const std::vector<ValueId> values = inputs(b);
    ValueId scale = b.state({std::string(kGradScaleState), {DType::kF32, {1}}, StateClass::kScalars});
    if (training && options_.optimizer.loss_scaling) scale = ops::mul(b, scale, loss_scale(b));
    const ValueId acc = b.state({std::string(kLossState), {DType::kF32, {1}}, StateClass::kOutput});
    const ValueId random = training ? b.state(random_state()) : ValueId{};
    const bool keeps_logits = !training && options_.task->has_metrics();
    const tasks::Outputs outputs = options_.task->forward(
        b, model_, values,
        {.grad_scale = scale, .acc = acc, .training = training, .random = random, .logits = keeps_logits});
    loss = outputs.loss;
    b.assign(kLossState, loss);
    if (keeps_logits) assign_logits(graph, b, outputs.logits);
    PLIMSOLL_TRY(b.status());
    PLIMSOLL_TRY(pipeline.forward(graph, {&loss, 1}));
    note_overrides(pipeline.precision());
    return Ok{};
  }
  void note_overrides(const passes::AutocastReport& report) {
    result_.overrides_used.resize(options_.pipeline.precision_overrides.size());
    for (size_t i = 0; i < report.used.size(); ++i)
      result_.overrides_used[i] = result_.overrides_used[i] || report.used[i];
    if (result_.overridable.empty()) result_.overridable = report.names;
  }

  /// A program up to its gradients, which are stored.
  struct Begun {
    Graph graph;
    passes::Pipeline pipeline;
    passes::AutodiffReport derivative;
  };
  Result<Begun> begin(ProgramRole role) {
    Graph graph;
    graph.name = passes::name(at_length(role));
    passes::Pipeline pipeline(pipeline_options(graph));
    ValueId loss;
    PLIMSOLL_TRY(forward(graph, pipeline, loss, /*training=*/true));
    const std::vector<ValueId> parameters = trained_reads(graph);
    PLIMSOLL_ASSIGN(passes::AutodiffReport derivative, pipeline.differentiate(graph, {loss, parameters}));
    std::vector<ValueId> gradients;
    for (const auto& uses : derivative.contributions)
      gradients.insert(gradients.end(), uses.begin(), uses.end());
    PLIMSOLL_TRY(passes::store_gradients(
        graph, gradients, options_.accumulate ? DType::kF32 : options_.optimizer.state.gradients));
    return Begun{std::move(graph), std::move(pipeline), std::move(derivative)};
  }

  /// A program with gradients; `step` goes on to the update, the others end in accumulators. `begun`: what it
  /// begins with, where somebody has it.
  Result<passes::Program> micro(ProgramRole role, std::optional<Begun> begun = {}) {
    const ProgramId id = at_length(role);
    if (const CachedBeginning* known = find_known(role)) {
      note_overrides(known->progress.precision);
      if (result_.gradients.empty()) result_.gradients = known->gradients;
      if (auto estimated = take_estimated(id)) {
        PLIMSOLL_ASSIGN(auto program,
                        place_program(std::move(*estimated), memory_, options_.pipeline.verify));
        note_program(program);
        return program;
      }
      Graph graph = known->graph;
      passes::Pipeline pipeline(pipeline_options(graph), known->progress);
      return finish(id, std::move(graph), pipeline);
    }
    if (!begun) {
      PLIMSOLL_ASSIGN(begun, begin(role));
    }
    begun->graph.name = passes::name(id);
    PLIMSOLL_TRY(end(*begun, role));
    if (knows())
      keep_known({id, options_.micro_batch_size, length_, chunk_tokens(), begun->graph,
                  begun->pipeline.progress(), result_.gradients});
    return finish(id, std::move(begun->graph), begun->pipeline);
  }
  /// Both that accumulate, which begin alike.
  template <typename Add>
  Status micros(const Add& add) {
    using enum ProgramRole;
    std::optional<Begun> begun;
    // Where passes leave their texts, each goes from its beginning.
    if (!is_shown() && find_known(kMicroFirst) == nullptr && find_known(kMicroNext) == nullptr) {
      PLIMSOLL_ASSIGN(begun, begin(kMicroFirst));
    }
    PLIMSOLL_TRY(add(micro(kMicroFirst, begun)));
    return add(micro(kMicroNext, std::move(begun)));
  }
  Status end(Begun& begun, ProgramRole role) {
    if (options_.accumulate) {
      PLIMSOLL_TRY(accumulate(begun.graph, begun.derivative, role == ProgramRole::kMicroFirst));
    } else {
      Builder b(begun.graph, ops::find_op);
      PLIMSOLL_TRY(append_update(b, begun.derivative.cotangents));
    }
    return begun.pipeline.tidy(begun.graph);
  }

  /// Whether each pass leaves its text.
  [[nodiscard]] bool is_shown() const { return !options_.pipeline.dump_dir.empty(); }
  [[nodiscard]] bool knows() const { return options_.known != nullptr && !is_shown(); }
  [[nodiscard]] const CachedBeginning* find_known(ProgramRole role) const {
    if (!knows()) return nullptr;
    const auto is_it = [&](const CachedBeginning& b) {
      return b.id == at_length(role) && b.micro_batch_size == options_.micro_batch_size &&
             b.length == length_ && b.chunk_tokens == chunk_tokens();
    };
    const auto found = std::ranges::find_if(options_.known->beginnings, is_it);
    return found == options_.known->beginnings.end() ? nullptr : &*found;
  }
  /// Not the first one, whose passes say what the plan tells of them.
  [[nodiscard]] std::optional<BoundProgram> take_estimated(const ProgramId& id) const {
    if (options_.estimate || !first_finished_) return std::nullopt;
    for (passes::Program& program : options_.known->estimated)
      if (program.id == id) return BoundProgram{id, std::move(program.graph), std::move(program.binding)};
    return std::nullopt;
  }
  void keep_known(CachedBeginning beginning) {
    std::vector<CachedBeginning>& kept = options_.known->beginnings;
    if (kept.size() == ProgramCache::kMostBeginnings) kept.erase(kept.begin());
    kept.push_back(std::move(beginning));
  }

  Status append_update(Builder& b, const std::vector<ValueId>& gradients) const {
    const bool draws = options_.optimizer.state.stochastic;
    return optimizers::append_update(b, updates(gradients), options_.optimizer,
                                     draws ? b.state(random_state()) : ValueId{});
  }

  Status accumulate(Graph& graph, const passes::AutodiffReport& derivative, bool first) {
    std::vector<passes::Accumulation> accumulations;
    for (size_t p = 0; p < trained_.size(); ++p) {
      const auto& uses = derivative.contributions[p];
      GradientStates states{trained_[p]->name, {}};
      for (size_t u = 0; u < uses.size(); ++u) {
        const std::string name = "grad." + states.parameter + (u == 0 ? "" : "#" + std::to_string(u));
        graph.declare_state({name, graph.type(uses[u]), StateClass::kGradient});
        accumulations.push_back({uses[u], name, first});
        states.accumulators.push_back(name);
      }
      const bool known = result_.gradients.size() > p;  // from another length
      if (!known) result_.gradients.push_back(std::move(states));
    }
    return passes::accumulate(graph, accumulations);
  }

  /// Norm, clip and update from the accumulators. In the gradients' dtype the sum over uses is rounded where
  /// a step without accumulation stores it.
  Result<passes::Program> update() {
    // StrategyEstimates are of programs that are made anew.
    if (!knows() || outlines()) {
      PLIMSOLL_ASSIGN(Begun begun, begin_update());
      return finish(kUpdate, std::move(begun.graph), begun.pipeline);
    }
    CachedUpdate* known = &options_.known->update;
    if (!known->bound || known->gradients != result_.gradients ||
        known->offload != options_.pipeline.offload) {
      PLIMSOLL_ASSIGN(Begun begun, begin_update());
      PLIMSOLL_ASSIGN(known->bound, bind_program(kUpdate, std::move(begun.graph), begun.pipeline, target_));
      known->gradients = result_.gradients, known->offload = options_.pipeline.offload;
    }
    PLIMSOLL_ASSIGN(passes::Program program, place_program(*known->bound, memory_, options_.pipeline.verify));
    note_precision(kUpdate, program.graph, {});
    note_program(program);
    return program;
  }
  Result<Begun> begin_update() {
    Graph graph;
    graph.name = passes::name(kUpdate);
    passes::Pipeline pipeline(pipeline_options(graph));
    Builder b(graph, ops::find_op);
    std::vector<ValueId> sums;
    for (size_t p = 0; p < trained_.size(); ++p) {
      const models::Parameter& parameter = *trained_[p];
      const ir::TensorType type{DType::kF32, parameter.shape};
      graph.declare_state({parameter.name, {parameter.dtype, parameter.shape}, StateClass::kParameter});
      ValueId sum;
      for (const std::string& name : result_.gradients[p].accumulators) {
        const ValueId gradient = b.state({name, type, StateClass::kGradient});
        if (sum.valid() && options_.optimizer.state.gradients != DType::kF32)
          sum = ops::cast(b, sum, options_.optimizer.state.gradients);
        sum = sum.valid() ? ops::add(b, sum, gradient) : gradient;
      }
      sums.push_back(sum);
    }
    PLIMSOLL_TRY(append_update(b, sums));
    PLIMSOLL_TRY(pipeline.forward(graph, {}));
    return Begun{std::move(graph), std::move(pipeline), {}};
  }

  Result<passes::Program> eval() {
    const ProgramId id = at_length(ProgramRole::kEval);
    Graph graph;
    graph.name = passes::name(id);
    passes::Pipeline pipeline(pipeline_options(graph, /*grad=*/false));
    ValueId loss;
    PLIMSOLL_TRY(forward(graph, pipeline, loss, /*training=*/false));
    return finish(id, std::move(graph), pipeline);
  }

  Result<passes::Program> logits() {
    Graph graph;
    graph.name = passes::name(ProgramRole::kLogits);
    passes::Pipeline pipeline(pipeline_options(graph, /*grad=*/false));
    Builder b(graph, ops::find_op);
    assign_logits(graph, b, options_.task->logits(b, model_, inputs(b)));
    PLIMSOLL_TRY(b.status());
    PLIMSOLL_TRY(pipeline.forward(graph, {}));
    return finish({ProgramRole::kLogits}, std::move(graph), pipeline);
  }

  /// Draws the parameters that `drawn` picks.
  Result<passes::Program> init(ProgramRole role, const std::function<bool(const models::Parameter&)>& drawn) {
    Graph graph;
    graph.name = passes::name(role);
    passes::Pipeline pipeline(pipeline_options(graph));
    Builder b(graph, ops::find_op);
    const ValueId random = b.state(random_state());
    append_initial_values(b, random, model_, options_.optimizer.state.masters && options_.training, drawn);
    PLIMSOLL_TRY(b.status());
    return finish({role}, std::move(graph), pipeline);
  }

  /// Without a program where it is outlined.
  Result<passes::Program> finish(const ProgramId& id, Graph graph, passes::Pipeline& pipeline) {
    if (outlines()) {
      PLIMSOLL_TRY(schedule(id, std::move(graph), pipeline));
      return passes::Program{};
    }
    PLIMSOLL_ASSIGN(passes::Program program,
                    finish_program(id, std::move(graph), pipeline, memory_, target_));
    describe(id, program.graph, pipeline);
    note_program(program);
    return program;
  }
  void note_program(const passes::Program& program) {
    for (size_t s = 0; s < ir::kNumSpaces; ++s)
      memory_.taken_bytes[s] = std::max(memory_.taken_bytes[s], program.plan.pools[s].arena_bytes);
    add_cost(program);
  }
  void describe(const ProgramId& id, const Graph& graph, const passes::Pipeline& pipeline) {
    note_precision(id, graph, pipeline.precision());
    if (!result_.recomputed.empty()) return;
    for (const passes::RecomputeUnit& unit : pipeline.recomputed()) result_.recomputed.push_back(unit.name);
  }

  /// Of the first program and the update.
  void note_precision(const ProgramId& id, const Graph& graph, const passes::AutocastReport& report) {
    PrecisionReport& precision = result_.precision;
    if (!first_finished_) precision.ops = report.choices;
    if (!first_finished_ || id == kUpdate)
      for (CastUse& cast : casts_of(graph)) precision.casts.push_back(std::move(cast));
    first_finished_ = true;
  }

  void add_cost(const passes::Program& program) {
    const ProgramRole role = options_.training ? costed_program(options_.accumulate) : ProgramRole::kEval;
    const ProgramId counted{role, bucket_of(options_.sequence_length, options_.buckets)};
    if (program.id != counted && program.id != kUpdate) return;
    planner::add_cost(program.graph, program.id.role, costs_, result_.cost);
  }

  /// The value of each trained parameter in the program, in the model's order.
  std::vector<ValueId> trained_reads(const Graph& graph) const {
    std::map<std::string, ValueId, std::less<>> reads;
    for (const ir::OpId id : graph.order())
      if (graph.op(id).def->state == ir::StateAccess::kRead)
        reads.emplace(graph.op(id).attrs.str("name"), graph.op(id).outputs[0]);
    std::vector<ValueId> values;
    for (const models::Parameter* p : trained_) values.push_back(reads.at(p->name));
    return values;
  }

  [[nodiscard]] std::vector<optimizers::Update> updates(const std::vector<ValueId>& gradients) const {
    std::vector<optimizers::Update> result;
    for (size_t p = 0; p < gradients.size(); ++p) {
      const models::Parameter& parameter = *trained_[p];
      const bool decays = options_.decay_all || parameter.kind != models::ParameterKind::kVector;
      optimizers::Update update{parameter.name, gradients[p], optimizers::row_of(parameter.group, decays)};
      for (const models::ParameterView& view : parameter.views) update.parts.push_back(view.shape.dim(0));
      update.is_hidden = parameter.block != ir::kNoBlock;
      update.kind = parameter.kind;
      result.push_back(std::move(update));
    }
    return result;
  }

  const models::Model& model_;
  const StepOptions& options_;
  const runtime::Target& target_;
  const CostModel costs_;
  std::vector<const models::Parameter*> trained_;
  std::vector<std::string> frozen_;
  int64_t length_;  ///< of the program at hand; behind the buckets' the longest
  passes::MemoryPlanOptions memory_ = options_.memory;
  bool first_finished_ = false;
  ScheduledPrograms scheduled_;  ///< as far as they are; options_.scheduled takes them whole
  std::set<std::string, std::less<>> scheduled_states_;
  TrainingPrograms result_;
};

}  // namespace

std::string input_state(std::string_view name, int64_t bucket) {
  return bucket == 0 ? fmt::format("batch.{}", name) : fmt::format("batch.{}@{}", name, bucket);
}

Result<TrainingPrograms> build_training_programs(const models::Model& model, const StepOptions& options,
                                                 const runtime::Target& target) {
  return ProgramBuilder(model, options, target).run();
}

}  // namespace plimsoll::planner
