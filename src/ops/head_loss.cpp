// The head and its loss in one op, in chunks of tokens: loss, dx and dw while the logits of one chunk are
// there.
#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "ops/cross_entropy_math.h"
#include "ops/granules.h"
#include "ops/operands.h"
#include "ops/rounding.h"

namespace plimsoll::ops {
namespace {

constexpr std::string_view kHeadLoss = "head_loss", kHeadLossDw = "head_loss_dw";

/// Whether the op computes dx, and dw.
struct GradientsOf {
  bool x, weight;
  GradientsOf(std::string_view op, const ir::Attrs& attrs)
      : x(op == kHeadLoss && attrs.flag("grad")),
        weight(op == kHeadLossDw || (attrs.flag("grad") && !attrs.flag("only_dx"))) {}
};

Result<Types> infer_head_loss(const OpTypes& t) {
  Operands in(t, 4, {"x", "weight", "targets", "grad_scale", "acc_loss", "acc_dw"});
  if (!in) return in.error();
  const Shape& x = t.inputs[0].shape;
  const Shape& weight = t.inputs[1].shape;
  const int64_t chunk = t.attrs.i64("chunk_tokens");
  in.floating({3, 4}, {2}).require(weight.rank() == 2, "weight must have two axes", {1});
  in.require(x.dim(-1) == weight.dim(t.attrs.flag("transposed") ? 0 : 1), "inner dimensions differ", {0, 1});
  in.shaped(2, without_last(x)).shaped(3, Shape{1}).shaped(4, Shape{1}).shaped(5, weight);
  const int64_t unit = loss_chunk_unit(GradientsOf(t.op, t.attrs).weight);
  in.require(chunk >= unit && chunk % unit == 0,
             fmt::format("chunk_tokens must be a positive multiple of {}, is {}", unit, chunk));
  check_precision(in, t);
  const DType dw = dw_dtype(in, t, t.inputs[1].dtype);
  in.same_dtype(5, dw);
  const GradientsOf gradients(t.op, t.attrs);
  Types results = {{DType::kF32, Shape{1}}};
  const DType dx = out_dtype(in, t, t.inputs[0].dtype, "dx");
  if (gradients.x) results.push_back({dx, x});
  if (gradients.weight) results.push_back({dw, weight});
  in.require(gradients.weight || !t.has(5), "acc_dw needs dw");
  return in.results(std::move(results));
}

/// dx and dw were made forward, with grad_scale, which by contract is the loss's cotangent.
void vjp_head_loss(VjpContext& ctx) {
  const Op op = ctx.op();
  if (!ctx.cotangent(0).valid()) return;
  const GradientsOf gradients(op.def->name, op.attrs);
  PLIMSOLL_CHECK((gradients.x || !ctx.wants(0)) && (gradients.weight || !ctx.wants(1)),
                 "head_loss was built without gradients");
  if (ctx.wants(0)) ctx.add(0, op.outputs[1]);
  if (ctx.wants(1)) ctx.add(1, op.outputs.back());
  if (op.inputs.size() > 4 && op.inputs[4].valid() && ctx.wants(4)) ctx.add(4, ctx.cotangent(0));
}

Cost cost_head_loss(const OpTypes& t) {
  const auto rows = static_cast<double>(t.inputs[0].shape.num_rows());
  const auto weight = static_cast<double>(t.inputs[1].num_elements());
  const int64_t classes = t.inputs[1].shape.dim(t.attrs.flag("transposed") ? 1 : 0);
  const GradientsOf gradients(t.op, t.attrs);
  const double products = 1 + (gradients.x ? 1 : 0) + (gradients.weight ? 1 : 0);
  Cost cost = cost_of(t, 2 * products * rows * weight + 20 * rows * static_cast<double>(classes));
  // Each further chunk reads the weight again, and goes on with dw.
  const int64_t chunks = ceil_div(t.inputs[0].shape.num_rows(), t.attrs.i64("chunk_tokens"));
  const double passes = (gradients.x ? 2 : 1) + (gradients.weight ? 2 : 0);
  cost.bytes += static_cast<double>(chunks - 1) * passes * static_cast<double>(t.inputs[1].bytes().count);
  return cost;
}

/// Tokens of a chunk, classes, hidden size.
WorkSize size_head_loss(const OpTypes& t, double) {
  const double hidden = static_cast<double>(t.inputs[0].shape.dim(-1));
  const double rows = static_cast<double>(t.inputs[0].shape.num_rows());
  return {kHeadLoss,
          {std::clamp(static_cast<double>(t.attrs.i64("chunk_tokens")), 1.0, rows),
           static_cast<double>(t.inputs[1].num_elements()) / hidden, hidden}};
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

/// `dx` and `dw` are null where they are not computed.
void add_row_gradients(const HeadLoss& h, size_t row, const std::vector<double>& slope, RefTensor* dx,
                       RefTensor* dw) {
  for (size_t v = 0; v < h.classes; ++v)
    for (size_t i = 0; i < h.inner; ++i) {
      if (dx != nullptr) dx->data[row * h.inner + i] += slope[v] * h.weight[h.weight_at(v, i)];
      if (dw != nullptr) dw->data[h.weight_at(v, i)] += slope[v] * h.x[row * h.inner + i];
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
  const GradientsOf gradients(ctx.op.def->name, ctx.op.attrs);
  RefTensor* const dx = gradients.x ? ctx.outputs[1] : nullptr;
  RefTensor* const dw = gradients.weight ? ctx.outputs.back() : nullptr;
  const auto precision = ctx.op.attrs.find("precision") == nullptr
                             ? std::nullopt
                             : parse_precision(ctx.op.attrs.str("precision"));
  double& loss = ctx.outputs[0]->data[0];
  if (optional(4) != nullptr) loss = optional(4)->data[0];
  if (dw != nullptr && optional(5) != nullptr) dw->data = optional(5)->data;
  std::vector<double> logits(h.classes);
  std::vector<double> slope(h.classes);
  for (size_t row = 0; row < h.targets.size(); ++row) {
    for (size_t v = 0; v < h.classes; ++v) {
      logits[v] = 0;
      for (size_t i = 0; i < h.inner; ++i) logits[v] += h.x[row * h.inner + i] * h.weight[h.weight_at(v, i)];
    }
    const double lse = log_sum_exp(logits.data(), h.classes);
    if (counts(h.targets[row])) loss += lse - logits[static_cast<size_t>(h.targets[row])];
    if (dx == nullptr && dw == nullptr) continue;
    cross_entropy_slope(logits.data(), h.classes, lse, h.targets[row], ctx.inputs[3]->data[0], slope.data());
    if (precision)
      for (double& s : slope) s = rounded(s, *precision);
    add_row_gradients(h, row, slope, dx, dw);
  }
}

}  // namespace

OpGroup head_loss_ops() {
  static const std::vector<OpDef> kOps = [] {
    const AttrSpec dx{"dx", AttrSpec::Kind::kString, false};
    OpDef all = {.name = kHeadLoss,
                 .summary = "linear and cross_entropy in chunks of tokens",
                 .work = {.kind = WorkKind::kLossHead, .keys = {kHeadLoss}, .size = size_head_loss},
                 .min_inputs = 4,
                 .max_inputs = 6,
                 .attrs = {bool_attr("grad"), bool_attr("only_dx"), bool_attr("transposed"),
                           int_attr("chunk_tokens"), precision_attr(), dx, dw_attr()},
                 .infer = infer_head_loss,
                 .vjp = vjp_head_loss,
                 .cost = cost_head_loss,
                 .reference = reference_head_loss,
                 .autocast = ir::AutocastClass::kLowPrecision,
                 .recompute = ir::RecomputeClass::kCompute,
                 .accumulators = {{0, 4}, {2, 5}},
                 .output_dtypes = {{1, "dx", 0}, {2, "dw", 1}},
                 .rounded_operands = 2,
                 .is_loss = true};
    OpDef dw = all;
    dw.name = kHeadLossDw;
    dw.summary = "head_loss where nothing before the head learns";
    dw.attrs = {bool_attr("transposed"), int_attr("chunk_tokens"), precision_attr(), dw_attr()};
    dw.accumulators = {{0, 4}, {1, 5}};
    dw.output_dtypes = {{1, "dw", 1}};
    return std::vector{std::move(all), std::move(dw)};
  }();
  return kOps;
}

}  // namespace plimsoll::ops
