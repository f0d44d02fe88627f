// Position ids, for models that look positions up in a table.
#include "ops/operands.h"

namespace plimsoll::ops {
namespace {

/// The position of the first token.
int64_t first_of(const ir::Attrs& attrs) { return attrs.find("first") == nullptr ? 0 : attrs.i64("first"); }
void check_first(Operands& in, const OpTypes& t) {
  constexpr int64_t kMost = int64_t{1} << 30;
  in.require(first_of(t.attrs) >= 0 && first_of(t.attrs) <= kMost, "first must be from 0 to 2^30");
}

Result<Types> infer_positions(const OpTypes& t) {
  Operands in(t, 0, {"start"});
  const auto shape = shape_of({t.attrs.i64("batch"), t.attrs.i64("tokens")});
  in.dtypes(DType::kI32).shaped(0, Shape{t.attrs.i64("batch")});
  in.require(shape.has_value(), "batch and tokens must be positive");
  check_first(in, t);
  return in.results({{DType::kI32, shape.value_or(Shape{1})}});
}

void reference_positions(RefContext& ctx) {
  const auto& shape = ctx.outputs[0]->type.shape;
  for (int64_t i = 0; i < shape.num_elements(); ++i)
    ctx.outputs[0]->data[at(i)] = static_cast<double>(i % shape.dim(1) + first_of(ctx.op.attrs)) +
                                  (ctx.inputs.empty() ? 0.0 : ctx.inputs[0]->data[at(i / shape.dim(1))]);
}

Result<Types> infer_document_positions(const OpTypes& t) {
  Operands in(t, 1, {"doc_start"});
  const ir::Shape& shape = t.inputs[0].shape;
  in.dtypes(DType::kI32).require(shape.rank() == 2, "doc_start must be [B, T]", {0});
  check_first(in, t);
  return in.results({{DType::kI32, shape}});
}

void reference_document_positions(RefContext& ctx) {
  const auto& shape = ctx.outputs[0]->type.shape;
  for (int64_t i = 0; i < shape.num_elements(); ++i)
    ctx.outputs[0]->data[at(i)] =
        static_cast<double>(i % shape.dim(1) + first_of(ctx.op.attrs)) - ctx.inputs[0]->data[at(i)];
}

const AttrSpec kFirst{"first", AttrSpec::Kind::kInt, false};

const OpDef kOps[] = {
    {.name = "positions",
     .summary = "i32[batch, tokens]: the index of each token in its sequence, from start on",
     .work = {WorkKind::kElementwise},
     .max_inputs = 1,
     .attrs = {int_attr("batch"), int_attr("tokens"), kFirst},
     .infer = infer_positions,
     .reference = reference_positions,
     .recompute = ir::RecomputeClass::kNearlyFree},
    {.name = "document_positions",
     .summary = "i32[B, T]: the index of each token in its document",
     .work = {WorkKind::kElementwise},
     .min_inputs = 1,
     .max_inputs = 1,
     .attrs = {kFirst},
     .infer = infer_document_positions,
     .reference = reference_document_positions,
     .recompute = ir::RecomputeClass::kNearlyFree},
};

}  // namespace

OpGroup positions_ops() { return kOps; }

namespace {

ir::Attrs with_first(ir::Attrs attrs, int64_t first) {
  if (first != 0) attrs.set("first", first);
  return attrs;
}

}  // namespace

ValueId positions(Builder& b, int64_t batch, int64_t tokens, ValueId start, int64_t first) {
  return b.op("positions", trimmed({start}), with_first({{"batch", batch}, {"tokens", tokens}}, first));
}

ValueId document_positions(Builder& b, ValueId doc_start, int64_t first) {
  return b.op("document_positions", {doc_start}, with_first({}, first));
}

}  // namespace plimsoll::ops
