// A value is looked at with all its readers; the first that does not round it settles that it stays.
#include "passes/short_norms.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/op_def.h"

namespace plimsoll::passes {
namespace {

using ir::DType;
using ir::Graph;
using ir::Op;
using ir::OpId;
using ir::ValueId;

/// Norms, and which of their results attribute `out` is about.
struct Norm {
  std::string_view name;
  size_t y;
};
constexpr std::array<Norm, 4> kNorms = {
    {{"rms_norm", 0}, {"add_rms_norm", 1}, {"layer_norm", 0}, {"add_layer_norm", 1}}};

/// Ops that round their first two operands by attribute `precision`; and which result has the dtype of
/// operand 0 unless attribute `dtype` says otherwise (empty: none has).
struct Reader {
  std::string_view name;
  std::string_view dtype;
  size_t result;
};
constexpr size_t kRounded = 2;
constexpr std::array<Reader, 3> kReaders = {
    {{"linear", "out", 0}, {"linear_dw", "", 0}, {"head_loss", "dx", 1}}};

template <class Rows>
const typename Rows::value_type* find(const Rows& rows, std::string_view name) {
  const auto row = std::find_if(rows.begin(), rows.end(), [&](const auto& r) { return r.name == name; });
  return row == rows.end() ? nullptr : &*row;
}

/// What `op` rounds its operand `v` to, if that is a dtype values are stored in.
std::optional<DType> rounds_to(const Op& op, ValueId v) {
  const Reader* reader = find(kReaders, op.def->name);
  if (reader == nullptr || op.attrs.find("precision") == nullptr) return std::nullopt;
  for (size_t i = kRounded; i < op.inputs.size(); ++i)
    if (op.inputs[i] == v) return std::nullopt;
  const auto dtype = ir::parse_dtype(op.attrs.str("precision"));
  return dtype && ir::is_short(*dtype) ? dtype : std::nullopt;
}

/// What all readers round `v` to.
std::optional<DType> common(const Graph& graph, ValueId v, const std::vector<OpId>& readers) {
  std::optional<DType> dtype;
  for (const OpId id : readers) {
    const auto rounded = rounds_to(graph.op(id), v);
    if (!rounded || (dtype && dtype != rounded)) return std::nullopt;
    dtype = rounded;
  }
  return dtype;
}

/// The reader's result stays of the dtype that it has.
void hold_result(Graph& graph, OpId id) {
  Op& op = graph.op(id);
  const Reader& reader = *find(kReaders, op.def->name);
  if (!reader.dtype.empty() && reader.result < op.outputs.size())
    op.attrs.set(reader.dtype, std::string(ir::name(graph.type(op.outputs[reader.result]).dtype)));
}

}  // namespace

Result<ShortNormsReport> short_norms(Graph& graph, const ShortNormsOptions& options) {
  const std::vector<std::vector<OpId>> uses = graph.uses();
  ShortNormsReport report;
  for (const OpId id : graph.order()) {
    const Norm* norm = find(kNorms, graph.op(id).def->name);
    if (norm == nullptr) continue;
    const ValueId y = graph.op(id).outputs[norm->y];
    const std::vector<OpId>& readers = uses[static_cast<size_t>(y.index)];
    const bool kept = std::find(options.keep.begin(), options.keep.end(), y) != options.keep.end();
    if (kept || graph.type(y).dtype != DType::kF32) continue;
    const std::optional<DType> dtype = common(graph, y, readers);
    if (!dtype) continue;
    graph.op(id).attrs.set("out", std::string(ir::name(*dtype)));
    graph.value(y).type.dtype = *dtype;
    for (const OpId reader : readers) hold_result(graph, reader);
    report.shortened.push_back(id);
  }
  return report;
}

}  // namespace plimsoll::passes
