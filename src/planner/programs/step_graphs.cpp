#include "planner/programs/step_graphs.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/check.h"
#include "models/language_model.h"
#include "ops/accumulate.h"
#include "ops/elementwise.h"
#include "ops/fp8_scaling.h"
#include "ops/granules.h"
#include "ops/op_list.h"
#include "ops/structure.h"
#include "passes/training/accumulate.h"
#include "passes/training/accumulate_pieces.h"
#include "passes/training/store_gradients.h"
#include "planner/cost/known_profiles.h"
#include "planner/cost/queue_times.h"

namespace plimsoll::planner {
namespace {

using ir::Builder;
using ir::DType;
using ir::Graph;
using ir::StateClass;
using ir::ValueId;
using passes::ProgramId;
using passes::ProgramRole;

/// The logits as the host reads them.
void assign_logits(Graph& graph, Builder& b, ValueId logits) {
  graph.declare_state({std::string(kLogitsState), {DType::kF32, b.type(logits).shape}, StateClass::kOutput});
  b.assign(kLogitsState, logits);
}

/// f32[1]: what the loss is multiplied with before it is differentiated.
ValueId loss_scale(Builder& b) {
  return ops::split(b, b.state(optimizers::scaler_state()), {1, ops::kScalerFields - 1})[ops::kScale];
}

/// Programs without gradients run between steps.
passes::WeightCopies weight_copies(ProgramRole role) {
  using enum passes::WeightCopies;
  if (role == ProgramRole::kMicroNext || role == ProgramRole::kMicroLast) return kRead;
  return role == ProgramRole::kStep || role == ProgramRole::kMicroFirst ? kKeep : kOwn;
}

}  // namespace

CostModel costs_of(const StepOptions& options, const runtime::Target& target) {
  return options.costs != nullptr ? *options.costs
                                  : CostModel(generic_cpu(target.instruction_set()), target.num_threads());
}

StepGraphs::StepGraphs(const models::Model& model, const StepOptions& options, const runtime::Target& target,
                       const CostModel& costs, ProgramCache* cache, TrainingPrograms& result)
    : model_(model), options_(options), target_(target), costs_(costs), cache_(cache), result_(result) {
  PLIMSOLL_CHECK(options.task != nullptr, "programs without a task");
  PLIMSOLL_CHECK(options.buckets.empty() || options.buckets.back() == options.sequence_length,
                 "the last bucket is the sequence");
  PLIMSOLL_CHECK(!options.optimizer_in_backward || !options.accumulate,
                 "an optimizer in backward, and accumulators");
  PLIMSOLL_CHECK(options.accumulate || !options.shares_gradients, "pieces of gradients without accumulators");
  PLIMSOLL_CHECK(!options.sums_in_last ||
                     (options.accumulate && options.ranks > 1 && !options.shares_gradients &&
                      options.optimizer.state.gradients == DType::kF32 && !options.pipeline.offload.any()),
                 "sums over ranks in the last of micro-batches that have none");
  PLIMSOLL_CHECK(!options.gathers_late || (!options.optimizer.shares_parameters &&
                                           !options.optimizer.averages && !options.pipeline.offload.any()),
                 "parameters that are gathered late, and read before");
  for (const models::Parameter& p : model.parameters()) {
    if (p.trained) trained_.push_back(&p);
    if (!p.trained) frozen_.push_back(p.name);
  }
  if (options.training) find_shared_states();
}

passes::Pipeline StepGraphs::pipeline(const ProgramId& id, const Graph& graph,
                                      passes::PipelineProgress progress) {
  passes::PipelineOptions options = options_.pipeline;
  options.grad = id.role != ProgramRole::kEval && id.role != ProgramRole::kLogits;
  options.optimizer_in_backward = options_.optimizer_in_backward;
  options.second_backward = options_.second_backward;
  options.chunk_tokens = chunk_tokens(id);
  options.frozen = frozen_;
  options.sharding = sharding(id.role);
  options.fp8.ends_step = id.role == ProgramRole::kStep;
  if (options_.keeps_weight_copies) options.weight_copies = weight_copies(id.role);
  if (options_.finds_gains && length_of(id) == options_.sequence_length)
    options.look_at_blocks = [this](const passes::RecomputeAnalysis& program) {
      if (!result_.gains.empty()) return;
      result_.gains = layer_gains(program, costs_);
      for (LayerGain& gain : result_.gains)
        for (const int32_t block : options_.task->checkpointed_blocks())
          if (gain.unit.first <= block && block <= gain.unit.last) gain.bytes = 0;  // gained in any case
    };
  options.kernel_seconds = [this](const Graph& g) { return kernel_seconds(op_costs(g, costs_, false)); };
  options.copy_seconds = copy_seconds(costs_.profile());
  return passes::Pipeline(program_options(std::move(options), graph, target_), std::move(progress));
}

StepGraphs::Written StepGraphs::begin(const ProgramId& id) {
  Graph graph;
  graph.name = passes::name(id);
  passes::Pipeline begun = pipeline(id, graph);
  return {std::move(graph), std::move(begun)};
}

/// As given, else whole granules; at least one, at most the micro-batch.
int64_t StepGraphs::chunk_tokens(const ProgramId& id) const {
  const bool is_given = options_.chunk_tokens > 0;
  const int64_t unit = is_given ? ops::kLossRows : ops::kGranule;
  const models::LanguageModel* language = models::as_language_model(model_);
  const int64_t row_bytes = 4 * (language == nullptr ? 1 : language->vocab_size());
  const int64_t tokens = is_given ? options_.chunk_tokens : options_.logits_bytes / row_bytes;
  const int64_t most = round_up(options_.micro_batch_size * length_of(id), ops::kGranule);
  return std::clamp(tokens / unit * unit, unit, most);
}

/// The task's, in its order.
std::vector<ValueId> StepGraphs::inputs(const ProgramId& id, Builder& b) const {
  std::vector<ValueId> values;
  for (const datasets::TensorSpec& input : options_.task->inputs())
    values.push_back(
        b.state({input_state(input.name, id.bucket),
                 input.batch_type(options_.micro_batch_size, length_of(id)), StateClass::kInput}));
  return values;
}

/// Forward to the loss, which is added to its state; in training with dropout. The passes have run; `loss`
/// stands for the loss after them.
Status StepGraphs::forward(const ProgramId& id, Written& written, ValueId& loss, bool training) {
  Builder b(written.graph, ops::find_op);
  const std::vector<ValueId> values = inputs(id, b);
  ValueId scale = b.state({std::string(kGradScaleState), {DType::kF32, {1}}, StateClass::kScalars});
  if (training && options_.optimizer.loss_scaling) scale = ops::mul(b, scale, loss_scale(b));
  const ValueId acc = b.state({std::string(kLossState), {DType::kF32, {1}}, StateClass::kOutput});
  const ValueId random = training ? b.state(random_state()) : ValueId{};
  const bool keeps_logits = !training && options_.task->has_metrics();
  const tasks::Outputs outputs = options_.task->forward(
      b, model_, values,
      {.grad_scale = scale, .acc = acc, .training = training, .random = random, .logits = keeps_logits});
  loss = outputs.loss;
  b.assign(kLossState, outputs.total.valid() ? outputs.total : loss);
  if (keeps_logits) assign_logits(written.graph, b, outputs.logits);
  PLIMSOLL_TRY(b.status());
  PLIMSOLL_TRY(written.pipeline.forward(written.graph, {&loss, 1}));
  note_overrides(written.pipeline.precision());
  return Ok{};
}

void StepGraphs::note_overrides(const passes::AutocastReport& report) {
  result_.overrides_used.resize(options_.pipeline.precision_overrides.size());
  for (size_t i = 0; i < report.used.size(); ++i)
    result_.overrides_used[i] = result_.overrides_used[i] || report.used[i];
  if (result_.overridable.empty()) result_.overridable = report.names;
}

Result<StepGraphs::Written> StepGraphs::differentiated(const ProgramId& id) {
  Written written = begin(id);
  ValueId loss;
  PLIMSOLL_TRY(forward(id, written, loss, /*training=*/true));
  const std::vector<ValueId> parameters = trained_reads(written.graph);
  PLIMSOLL_ASSIGN(written.derivative, written.pipeline.differentiate(written.graph, {loss, parameters}));
  std::vector<ValueId> gradients;
  for (const auto& uses : written.derivative.contributions)
    gradients.insert(gradients.end(), uses.begin(), uses.end());
  PLIMSOLL_TRY(passes::store_gradients(
      written.graph, gradients, options_.accumulate ? DType::kF32 : options_.optimizer.state.gradients));
  return written;
}

Status StepGraphs::complete(const ProgramId& id, Written& written) {
  written.graph.name = passes::name(id);
  if (options_.accumulate) {
    PLIMSOLL_TRY(accumulate(id, written));
    if (id.role == ProgramRole::kMicroLast) PLIMSOLL_TRY(sum_in_last(written.graph));
  } else {
    Builder b(written.graph, ops::find_op);
    PLIMSOLL_TRY(append_update(b, sums_over_ranks(b, written)));
  }
  PLIMSOLL_TRY(written.pipeline.tidy(written.graph));
  fp8_slots_ = written.pipeline.fp8().slots;
  return Ok{};
}

Status StepGraphs::accumulate(const ProgramId& id, Written& written) {
  const DType dtype = options_.optimizer.state.accumulators;
  const bool draws = dtype != DType::kF32;
  if (draws) written.graph.declare_state(random_state());
  std::vector<passes::Accumulation> accumulations;
  std::vector<passes::PieceAccumulation> in_pieces;
  const bool is_first = id.role == ProgramRole::kMicroFirst;
  const std::vector<int64_t> pieces = gradient_pieces();
  for (size_t p = 0; p < trained_.size(); ++p) {
    const auto& uses = written.derivative.contributions[p];
    GradientStates states{trained_[p]->name, {}};
    const bool is_whole = pieces[p] == 0;
    if (!is_whole) {
      states.accumulators = {"grad." + states.parameter};
      written.graph.declare_state(
          {states.accumulators[0], {DType::kF32, {pieces[p]}}, StateClass::kGradient});
      in_pieces.push_back({written.derivative.cotangents[p], states.accumulators[0], is_first});
    }
    for (size_t u = 0; u < uses.size() && is_whole; ++u) {
      const std::string name = "grad." + states.parameter + (u == 0 ? "" : "#" + std::to_string(u));
      const ir::Shape shape = written.graph.type(uses[u]).shape;
      written.graph.declare_state({name, {dtype, shape}, StateClass::kGradient});
      accumulations.push_back({uses[u], name, is_first, draws ? std::string(kRandomState) : "",
                               draws ? ops::random_key(name, "accumulate") : 0});
      states.accumulators.push_back(name);
    }
    const bool has_it = result_.gradients.size() > p;  // from another program
    if (!has_it) result_.gradients.push_back(std::move(states));
  }
  PLIMSOLL_TRY(passes::accumulate(written.graph, accumulations));
  return passes::accumulate_pieces(written.graph, in_pieces, options_.ranks);
}

BeginningKey StepGraphs::key_of(const ProgramId& id) const {
  return {id, options_.micro_batch_size, length_of(id), chunk_tokens(id), options_.keeps_weight_copies};
}

BeginningKey StepGraphs::ordered_key_of(const ProgramId& id) const {
  BeginningKey key = key_of(id);
  key.order = {options_.pipeline.recompute, options_.pipeline.offload, options_.optimizer_in_backward,
               options_.second_backward, options_.finds_gains};
  return key;
}

const ProgramBeginning* StepGraphs::find_beginning(const ProgramId& id) const {
  return uses_cache() ? cache_->find_beginning(key_of(id)) : nullptr;
}

bool StepGraphs::shares_order() const {
  return uses_cache() && options_.ranks > 1 &&
         (options_.optimizer.shares_parameters || costs_.network_is_apart());
}

const ProgramBeginning* StepGraphs::find_ordered(const ProgramId& id) const {
  return shares_order() ? cache_->find_beginning(ordered_key_of(id)) : nullptr;
}

void StepGraphs::note_beginning(const ProgramBeginning& beginning) {
  note_overrides(beginning.progress.precision);
  fp8_slots_ = beginning.progress.fp8.slots;
  if (result_.gradients.empty()) result_.gradients = beginning.gradients;
}

StepGraphs::Written StepGraphs::resumed(const ProgramId& id, const ProgramBeginning& beginning) {
  note_beginning(beginning);
  if (result_.gains.empty()) result_.gains = beginning.gains;
  Graph graph = beginning.graph;
  passes::Pipeline from_there = pipeline(id, graph, beginning.progress);
  return Written{std::move(graph), std::move(from_there)};
}

Result<StepGraphs::Written> StepGraphs::training(const ProgramId& id,
                                                 std::optional<Written> differentiated_one) {
  if (const ProgramBeginning* ordered = find_ordered(id)) return resumed(id, *ordered);
  PLIMSOLL_ASSIGN(Written written, tidied(id, std::move(differentiated_one)));
  if (!shares_order()) return written;
  const bool knows_gains = !result_.gains.empty();
  PLIMSOLL_TRY(written.pipeline.order(written.graph));
  if (options_.finds_gains && knows_gains) return written;  // of another program: this one's are not known
  cache_->add_beginning({ordered_key_of(id), written.graph, written.pipeline.progress(), result_.gradients,
                         options_.finds_gains ? result_.gains : std::vector<LayerGain>{}});
  return written;
}

Result<StepGraphs::Written> StepGraphs::tidied(const ProgramId& id,
                                               std::optional<Written> differentiated_one) {
  if (const ProgramBeginning* beginning = find_beginning(id)) return resumed(id, *beginning);
  std::optional<Written> written = std::move(differentiated_one);
  if (!written) {
    PLIMSOLL_ASSIGN(written, differentiated(id));
  } else {  // begun as another program, whose passes go on otherwise
    passes::Pipeline own = pipeline(id, written->graph, written->pipeline.progress());
    written = Written{std::move(written->graph), std::move(own), std::move(written->derivative)};
  }
  PLIMSOLL_TRY(complete(id, *written));
  if (uses_cache())
    cache_->add_beginning({key_of(id), written->graph, written->pipeline.progress(), result_.gradients});
  return std::move(*written);
}

void StepGraphs::describe(const ProgramId& id, const Graph& graph, const passes::Pipeline& pipeline) {
  describe_precision(id, graph, pipeline.precision());
  if (result_.precision.fp8.empty()) result_.precision.fp8 = pipeline.fp8().products;
  if (!result_.recomputed.empty()) return;
  for (const passes::RecomputeUnit& unit : pipeline.recomputed()) {
    result_.recomputed.push_back(unit.name);
    if (unit.part.empty())
      result_.recomputed_layers += unit.last - unit.first + 1;
    else
      ++result_.recomputed_parts;
  }
}

void StepGraphs::describe_precision(const ProgramId& id, const Graph& graph,
                                    const passes::AutocastReport& report) {
  PrecisionReport& precision = result_.precision;
  if (!has_described_) precision.ops = report.choices;
  if (!has_described_ || id.role == ProgramRole::kUpdate)
    for (CastUse& cast : casts_of(graph)) precision.casts.push_back(std::move(cast));
  has_described_ = true;
}

Result<StepGraphs::Written> StepGraphs::eval(const ProgramId& id) {
  Written written = begin(id);
  ValueId loss;
  PLIMSOLL_TRY(forward(id, written, loss, /*training=*/false));
  if (options_.training && options_.optimizer.averages) read_averages(written.graph);
  return written;
}

/// Running statistics that forward writes.
std::vector<models::Buffer> StepGraphs::running_buffers() const {
  std::vector<models::Buffer> buffers;
  for (const models::Buffer& buffer : model_.buffers()) {
    const auto is_written = [&](const models::BatchNormLayer& layer) {
      return layer.statistics == models::NormStatistics::kBatch && buffer.name.starts_with(layer.name + ".");
    };
    if (!buffer.is_count && std::ranges::any_of(model_.batch_norms(), is_written)) buffers.push_back(buffer);
  }
  return buffers;
}

/// What is averaged is read as its average.
void StepGraphs::read_averages(Graph& graph) const {
  std::set<std::string, std::less<>> averaged;
  for (const models::Parameter* p : trained_) averaged.insert(p->name);
  for (const models::Buffer& buffer : running_buffers()) averaged.insert(buffer.name);
  for (const ir::OpId id : graph.order()) {
    ir::Op& op = graph.op(id);
    if (op.def->state != ir::StateAccess::kRead || !averaged.contains(op.attrs.str("name"))) continue;
    const std::string name = optimizers::average_name(op.attrs.str("name"));
    graph.declare_state({name, graph.type(op.outputs[0]), StateClass::kOptimizerState});
    op.attrs.set("name", name);
  }
}

Result<StepGraphs::Written> StepGraphs::logits() {
  const ProgramId id{ProgramRole::kLogits, bucket_of(options_.sequence_length, options_.buckets)};
  Written written = begin({ProgramRole::kLogits});
  Builder b(written.graph, ops::find_op);
  assign_logits(written.graph, b, options_.task->logits(b, model_, inputs(id, b)));
  PLIMSOLL_TRY(b.status());
  PLIMSOLL_TRY(written.pipeline.forward(written.graph, {}));
  return written;
}

Result<StepGraphs::Written> StepGraphs::init(ProgramRole role,
                                             const std::function<bool(const models::Parameter&)>& drawn) {
  Written written = begin({role});
  Builder b(written.graph, ops::find_op);
  const ValueId random = b.state(random_state());
  const bool masters = options_.optimizer.state.masters && options_.training;
  append_initial_values(b, random, model_, {masters, options_.optimizer.ranks, &shared_}, drawn);
  if (role == ProgramRole::kInit) append_initial_buffers(b, model_);
  PLIMSOLL_TRY(b.status());
  return written;
}

/// The value of each trained parameter in the program, in the model's order.
std::vector<ValueId> StepGraphs::trained_reads(const Graph& graph) const {
  std::map<std::string, ValueId, std::less<>> reads;
  for (const ir::OpId id : graph.order())
    if (graph.op(id).def->state == ir::StateAccess::kRead)
      reads.emplace(graph.op(id).attrs.str("name"), graph.op(id).outputs[0]);
  std::vector<ValueId> values;
  for (const models::Parameter* p : trained_) values.push_back(reads.at(p->name));
  return values;
}

}  // namespace plimsoll::planner
