// A storage handed on keeps its size, so chains of elementwise ops end up in one.
#include "passes/memory/in_place.h"

#include <algorithm>

#include "passes/memory/storage_groups.h"

namespace plimsoll::passes {
namespace {

using ir::ValueId;

bool fits(const ir::Graph& graph, const StorageGroups& s, const ir::Op& op, size_t place,
          const ir::Alias& alias) {
  const auto output = static_cast<size_t>(alias.output);
  const auto input = static_cast<size_t>(alias.input);
  if (output >= op.outputs.size() || input >= op.inputs.size() || !op.inputs[input].valid()) return false;
  const ValueId in = op.inputs[input];
  const ValueId out = op.outputs[output];
  const StorageGroup& from = s.of(in);
  const StorageGroup& to = s.of(out);
  if (to.owner != out || from.is_state || from.assigned || to.assigned || from.last_use != place)
    return false;
  if (graph.value(in).space != graph.value(out).space) return false;
  const ir::TensorType &taken = graph.type(in), &made = graph.type(out);
  if (!s.whole[static_cast<size_t>(in.index)] || taken.bytes() != made.bytes() ||
      taken.num_elements() != made.num_elements())
    return false;
  return std::count_if(op.inputs.begin(), op.inputs.end(),
                       [&](ValueId v) { return v.valid() && s.index(v) == s.index(in); }) == 1;
}

}  // namespace

InPlaceReport in_place_along(const ir::Graph& graph, std::span<const ir::OpId> order,
                             const StorageGroups& groups) {
  InPlaceReport report;
  for (size_t place = 0; place < order.size(); ++place) {
    const ir::Op& op = graph.op(order[place]);
    std::vector<ir::Alias> taken;
    for (const ir::Alias& alias : op.def->in_place) {
      const bool clashes = std::any_of(taken.begin(), taken.end(), [&](const ir::Alias& t) {
        return t.output == alias.output || t.input == alias.input;
      });
      if (clashes || !fits(graph, groups, op, place, alias)) continue;
      taken.push_back(alias);
      report.aliases.emplace_back(order[place], alias);
      report.bytes += graph.type(op.outputs[static_cast<size_t>(alias.output)]).bytes();
    }
  }
  return report;
}

Result<InPlaceReport> in_place(ir::Graph& graph, const InPlaceOptions& options) {
  return in_place_along(graph, graph.order(), storage_groups(graph, graph.order(), options.keep));
}

}  // namespace plimsoll::passes
