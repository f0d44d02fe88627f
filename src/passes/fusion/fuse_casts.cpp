// One walk along the order, which looks at each op that can round its result.
#include "passes/fusion/fuse_casts.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/op_def.h"
#include "ir/op_query.h"
#include "ops/rounded_copy.h"

namespace plimsoll::passes {
namespace {

using ir::DType;
using ir::Op;
using ir::OpId;
using ir::ValueId;

class FuseCasts {
 public:
  FuseCasts(ir::Graph& graph, const RoundingOptions& options)
      : graph_(graph),
        rw_(graph, options.keep),
        forward_end_(options.last_forward_op.valid() ? rw_.position(options.last_forward_op)
                                                     : rw_.order().size()) {}

  Result<FuseCastsReport> run() {
    for (const OpId id : rw_.order()) {
      const Op& op = rw_.op(id);
      if (!ir::takes_attr(op, ops::kRounded) || op.attrs.find(ops::kRounded) != nullptr) continue;
      if (rw_.type(op.outputs[0]).dtype == DType::kF32) visit(id, op.outputs[0]);
    }
    PLIMSOLL_ASSIGN(report_.replaced, rw_.finish());
    return std::move(report_);
  }

 private:
  struct Reader {
    OpId id;
    DType dtype;  ///< to which it rounds
  };

  /// In the program's order.
  [[nodiscard]] std::vector<Reader> rounding_readers(ValueId v) const {
    std::vector<Reader> readers;
    for (const OpId id : rw_.uses(v)) {
      const Op& op = rw_.op(id);
      const auto dtype = op.def->is_cast ? std::optional(rw_.type(op.outputs[0]).dtype) : rounds_to(op, v);
      if (dtype && ir::is_half_precision(*dtype)) readers.push_back({id, *dtype});
    }
    std::ranges::stable_sort(readers, {}, [&](const Reader& r) { return rw_.position(r.id); });
    return readers;
  }

  void visit(OpId maker, ValueId v) {
    std::vector<Reader> readers = rounding_readers(v);
    if (readers.empty()) return;
    const Reader first = readers.front();
    const auto differs = [&](const Reader& r) { return r.dtype != first.dtype; };
    const bool are_all = readers.size() == rw_.uses(v).size() && !rw_.wanted(v);
    const auto* stored = ir::output_dtype(*rw_.op(maker).def, 0);
    if (are_all && stored != nullptr && std::ranges::none_of(readers, differs))
      return shorten(maker, v, stored->attr, readers);
    if (is_backward(first.id) != is_backward(maker)) return;
    const int32_t block = rw_.op(first.id).block;
    std::erase_if(readers, [&](const Reader& r) {
      return differs(r) || rw_.op(r.id).block != block || is_backward(r.id) != is_backward(maker);
    });
    if (readers.size() > 1 || rounds_apart(rw_.op(first.id))) copy(maker, first.dtype, readers);
  }

  /// Others, as quantisers, round as they read.
  [[nodiscard]] static bool rounds_apart(const Op& reader) {
    return reader.def->is_cast || reader.def->work.kind == ir::WorkKind::kProduct;
  }

  void shorten(OpId maker, ValueId v, std::string_view attr, const std::vector<Reader>& readers) {
    const DType dtype = readers.front().dtype;
    graph_.op(maker).attrs.set(attr, std::string(ir::name(dtype)));
    graph_.value(v).type.dtype = dtype;
    for (const Reader& reader : readers) read(reader.id, v, v);
    ++report_.shortened;
  }

  void copy(OpId maker, DType dtype, const std::vector<Reader>& readers) {
    const Op op = rw_.op(maker);
    ir::Attrs attrs = op.attrs;
    attrs.set(ops::kRounded, std::string(ir::name(dtype)));
    const std::vector<ValueId> made = rw_.before(maker, op.def->name, op.inputs, std::move(attrs));
    graph_.op(graph_.value(made[0]).producer).recomputed = op.recomputed;
    for (size_t i = 0; i < op.outputs.size(); ++i) rw_.replace(op.outputs[i], made[i]);
    rw_.remove(maker);
    for (const Reader& reader : readers) read(reader.id, made[0], made.back());
    ++report_.copied;
  }

  /// Has a reader of `v` read `rounded`, which may be the same.
  void read(OpId reader, ValueId v, ValueId rounded) {
    if (rw_.op(reader).def->is_cast) {
      rw_.replace(rw_.op(reader).outputs[0], rounded);
      rw_.remove(reader);
      return;
    }
    read_rounded(graph_, reader, v, rounded);
  }

  [[nodiscard]] bool is_backward(OpId id) const { return rw_.position(id) > forward_end_; }

  ir::Graph& graph_;
  Rewriter rw_;
  size_t forward_end_;
  FuseCastsReport report_;
};

}  // namespace

Result<FuseCastsReport> fuse_casts(ir::Graph& graph, const RoundingOptions& options) {
  return FuseCasts(graph, options).run();
}

}  // namespace plimsoll::passes
