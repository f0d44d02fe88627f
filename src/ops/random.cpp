// Random ops. Their draws are defined in philox.h; here they are spelled out element by element.
#include <string>

#include "ops/operands.h"
#include "ops/random_operand.h"

namespace plimsoll::ops {
namespace {

Result<Types> infer_dropout(const OpTypes& t) {
  Operands in(t, 2, {"x", "random"});
  if (!in) return in.error();
  const double p = t.attrs.f64("p");
  in.floating({}, {1}).shaped(1, Shape{4}).require(p >= 0 && p < 1, "p must be in [0, 1)");
  return in.results({t.inputs[0]});
}

void vjp_dropout(VjpContext& ctx) {
  const Op op = ctx.op();
  const ValueId dy = ctx.cotangent(0);
  if (dy.valid() && ctx.wants(0)) ctx.add(0, ctx.builder().op("dropout", {dy, op.inputs[1]}, op.attrs));
}

void reference_dropout(RefContext& ctx) {
  const double p = ctx.op.attrs.f64("p");
  const int64_t sequences = ctx.inputs[0]->type.shape.dim(0);
  const int64_t elements = ctx.inputs[0]->type.num_elements() / sequences;
  const RandomStream base = stream_of(*ctx.inputs[1], ctx.op.attrs);
  for (int64_t s = 0; s < sequences; ++s) {
    RandomStream stream = base;
    stream.sequence += static_cast<uint32_t>(s);
    for (int64_t e = 0; e < elements; ++e) {
      const double u = uniform(random_words(stream, static_cast<uint64_t>(e / 4))[at(e % 4)]);
      const double x = ctx.inputs[0]->data[at(s * elements + e)];
      ctx.outputs[0]->data[at(s * elements + e)] = u >= p ? x * (1.0 / (1.0 - p)) : 0.0;
    }
  }
}

Result<Types> infer_random_normal(const OpTypes& t) {
  Operands in(t, 1, {"random"});
  if (!in) return in.error();
  const auto shape = shape_of(t.attrs.ints("shape"));
  in.dtypes(DType::kI32).shaped(0, Shape{4});
  in.require(shape.has_value(), "shape must be of 1 to 6 positive extents");
  return in.results({{out_dtype(in, t, DType::kF32), shape.value_or(Shape{1})}});
}

void reference_random_normal(RefContext& ctx) {
  RandomStream stream = stream_of(*ctx.inputs[0], ctx.op.attrs);
  stream.step = 0;
  stream.sequence = 0;
  for (int64_t e = 0; e < ctx.outputs[0]->type.num_elements(); ++e) {
    const PhiloxCounter words = random_words(stream, static_cast<uint64_t>(e / 4));
    const auto pair = normal_pair(words[at(e % 4 / 2 * 2)], words[at(e % 4 / 2 * 2 + 1)]);
    ctx.outputs[0]->data[at(e)] = ctx.op.attrs.f64("mean") + ctx.op.attrs.f64("std") * pair[at(e % 2)];
  }
}

}  // namespace

OpGroup random_ops() {
  using enum ir::RecomputeClass;
  static const std::vector<OpDef> kOps = {
      {.name = "dropout",
       .summary = "zero with probability p, else x / (1 - p)",
       .work = {WorkKind::kElementwise},
       .min_inputs = 2,
       .max_inputs = 2,
       .attrs = {float_attr("p"), int_attr("key")},
       .infer = infer_dropout,
       .vjp = vjp_dropout,
       .cost = elementwise_cost<20>,
       .reference = reference_dropout,
       .recompute = kNearlyFree,
       .in_place = {{0, 0}},
       .random = 1},
      {.name = "random_normal",
       .summary = "independent normals",
       .work = {WorkKind::kElementwise},
       .min_inputs = 1,
       .max_inputs = 1,
       .attrs = {ints_attr("shape"), float_attr("mean"), float_attr("std"), int_attr("key"), out_attr()},
       .infer = infer_random_normal,
       .cost = elementwise_cost<60>,
       .reference = reference_random_normal,
       .recompute = kNearlyFree,
       .output_dtypes = {{0, "out"}},
       .random = 0},
  };
  return kOps;
}

ValueId dropout(Builder& b, ValueId x, ValueId random, double p, int64_t key) {
  return b.op("dropout", {x, random}, {{"p", p}, {"key", key}});
}

ValueId random_normal(Builder& b, ValueId random, std::vector<int64_t> shape, double mean, double std,
                      int64_t key, DType dtype) {
  ir::Attrs attrs{{"shape", std::move(shape)}, {"mean", mean}, {"std", std}, {"key", key}};
  if (dtype != DType::kF32) attrs = with_out(std::move(attrs), dtype);
  return b.op("random_normal", {random}, std::move(attrs));
}

int64_t random_key(std::string_view layer, std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a: offset basis and prime of the 64-bit variant
  for (const std::string_view part : {layer, std::string_view("/"), name})
    for (const char c : part) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return static_cast<int64_t>(hash >> 1);
}

}  // namespace plimsoll::ops
