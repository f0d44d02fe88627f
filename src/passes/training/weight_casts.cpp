#include "passes/training/weight_casts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/builder.h"
#include "ir/op_def.h"
#include "ops/op_list.h"
#include "ops/operands.h"
#include "passes/fusion/rounding_readers.h"

namespace plimsoll::passes {
namespace {

using ir::DType;
using ir::Op;
using ir::OpId;
using ir::ValueId;

constexpr std::string_view kPrefix = "cast.weight.";

/// Products that round one weight to one dtype.
struct RoundedWeight {
  DType dtype = DType::kBf16;
  struct Use {
    ValueId weight;
    OpId product;
  };
  std::vector<Use> uses = {};
};
using RoundedWeights = std::map<std::string, RoundedWeight>;  // by the state's name

RoundedWeights rounded_weights(const ir::Graph& graph, const Rewriter& rw) {
  RoundedWeights weights;
  for (const OpId id : graph.order()) {
    const Op& read = graph.op(id);
    if (!reads_parameter(graph, read) || graph.type(read.outputs[0]).dtype != DType::kF32) continue;
    for (const OpId reader : rw.uses(read.outputs[0]))
      if (const auto dtype = rounds_to(graph.op(reader), read.outputs[0])) {
        RoundedWeight& weight =
            weights[fmt::format("{}{}.{}", kPrefix, read.attrs.str("name"), ir::name(*dtype))];
        weight.dtype = *dtype;
        weight.uses.push_back({read.outputs[0], reader});
      }
  }
  return weights;
}

void read_copy(ir::Graph& graph, const RoundedWeight& weight, ValueId copy) {
  for (const RoundedWeight::Use& use : weight.uses) read_rounded(graph, use.product, use.weight, copy);
}

/// One cast of each weight, in front of the first of its products.
Result<Replaced> keep(ir::Graph& graph, Rewriter& rw, const RoundedWeights& weights) {
  std::map<std::string, ValueId> made;
  for (const auto& [name, weight] : weights) {
    const auto place = [&](const RoundedWeight::Use& use) { return rw.position(use.product); };
    const RoundedWeight::Use first = *std::ranges::min_element(weight.uses, {}, place);
    made[name] = rw.before(first.product, "cast", {first.weight}, ops::with_out({}, weight.dtype))[0];
    read_copy(graph, weight, made[name]);
  }
  PLIMSOLL_ASSIGN(Replaced replaced, rw.finish());
  ir::Builder b(graph, ops::find_op);
  for (const auto& [name, weight] : weights) {
    graph.declare_state({name, graph.type(made[name]), ir::StateClass::kCache});
    b.assign(name, made[name]);
  }
  PLIMSOLL_TRY(b.status());
  return replaced;
}

/// Takes out the reads of weights that nothing but those products used.
void drop_unused(ir::Graph& graph, const Rewriter& rw, const RoundedWeights& weights) {
  const Lists<OpId> uses = graph.uses();
  std::set<OpId> unused;
  for (const auto& [name, weight] : weights)
    for (const RoundedWeight::Use& use : weight.uses)
      if (uses[static_cast<size_t>(use.weight.index)].empty() && !rw.wanted(use.weight))
        unused.insert(rw.producer_id(use.weight));
  std::vector<OpId> order = graph.order();
  std::erase_if(order, [&](OpId id) { return unused.contains(id); });
  graph.set_order(std::move(order));
}

/// Reads each copy before everything else.
Status read(ir::Graph& graph, const Rewriter& rw, const RoundedWeights& weights) {
  const size_t known = graph.order().size();
  ir::Builder b(graph, ops::find_op);
  for (const auto& [name, weight] : weights) {
    ir::TensorType type = graph.type(weight.uses.front().weight);
    type.dtype = weight.dtype;
    graph.declare_state({name, type, ir::StateClass::kCache});
    read_copy(graph, weight, b.read(name));
  }
  PLIMSOLL_TRY(b.status());
  put_last_first(graph, known);
  drop_unused(graph, rw, weights);
  return Ok{};
}

}  // namespace

bool is_weight_cast(const ir::StateDecl& state) { return state.name.starts_with(kPrefix); }

Result<Replaced> weight_casts(ir::Graph& graph, const WeightCastsOptions& options) {
  if (options.copies == WeightCopies::kOwn) return Replaced{};
  Rewriter rw(graph, options.keep);
  const RoundedWeights weights = rounded_weights(graph, rw);
  if (options.copies == WeightCopies::kKeep) return keep(graph, rw, weights);
  PLIMSOLL_TRY(read(graph, rw, weights));
  return Replaced{};
}

}  // namespace plimsoll::passes
