// The head and its loss in one op, in chunks of tokens: loss, dx and dw while the logits of one chunk are
// there.
#include <fmt/format.h>

#include "base/check.h"
#include "ops/cross_entropy_math.h"
#include "ops/operands.h"
#include "ops/rounding.h"

namespace plimsoll::ops {
namespace {

Result<Types> infer_head_loss(const OpTypes& t) {
  Operands in(t, 4, {"x", "weight", "targets", "grad_scale", "acc_loss", "acc_dw"});
  if (!in) return in.error();
  const Shape& x = t.inputs[0].shape;
  const Shape& weight = t.inputs[1].shape;
  const int64_t chunk = t.attrs.i64("chunk_tokens");
  in.floating({3, 4}, {2}).require(weight.rank() == 2, "weight must have two axes", {1});
  in.require(x.dim(-1) == weight.dim(t.attrs.flag("transposed") ? 0 : 1), "inner dimensions differ", {0, 1});
  in.shaped(2, without_last(x)).shaped(3, Shape{1}).shaped(4, Shape{1}).shaped(5, weight);
  in.require(chunk >= kGranule && chunk % kGranule == 0,
             fmt::format("chunk_tokens must be a positive multiple of {}, is {}", kGranule, chunk));
  check_precision(in, t);
  const DType dw = dw_dtype(in, t, t.inputs[1].dtype);
  in.same_dtype(5, dw);
  const TensorType loss{DType::kF32, Shape{1}};
  const TensorType dx{out_dtype(in, t, t.inputs[0].dtype, "dx"), x};
  if (t.attrs.flag("grad")) return in.results({loss, dx, {dw, weight}});
  in.require(!t.has(5), "acc_dw needs grad");
  return in.results({loss});
}

/// dx and dw were made forward, with grad_scale, which by contract is the loss's cotangent.
void vjp_head_loss(VjpContext& ctx) {
  const Op op = ctx.op();
  if (!ctx.cotangent(0).valid()) return;
  PLIMSOLL_CHECK(op.attrs.flag("grad"), "head_loss was built without gradients");
  if (ctx.wants(0)) ctx.add(0, op.outputs[1]);
  if (ctx.wants(1)) ctx.add(1, op.outputs[2]);
  if (op.inputs.size() > 4 && op.inputs[4].valid() && ctx.wants(4)) ctx.add(4, ctx.cotangent(0));
}

Cost cost_head_loss(const OpTypes& t) {
  const auto rows = static_cast<double>(t.inputs[0].shape.num_rows());
  const auto weight = static_cast<double>(t.inputs[1].num_elements());
  const int64_t classes = t.inputs[1].shape.dim(t.attrs.flag("transposed") ? 1 : 0);
  const double products = t.attrs.flag("grad") ? 3 : 1;
  return cost_of(t, 2 * products * rows * weight + 20 * rows * static_cast<double>(classes));
}

/// Operands and results of the reference, by name.
struct HeadLoss {
  std::vector<double> x, weight;
  const std::vector<double>& targets;
  size_t inner, classes;
  bool transposed;
  [[nodiscard]] size_t weight_at(size_t v, size_t i) const {
    return transposed ? i * classes + v : v * inner + i;
  }
};

void add_row_gradients(const HeadLoss& h, size_t row, const std::vector<double>& slope, RefTensor& dx,
                       RefTensor& dw) {
  for (size_t v = 0; v < h.classes; ++v)
    for (size_t i = 0; i < h.inner; ++i) {
      dx.data[row * h.inner + i] += slope[v] * h.weight[h.weight_at(v, i)];
      dw.data[h.weight_at(v, i)] += slope[v] * h.x[row * h.inner + i];
    }
}

void reference_head_loss(RefContext& ctx) {
  const bool transposed = ctx.op.attrs.flag("transposed");
  const HeadLoss h{operand_of(ctx, *ctx.inputs[0]),
                   operand_of(ctx, *ctx.inputs[1]),
                   ctx.inputs[2]->data,
                   at(ctx.inputs[0]->type.shape.dim(-1)),
                   at(ctx.inputs[1]->type.shape.dim(transposed ? 1 : 0)),
                   transposed};
  const auto optional = [&](size_t i) { return i < ctx.inputs.size() ? ctx.inputs[i] : nullptr; };
  const bool grad = ctx.op.attrs.flag("grad");
  const auto precision = ctx.op.attrs.find("precision") == nullptr
                             ? std::nullopt
                             : parse_precision(ctx.op.attrs.str("precision"));
  double& loss = ctx.outputs[0]->data[0];
  if (optional(4) != nullptr) loss = optional(4)->data[0];
  if (grad && optional(5) != nullptr) ctx.outputs[2]->data = optional(5)->data;
  std::vector<double> logits(h.classes);
  std::vector<double> slope(h.classes);
  for (size_t row = 0; row < h.targets.size(); ++row) {
    for (size_t v = 0; v < h.classes; ++v) {
      logits[v] = 0;
      for (size_t i = 0; i < h.inner; ++i) logits[v] += h.x[row * h.inner + i] * h.weight[h.weight_at(v, i)];
    }
    const double lse = log_sum_exp(logits.data(), h.classes);
    if (counts(h.targets[row])) loss += lse - logits[static_cast<size_t>(h.targets[row])];
    if (!grad) continue;
    cross_entropy_slope(logits.data(), h.classes, lse, h.targets[row], ctx.inputs[3]->data[0], slope.data());
    if (precision)
      for (double& s : slope) s = rounded(s, *precision);
    add_row_gradients(h, row, slope, *ctx.outputs[1], *ctx.outputs[2]);
  }
}

}  // namespace

OpGroup head_loss_ops() {
  static const std::vector<OpDef> kOps = {
      {.name = "head_loss",
       .summary = "linear and cross_entropy in chunks of tokens",
       .min_inputs = 4,
       .max_inputs = 6,
       .attrs = {bool_attr("grad"),
                 bool_attr("transposed"),
                 int_attr("chunk_tokens"),
                 precision_attr(),
                 {"dx", AttrSpec::Kind::kString, false},
                 {"dw", AttrSpec::Kind::kString, false}},
       .infer = infer_head_loss,
       .vjp = vjp_head_loss,
       .cost = cost_head_loss,
       .reference = reference_head_loss,
       .autocast = ir::AutocastClass::kLowPrecision,
       .recompute = ir::RecomputeClass::kCompute,
       .accumulators = {{0, 4}, {2, 5}},
       .output_dtypes = {{1, "dx", 0}, {2, "dw", 1}},
       .rounded_operands = 2,
       .is_loss = true},
  };
  return kOps;
}

}  // namespace plimsoll::ops
