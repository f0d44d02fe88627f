#include "passes/training/fp8_weights.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ir/builder.h"
#include "ir/op_def.h"
#include "ir/op_query.h"
#include "ops/op_list.h"

namespace plimsoll::passes {
namespace {

using ir::Op;
using ir::OpId;
using ir::ValueId;

constexpr std::string_view kPrefix = "fp8.weight.";
constexpr std::string_view kTurned = ".turned";
constexpr std::string_view kParts[] = {".codes", ".scales", ".amax"};

/// Ops that make the same copy of a weight, in the program's order.
using MakersByState = std::map<std::string, std::vector<OpId>>;  // by the states' name

MakersByState copies_of_weights(const ir::Graph& graph) {
  MakersByState copies;
  for (const OpId id : graph.order()) {
    const Op& op = graph.op(id);
    if (!ir::takes_attr(op, "hadamard")) continue;  // it quantises no operand
    const Op& weight = graph.op(graph.value(op.inputs[0]).producer);
    if (!reads_parameter(graph, weight)) continue;
    const std::string_view turned = op.attrs.flag("transposed") ? kTurned : "";
    copies[fmt::format("{}{}{}", kPrefix, weight.attrs.str("name"), turned)].push_back(id);
  }
  return copies;
}

/// Where a weight is copied both as it lies and turned, the later copy stands behind the earlier one, so that
/// one op makes both (fuse_quantize.h).
void stand_together(ir::Graph& graph, const MakersByState& copies) {
  std::map<OpId, OpId> other;
  for (const auto& [name, makers] : copies) {
    const auto turned = copies.find(name + std::string(kTurned));
    if (turned == copies.end()) continue;
    other[makers.front()] = turned->second.front();
    other[turned->second.front()] = makers.front();
  }
  std::vector<OpId> order;
  std::set<OpId> placed;
  for (const OpId id : graph.order()) {
    if (placed.contains(id)) continue;
    order.push_back(id);
    const auto found = other.find(id);
    if (found == other.end()) continue;
    graph.op(found->second).inputs[0] = graph.op(id).inputs[0];
    order.push_back(found->second);
    placed.insert(found->second);
  }
  graph.set_order(std::move(order));
}

void declare(ir::Graph& graph, const std::string& name, const std::vector<ValueId>& values) {
  for (size_t i = 0; i < values.size(); ++i)
    graph.declare_state({name + std::string(kParts[i]), graph.type(values[i]), ir::StateClass::kCache});
}

/// Reads each copy before everything else; by the states' name.
std::map<std::string, std::vector<ValueId>> read_first(ir::Graph& graph, const MakersByState& copies) {
  std::map<std::string, std::vector<ValueId>> values;
  const size_t known = graph.order().size();
  ir::Builder b(graph, ops::find_op);
  for (const auto& [name, makers] : copies) {
    const std::vector<ValueId> made = graph.op(makers.front()).outputs;
    declare(graph, name, made);
    for (size_t i = 0; i < made.size(); ++i) values[name].push_back(b.read(name + std::string(kParts[i])));
  }
  put_last_first(graph, known);
  return values;
}

Status assign(ir::Graph& graph, const MakersByState& copies) {
  ir::Builder b(graph, ops::find_op);
  for (const auto& [name, makers] : copies) {
    const std::vector<ValueId> made = graph.op(makers.front()).outputs;
    declare(graph, name, made);
    for (size_t i = 0; i < made.size(); ++i) b.assign(name + std::string(kParts[i]), made[i]);
  }
  return b.status();
}

Fp8Product row_of(const ir::Graph& graph, const Op& maker) {
  Bytes kept{};
  for (const ValueId v : maker.outputs) kept = kept + graph.type(v).bytes();
  return {.layer = maker.layer,
          .product = "weight",
          .left = maker.attrs.str("scheme"),
          .right = "-",
          .computed_in = "-",
          .note = fmt::format("quantized once a step, {} kept", to_string(kept)),
          .block = maker.block};
}

}  // namespace

bool is_fp8_weight(const ir::StateDecl& state) { return state.name.starts_with(kPrefix); }

Result<Fp8WeightsReport> fp8_weights(ir::Graph& graph, const Fp8WeightsOptions& options) {
  Fp8WeightsReport report;
  if (options.copies == WeightCopies::kOwn) return report;
  const MakersByState copies = copies_of_weights(graph);
  const bool reads = options.copies == WeightCopies::kRead;
  std::map<std::string, std::vector<ValueId>> read;
  if (reads)
    read = read_first(graph, copies);
  else
    stand_together(graph, copies);
  Rewriter rewriter(graph, options.keep);
  for (const auto& [name, makers] : copies) {
    report.copies.push_back(row_of(graph, graph.op(makers.front())));
    const std::vector<ValueId> values = reads ? read.at(name) : graph.op(makers.front()).outputs;
    for (const OpId maker : makers) {
      if (!reads && maker == makers.front()) continue;
      const std::vector<ValueId> made = graph.op(maker).outputs;
      for (size_t i = 0; i < made.size(); ++i) rewriter.replace(made[i], values[i]);
      rewriter.remove(maker);
    }
  }
  PLIMSOLL_ASSIGN(report.replaced, rewriter.finish());
  if (!reads) PLIMSOLL_TRY(assign(graph, copies));
  return report;
}

}  // namespace plimsoll::passes
