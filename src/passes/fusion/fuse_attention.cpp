// The three operands of an attention are followed back to one split of one value.
#include "passes/fusion/fuse_attention.h"

#include <array>
#include <optional>

#include "ir/op_def.h"

namespace plimsoll::passes {
namespace {

using ir::OpId;
using ir::ValueId;

/// One operand's way from the packed value: split -> reshape [-> rms_norm] [-> rope].
struct Part {
  OpId split, reshape, norm, rope;  ///< norm and rope may be invalid
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
  if (rw.producer(v).def->name == "rms_norm") {
    part.norm = rw.producer_id(v);
    if (v != rw.op(part.norm).outputs[0] || !rw.unused(rw.op(part.norm).outputs[1])) return std::nullopt;
    v = rw.op(part.norm).inputs[0];
    if (!rw.only_use(v, part.norm)) return std::nullopt;
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

/// Norms on both of q and k, alike and with a rotation behind them, or on none.
bool norms_fit(const Rewriter& rw, const Parts& parts, size_t place) {
  if (parts[2].norm.valid() || parts[0].norm.valid() != parts[1].norm.valid()) return false;
  if (!parts[0].norm.valid()) return true;
  return parts[0].rope.valid() && rw.op(parts[0].norm).attrs == rw.op(parts[1].norm).attrs &&
         rw.may_sink(parts[0].norm, place) && rw.may_sink(parts[1].norm, place);
}

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
  if (!norms_fit(rw, parts, rw.position(id))) return std::nullopt;
  if (parts[0].rope.valid() && !rw.may_sink(parts[0].rope, rw.position(id))) return std::nullopt;
  return parts;
}

/// Users that only flatten [B, T, H, D] take the packed result itself; others a view of it.
void replace_result(Rewriter& rw, OpId anchor, ValueId out, ValueId packed) {
  if (!packed.valid()) return;
  for (const OpId user : rw.uses_now(out)) {
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

/// The packed value with its queries and keys normed and turned, as far as they were.
ValueId prepare(Rewriter& rw, OpId anchor, const Parts& parts, const ir::Attrs& heads) {
  const ValueId qkv = rw.op(parts[0].split).inputs[0];
  ir::Attrs attrs;
  attrs.set("head_dim", heads.i64("head_dim"));
  if (parts[0].norm.valid()) {
    const ir::Op q = rw.op(parts[0].norm), k = rw.op(parts[1].norm);
    attrs.set("heads", heads.i64("heads"));
    attrs.set("kv_heads", heads.i64("kv_heads"));
    attrs.set("eps", q.attrs.f64("eps"));
    return rw.before(anchor, "qk_norm_rope", {qkv, q.inputs[1], k.inputs[1], parts[0].table}, attrs)[0];
  }
  if (!parts[0].rope.valid()) return qkv;
  attrs.set("heads", heads.i64("heads") + heads.i64("kv_heads"));
  attrs.set("inverse", false);
  return rw.before(anchor, "rope_packed", {qkv, parts[0].table}, attrs)[0];
}

bool fuse(Rewriter& rw, OpId id) {
  if (rw.op(id).def->name != "attention") return false;
  const ir::Op attention = rw.op(id);
  const auto parts = match(rw, id);
  if (!parts) return false;
  ir::Attrs attrs = attention.attrs;
  attrs.set("heads", rw.type(attention.inputs[0]).shape.dim(2));
  attrs.set("kv_heads", rw.type(attention.inputs[1]).shape.dim(2));
  attrs.set("head_dim", rw.type(attention.inputs[0]).shape.dim(3));
  std::vector<ValueId> operands = {prepare(rw, id, *parts, attrs)};
  operands.insert(operands.end(), attention.inputs.begin() + 3, attention.inputs.end());
  const auto fused = rw.before(id, "attention_packed", operands, attrs);
  rw.remove(id);
  for (const Part& part : *parts) {
    if (part.rope.valid()) rw.remove(part.rope);
    if (part.norm.valid()) rw.remove(part.norm);
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
