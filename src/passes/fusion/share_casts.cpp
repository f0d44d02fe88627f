// A cast stands in front of the first of its readers.
#include "passes/fusion/share_casts.h"

#include <algorithm>
#include <map>
#include <vector>

#include "ops/operands.h"

namespace plimsoll::passes {
namespace {

using ir::DType;
using ir::OpId;
using ir::ValueId;

class Casts {
 public:
  Casts(ir::Graph& graph, const RoundingOptions& options)
      : graph_(graph),
        rw_(graph, options.keep),
        forward_end_(options.last_forward_op.valid() ? rw_.position(options.last_forward_op)
                                                     : rw_.order().size()) {}

  Result<ShareCastsReport> run() {
    for (const OpId id : rw_.order()) {
      const ir::Op& op = graph_.op(id);
      if (op.def->state != ir::StateAccess::kNone || op.def->is_view) continue;
      const std::vector<ValueId> results = op.outputs;
      for (const ValueId v : results)
        if (graph_.type(v).dtype == DType::kF32)
          for (const bool backward : {false, true})
            for (const DType dtype : {DType::kBf16, DType::kF16}) share(v, backward, dtype);
    }
    PLIMSOLL_ASSIGN(report_.replaced, rw_.finish());
    return std::move(report_);
  }

 private:
  void share(ValueId v, bool backward, DType dtype) {
    std::map<int32_t, std::vector<OpId>> readers;  // by block
    for (const OpId reader : rw_.uses(v)) {
      const ir::Op& op = graph_.op(reader);
      const bool is_there = (rw_.position(reader) > forward_end_) == backward;
      if (is_there && rounds_to(op, v) == dtype) readers[op.block].push_back(reader);
    }
    for (const auto& [block, of_block] : readers)
      if (of_block.size() > 1) share(v, dtype, of_block);
  }

  void share(ValueId v, DType dtype, std::span<const OpId> readers) {
    const OpId first = *std::ranges::min_element(readers, {}, [&](OpId r) { return rw_.position(r); });
    const ValueId cast = rw_.before(first, "cast", {v}, ops::with_out({}, dtype))[0];
    for (const OpId reader : readers) read_rounded(graph_, reader, v, cast);
    ++report_.shared;
  }

  ir::Graph& graph_;
  Rewriter rw_;
  size_t forward_end_;
  ShareCastsReport report_;
};

}  // namespace

Result<ShareCastsReport> share_casts(ir::Graph& graph, const RoundingOptions& options) {
  return Casts(graph, options).run();
}

}  // namespace plimsoll::passes
