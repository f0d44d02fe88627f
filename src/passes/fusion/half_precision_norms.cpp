// A value is looked at with all its readers; the first that does not round it settles that it stays.
#include "passes/fusion/half_precision_norms.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "ir/op_def.h"
#include "passes/fusion/rounding_readers.h"

namespace plimsoll::passes {
namespace {

using ir::DType;
using ir::Graph;
using ir::Op;
using ir::OpId;
using ir::ValueId;

/// What all readers round `v` to.
std::optional<DType> common(const Graph& graph, ValueId v, const std::span<const OpId> readers) {
  std::optional<DType> dtype;
  for (const OpId id : readers) {
    const auto rounded = rounds_to(graph.op(id), v);
    if (!rounded || (dtype && dtype != rounded)) return std::nullopt;
    dtype = rounded;
  }
  return dtype;
}

}  // namespace

Result<ShortNormsReport> half_precision_norms(Graph& graph, const ShortNormsOptions& options) {
  const Lists<OpId> uses = graph.uses();
  ShortNormsReport report;
  for (const OpId id : graph.order()) {
    const int32_t which = graph.op(id).def->norm.y;
    const auto* stored =
        which < 0 ? nullptr : ir::output_dtype(*graph.op(id).def, static_cast<size_t>(which));
    if (stored == nullptr) continue;
    const ValueId y = graph.op(id).outputs[static_cast<size_t>(which)];
    const std::span<const OpId> readers = uses[static_cast<size_t>(y.index)];
    const bool kept = std::find(options.keep.begin(), options.keep.end(), y) != options.keep.end();
    if (kept || graph.type(y).dtype != DType::kF32) continue;
    const std::optional<DType> dtype = common(graph, y, readers);
    if (!dtype) continue;
    graph.op(id).attrs.set(stored->attr, std::string(ir::name(*dtype)));
    graph.value(y).type.dtype = *dtype;
    for (const OpId reader : readers) hold_results(graph, reader, y);
    report.shortened.push_back(id);
  }
  return report;
}

}  // namespace plimsoll::passes
