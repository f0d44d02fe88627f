// The update of a training session: its gradients from the accumulators, over the ranks, and what of it ranks
// share.
#include <algorithm>
#include <map>
#include <set>

#include "base/check.h"
#include "ops/elementwise.h"
#include "ops/fp8_scaling.h"
#include "ops/op_list.h"
#include "ops/ranks.h"
#include "ops/shard.h"
#include "ops/structure.h"
#include "passes/offload/offload.h"
#include "passes/training/fp8_scales.h"
#include "passes/training/sum_over_ranks.h"
#include "planner/programs/step_graphs.h"

namespace plimsoll::planner {
namespace {

using ir::Builder;
using ir::DType;
using ir::StateClass;
using ir::ValueId;
using passes::ProgramRole;

}  // namespace

std::vector<optimizers::Update> StepGraphs::updates(const std::vector<ValueId>& gradients) const {
  std::vector<optimizers::Update> result;
  for (size_t p = 0; p < gradients.size(); ++p) {
    const models::Parameter& parameter = *trained_[p];
    const bool decays = options_.decay_all || parameter.kind != models::ParameterKind::kVector;
    optimizers::Update update{parameter.name, gradients[p], optimizers::row_of(parameter.group, decays)};
    for (const models::ParameterView& view : parameter.views) update.parts.push_back(view.shape.dim(0));
    update.is_hidden = parameter.is_hidden || parameter.block != ir::kNoBlock;
    update.kind = parameter.kind;
    update.type = {parameter.dtype, parameter.shape};
    result.push_back(std::move(update));
  }
  return result;
}

/// Of all trained parameters, without gradients.
std::vector<optimizers::RuledUpdate> StepGraphs::ruled_updates() const {
  std::vector<optimizers::RuledUpdate> ruled;
  const std::vector<optimizers::Update> all = updates(std::vector<ValueId>(trained_.size()));
  for (size_t p = 0; p < all.size(); ++p) ruled.push_back({all[p], {trained_[p]->dtype, trained_[p]->shape}});
  return ruled;
}

std::vector<int64_t> StepGraphs::gradient_pieces() const {
  std::vector<int64_t> pieces(trained_.size(), 0);
  if (!options_.shares_gradients) return pieces;
  const std::vector<optimizers::RuledUpdate> all = ruled_updates();
  for (size_t p = 0; p < all.size(); ++p)
    if (optimizers::has_pieces(options_.optimizer, trained_[p]->shape, all[p].update))
      pieces[p] = ops::piece_elements(trained_[p]->shape.num_elements(), options_.ranks);
  return pieces;
}

/// Masters, states and parameters as the optimizer divides them; frozen parameters in pieces, where they are
/// larger than the least piece.
void StepGraphs::find_shared_states() {
  const std::vector<optimizers::RuledUpdate> ruled = ruled_updates();
  for (optimizers::SharedState& s : optimizers::shared_states(options_.optimizer, ruled))
    shared_.emplace(s.name, std::move(s));
  for (const optimizers::RuledUpdate& u : ruled)
    if (options_.gathers_late && optimizers::has_pieces(options_.optimizer, u.parameter.shape, u.update))
      late_.push_back(u.update.parameter);
  if (!options_.optimizer.shares_parameters) return;
  for (const models::Parameter& p : model_.parameters()) {
    const ir::TensorType type{p.dtype, p.shape};
    const int64_t parts = ir::is_block(p.dtype) ? type.bytes().count : type.num_elements();
    if (!p.trained && parts > ops::kPieceGrain) shared_[p.name] = {p.name, type, p.name, -1};
  }
}

passes::Sharding StepGraphs::sharding(ProgramRole role) const {
  passes::Sharding sharding{.ranks = options_.optimizer.ranks};
  const bool reads_whole =
      role != ProgramRole::kInit && role != ProgramRole::kInitHead && role != ProgramRole::kUpdate;
  const bool begins = role == ProgramRole::kStep || role == ProgramRole::kMicroFirst;
  if (begins || role == ProgramRole::kUpdate) sharding.late = late_;
  sharding.gathers_late = begins;
  if (!options_.optimizer.shares_parameters || !reads_whole) return sharding;
  const int32_t first_gathered = model_.num_blocks() - options_.gathered_blocks;
  for (const auto& [name, s] : shared_) {
    const int32_t block = passes::block_of_state(name);
    const bool stays = block != ir::kNoBlock && block >= first_gathered;
    sharding.states.push_back({name, s.kept, kept_type(s, options_.optimizer.ranks), s.owner, stays});
  }
  return sharding;
}

Result<StepGraphs::Written> StepGraphs::gather() {
  Written written = begin({ProgramRole::kGather});
  Builder b(written.graph, ops::find_op);
  const int64_t ranks = options_.optimizer.ranks;
  const auto scope = b.block(ir::kUpdateBlock, "ranks");
  for (const models::Parameter* p : trained_) {
    if (std::ranges::find(late_, p->name) == late_.end()) continue;
    const ValueId x = b.state({p->name, {p->dtype, p->shape}, StateClass::kParameter});
    const ValueId piece = ops::own_piece(b, x, ranks, ops::piece_elements(p->shape.num_elements(), ranks));
    b.assign(p->name, ops::all_gather(b, piece, x, ranks));
  }
  PLIMSOLL_TRY(b.status());
  return written;
}

void StepGraphs::note_shared_states(passes::SessionPlan& session) const {
  for (const auto& [name, s] : shared_) session.share({name, s.type, -1, s.owner}, s.kept);
}

/// Takes the sums over ranks, but of what is a piece of one already.
void StepGraphs::add_ranks(Builder& b, const std::vector<int64_t>& pieces, std::vector<ValueId>& sums) const {
  std::vector<ValueId> own;
  std::vector<bool> as_pieces;
  const std::vector<optimizers::RuledUpdate> all = ruled_updates();
  for (size_t p = 0; p < sums.size(); ++p) {
    if (pieces[p] > 0) continue;
    own.push_back(sums[p]);
    as_pieces.push_back(optimizers::has_pieces(options_.optimizer, trained_[p]->shape, all[p].update));
  }
  own = passes::sum_over_ranks(b, own, options_.ranks, as_pieces);
  auto next = own.begin();
  for (size_t p = 0; p < sums.size(); ++p)
    if (pieces[p] == 0) sums[p] = *next++;
}

/// The gradients of a step without accumulators, and its loss, which is assigned where forward has it.
std::vector<ValueId> StepGraphs::sums_over_ranks(Builder& b, const Written& written) const {
  std::vector<ValueId> sums = written.derivative.cotangents;
  if (options_.ranks == 1) return sums;
  add_ranks(b, gradient_pieces(), sums);
  const auto assigns_loss = [&](ir::OpId id) {
    const ir::Op& op = b.graph().op(id);
    return op.def->state == ir::StateAccess::kAssign && op.attrs.str("name") == kLossState;
  };
  std::vector<ir::OpId> order = b.graph().order();
  const auto assign = std::ranges::find_if(order, assigns_loss);
  PLIMSOLL_CHECK(assign != order.end(), "a step without a loss");
  const ValueId loss = b.graph().op(*assign).inputs[0];
  order.erase(assign);
  b.graph().set_order(std::move(order));
  const auto scope = b.block(ir::kUpdateBlock, "ranks");
  b.assign(kLossState, ops::sum_ranks(b, ops::gather_ranks(b, loss, options_.ranks)));
  return sums;
}

/// In the gradients' dtype the sum is rounded where a step without accumulation stores it. Accumulators of
/// bf16 are added up in f32; what ranks then add is as accumulators are, wherever they do.
ValueId StepGraphs::sum_of_uses(Builder& b, const std::vector<ValueId>& uses) const {
  if (uses.size() == 1) return uses[0];
  const optimizers::StateDtypes& dtypes = options_.optimizer.state;
  const auto as = [&](ValueId x, DType dtype) {
    return b.type(x).dtype == dtype ? x : ops::cast(b, x, dtype);
  };
  ValueId sum;
  for (const ValueId use : uses) {
    if (sum.valid() && dtypes.gradients != DType::kF32) sum = as(sum, dtypes.gradients);
    const ValueId next = as(use, DType::kF32);
    sum = sum.valid() ? ops::add(b, sum, next) : next;
  }
  return options_.ranks > 1 ? as(sum, dtypes.accumulators) : sum;
}

/// A gradient is complete with its accumulators, and its sum over the ranks is the first one's value from
/// there on.
Status StepGraphs::sum_in_last(ir::Graph& graph) const {
  std::map<std::string, ir::OpId, std::less<>> assigns;
  for (const ir::OpId id : graph.order())
    if (graph.op(id).def->state == ir::StateAccess::kAssign)
      assigns.emplace(graph.op(id).attrs.str("name"), id);
  Builder b(graph, ops::find_op);
  const auto scope = b.block(ir::kUpdateBlock, "ranks");
  std::vector<ValueId> sums;
  std::set<ir::OpId> replaced;
  for (const GradientStates& of : result_.gradients) {
    std::vector<ValueId> complete;
    for (const std::string& name : of.accumulators) complete.push_back(graph.op(assigns.at(name)).inputs[0]);
    replaced.insert(assigns.at(of.accumulators[0]));
    sums.push_back(sum_of_uses(b, complete));
  }
  std::vector<ir::OpId> order = graph.order();
  std::erase_if(order, [&](ir::OpId id) { return replaced.contains(id); });
  graph.set_order(std::move(order));
  add_ranks(b, gradient_pieces(), sums);
  for (size_t p = 0; p < sums.size(); ++p) b.assign(result_.gradients[p].accumulators[0], sums[p]);
  return b.status();
}

Result<StepGraphs::Written> StepGraphs::update() {
  Written written = begin({ProgramRole::kUpdate});
  Builder b(written.graph, ops::find_op);
  std::vector<ValueId> sums;
  const std::vector<int64_t> pieces = gradient_pieces();
  for (size_t p = 0; p < trained_.size(); ++p) {
    const models::Parameter& parameter = *trained_[p];
    const ir::TensorType type{options_.optimizer.state.accumulators,
                              pieces[p] == 0 ? parameter.shape : ir::Shape{pieces[p]}};
    if (!shared_.contains(parameter.name))
      written.graph.declare_state(
          {parameter.name, {parameter.dtype, parameter.shape}, StateClass::kParameter});
    std::vector<std::string> accumulators = result_.gradients[p].accumulators;
    if (options_.sums_in_last) accumulators.resize(1);
    std::vector<ValueId> uses;
    uses.reserve(accumulators.size());
    for (const std::string& name : accumulators) uses.push_back(b.state({name, type, StateClass::kGradient}));
    sums.push_back(sum_of_uses(b, uses));
  }
  if (options_.ranks > 1) {
    if (!options_.sums_in_last) add_ranks(b, pieces, sums);
    written.graph.declare_state({std::string(kLossState), {DType::kF32, {1}}, StateClass::kOutput});
    passes::sum_state_over_ranks(b, kLossState, options_.ranks);
  }
  PLIMSOLL_TRY(append_update(b, sums));
  if (fp8_slots_ > 0) {
    const passes::Fp8Settings& fp8 = options_.pipeline.fp8;
    const ValueId scales = b.state(ops::fp8_scale_state(fp8_slots_));
    const ValueId history = b.state(ops::fp8_history_state(fp8_slots_, fp8.history_len));
    passes::append_next_scales(b, fp8, history, scales);
  }
  PLIMSOLL_TRY(b.status());
  PLIMSOLL_TRY(written.pipeline.forward(written.graph, {}));
  return written;
}

/// What the micro-batches of each rank have made of it: ranks average it, so that all go on from one value,
/// which they have already where their statistics are those of all.
void StepGraphs::append_running(Builder& b, const models::Buffer& buffer) const {
  const bool is_common = std::ranges::all_of(
      model_.batch_norms(), [](const models::BatchNormLayer& layer) { return layer.ranks > 1; });
  const bool differs = options_.ranks > 1 && !is_common;
  if (!differs && !options_.optimizer.averages) return;
  const ir::StateDecl state = models::state_of(buffer);
  b.graph().declare_state(state);
  const ValueId value =
      differs ? passes::average_state_over_ranks(b, state.name, options_.ranks) : b.read(state.name);
  const auto scope = b.block(ir::kUpdateBlock, "optimizer");
  if (options_.optimizer.averages) optimizers::append_average(b, buffer.name, value);
}

Status StepGraphs::append_update(Builder& b, const std::vector<ValueId>& gradients) const {
  const bool draws = options_.optimizer.state.stochastic;
  PLIMSOLL_TRY(optimizers::append_update(b, updates(gradients), options_.optimizer,
                                         draws ? b.state(random_state()) : ValueId{}));
  for (const models::Buffer& buffer : running_buffers()) append_running(b, buffer);
  return b.status();
}

}  // namespace plimsoll::planner
