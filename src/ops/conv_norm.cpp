// Convolutions fused with batch normalisation: types, costs and references are those of the two ops, one
// after the other.
#include "ops/conv_norm.h"

#include <algorithm>
#include <string>

#include "base/check.h"
#include "ops/conv2d.h"
#include "ops/operands.h"

namespace plimsoll::ops {

OpGroup conv2d_ops();
OpGroup batch_norm_ops();

namespace {

/// Operands of the convolution; the norm's stand behind them.
constexpr size_t kConvOperands = 2;

/// Of its file's, as the list of all ops is made from this one.
const OpDef& find(OpGroup group, std::string_view name) {
  const auto found = std::ranges::find(group, name, &OpDef::name);
  PLIMSOLL_CHECK(found != group.end(), std::string(name));
  return *found;
}
const OpDef& conv2d_def() { return find(conv2d_ops(), "conv2d"); }
const OpDef& statistics_def() { return find(batch_norm_ops(), "batch_statistics"); }
const OpDef& norm_def() { return find(batch_norm_ops(), "batch_norm"); }

/// The convolution's result, in the fused op's name.
Result<TensorType> infer_y(const OpTypes& t) {
  OpTypes conv{t.op, t.inputs, {}, t.attrs};
  conv.inputs.resize(kConvOperands);
  PLIMSOLL_ASSIGN(const Types y, conv2d_def().infer(conv));
  return y[0];
}

Result<Types> infer_conv2d_statistics(const OpTypes& t) {
  PLIMSOLL_ASSIGN(const TensorType y, infer_y(t));
  const OpTypes statistics{t.op, {y}, {}, t.attrs};
  PLIMSOLL_ASSIGN(Types types, statistics_def().infer(statistics));
  types.insert(types.begin(), y);
  return types;
}

Result<Types> infer_conv2d_batch_norm(const OpTypes& t) {
  PLIMSOLL_ASSIGN(const TensorType y, infer_y(t));
  OpTypes norm{t.op, {y}, {}, t.attrs};
  norm.inputs.insert(norm.inputs.end(), t.inputs.begin() + kConvOperands, t.inputs.end());
  PLIMSOLL_ASSIGN(const Types types, norm_def().infer(norm));
  return Types{{y.dtype, types[0].shape}};
}

/// The convolution's arithmetic, and `PerElement` of the norm's for each element of y.
template <int PerElement>
Cost cost_conv_norm(const OpTypes& t) {
  const ConvExtents e = conv_extents(ConvOp::kForward, t);
  const double products =
      static_cast<double>(e.rows()) * static_cast<double>(e.out_channels) * static_cast<double>(e.taps());
  return cost_of(t, 2.0 * products + PerElement * static_cast<double>(t.outputs[0].num_elements()));
}

/// Rates are looked up as the convolution's: what is done beside the products costs no pass over memory.
WorkSize size_conv_norm(const OpTypes& t, double flops) { return conv2d_def().work.size(t, flops); }

/// The convolution as it is stored.
void reference_y(RefContext& ctx) {
  RefContext conv{ctx.op, {ctx.inputs[0], ctx.inputs[1]}, {ctx.outputs[0]}};
  conv2d_def().reference(conv);
  store(*ctx.outputs[0]);
}

void reference_conv2d_statistics(RefContext& ctx) {
  reference_y(ctx);
  RefContext statistics{ctx.op, {ctx.outputs[0]}, {ctx.outputs[1], ctx.outputs[2]}};
  statistics_def().reference(statistics);
}

void reference_conv2d_batch_norm(RefContext& ctx) {
  reference_y(ctx);
  RefContext norm{ctx.op, {ctx.outputs[0]}, {ctx.outputs[0]}};
  norm.inputs.insert(norm.inputs.end(), ctx.inputs.begin() + kConvOperands, ctx.inputs.end());
  norm_def().reference(norm);
}

std::vector<AttrSpec> attrs_with(std::initializer_list<AttrSpec> more) {
  std::vector<AttrSpec> attrs = conv2d_def().attrs;
  attrs.insert(attrs.end(), more);
  return attrs;
}

}  // namespace

OpGroup conv_norm_ops() {
  static const std::vector<OpDef> kOps = {
      {.name = kConvStatistics,
       .summary = "convolution of images, and the statistics of its channels",
       .work = {.kind = WorkKind::kProduct, .keys = {"conv2d"}, .size = size_conv_norm},
       .min_inputs = 2,
       .max_inputs = 2,
       .attrs = attrs_with({}),
       .infer = infer_conv2d_statistics,
       .cost = cost_conv_norm<4>,
       .reference = reference_conv2d_statistics,
       .autocast = ir::AutocastClass::kLowPrecision,
       .recompute = ir::RecomputeClass::kNever,
       .output_dtypes = {{0, "out", 0}},
       .rounded_operands = 2},
      {.name = kConvBatchNorm,
       .summary = "convolution of images, batch normalisation, then an addition and relu",
       .work = {.kind = WorkKind::kProduct, .keys = {"conv2d"}, .size = size_conv_norm},
       .min_inputs = 6,
       .max_inputs = 7,
       .attrs = attrs_with({float_attr("eps"), bool_attr("relu")}),
       .infer = infer_conv2d_batch_norm,
       .cost = cost_conv_norm<5>,
       .reference = reference_conv2d_batch_norm,
       .autocast = ir::AutocastClass::kLowPrecision,
       .output_dtypes = {{0, "out", 0}},
       .rounded_operands = 2},
  };
  return kOps;
}

}  // namespace plimsoll::ops
