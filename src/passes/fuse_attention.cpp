// The three operands of an attention are followed back to one split of one value.
#include "passes/fuse_attention.h"

#include <array>
#include <optional>

#include "ir/op_def.h"

namespace plimsoll::passes {
namespace {

using ir::OpId;
using ir::ValueId;

/// One operand's way from the packed value: split -> reshape [-> rope].
struct Part {
  OpId split, reshape, rope;  ///< rope may be invalid
  ValueId table = {};
  size_t index = 0;  ///< which part of the split
};

std::optional<Part> follow_back(const Rewriter& rw, ValueId v, OpId user) {
  Part part;
  if (!rw.only_use(v, user)) return std::nullopt;
  if (rw.producer(v).def->name == "rope" && !rw.producer(v).attrs.flag("inverse")) {
    part.rope = rw.producer_id(v);
    part.table = rw.op(part.rope).inputs[1];
    v = rw.op(part.rope).inputs[0];
    if (!rw.only_use(v, part.rope)) return std::nullopt;
  }
  if (rw.producer(v).def->name != "reshape") return std::nullopt;
  part.reshape = rw.producer_id(v);
  v = rw.op(part.reshape).inputs[0];
  if (rw.producer(v).def->name != "split" || !rw.only_use(v, part.reshape)) return std::nullopt;
  part.split = rw.producer_id(v);
  part.index = static_cast<size_t>(rw.graph().value(v).result_index);
  return part;
}

using Parts = std::array<Part, 3>;

/// q, k and v in this order from one split in three, q and k rotated alike or none.
std::optional<Parts> match(const Rewriter& rw, OpId id) {
  const ir::Op& attention = rw.op(id);
  Parts parts;
  for (size_t i = 0; i < 3; ++i) {
    const auto part = follow_back(rw, attention.inputs[i], id);
    if (!part || part->index != i || (i > 0 && part->split != parts[0].split)) return std::nullopt;
    parts[i] = *part;
  }
  const ir::Op& split = rw.op(parts[0].split);
  const bool one_token_axis = rw.type(split.inputs[0]).shape.rank() == 3;
  if (split.outputs.size() != 3 || !one_token_axis || !rw.may_sink(parts[0].split, rw.position(id)))
    return std::nullopt;
  if (parts[0].table != parts[1].table || parts[2].rope.valid()) return std::nullopt;
  if (parts[0].rope.valid() && !rw.may_sink(parts[0].rope, rw.position(id))) return std::nullopt;
  return parts;
}

/// Users that only flatten [B, T, H, D] take the packed result itself; others a view of it.
void replace_result(Rewriter& rw, OpId anchor, ValueId out, ValueId packed) {
  if (!packed.valid()) return;
  const std::vector<OpId> users = rw.uses(out);
  for (const OpId user : users) {
    const ir::Op op = rw.op(user);
    if (op.def->name != "reshape" || rw.type(op.outputs[0]) != rw.type(packed)) continue;
    rw.remove(user);
    rw.replace(op.outputs[0], packed);
  }
  if (rw.unused(out)) return;
  const auto dims = rw.type(out).shape.dims();
  rw.replace(out,
             rw.before(anchor, "reshape", {packed}, {{"shape", std::vector(dims.begin(), dims.end())}})[0]);
}

bool fuse(Rewriter& rw, OpId id) {
  const ir::Op attention = rw.op(id);
  if (attention.def->name != "attention") return false;
  const auto parts = match(rw, id);
  if (!parts) return false;
  const int64_t heads = rw.type(attention.inputs[0]).shape.dim(2);
  const int64_t kv_heads = rw.type(attention.inputs[1]).shape.dim(2);
  const int64_t head_dim = rw.type(attention.inputs[0]).shape.dim(3);
  ValueId qkv = rw.op((*parts)[0].split).inputs[0];
  if ((*parts)[0].rope.valid())
    qkv = rw.before(id, "rope_packed", {qkv, (*parts)[0].table},
                    {{"heads", heads + kv_heads}, {"head_dim", head_dim}, {"inverse", false}})[0];
  ir::Attrs attrs = attention.attrs;
  attrs.set("heads", heads);
  attrs.set("kv_heads", kv_heads);
  attrs.set("head_dim", head_dim);
  std::vector<ValueId> operands = {qkv};
  if (attention.inputs.size() > 3 && attention.inputs[3].valid()) operands.push_back(attention.inputs[3]);
  const auto fused = rw.before(id, "attention_packed", operands, attrs);
  rw.remove(id);
  for (const Part& part : *parts) {
    if (part.rope.valid()) rw.remove(part.rope);
    rw.remove(part.reshape);
  }
  rw.remove((*parts)[0].split);
  replace_result(rw, id, attention.outputs[0], fused[0]);
  rw.replace(attention.outputs[1], fused[1]);
  return true;
}

}  // namespace

Result<FuseAttentionReport> fuse_attention(ir::Graph& graph, const FuseAttentionOptions& options) {
  Rewriter rw(graph, options.keep);
  FuseAttentionReport report;
  for (const OpId id : rw.order()) report.fused += fuse(rw, id) ? 1 : 0;
  PLIMSOLL_ASSIGN(report.replaced, rw.finish());
  return report;
}

}  // namespace plimsoll::passes
