// Convolutions over images and their gradients.
#include "ops/conv2d.h"

#include <algorithm>

#include "ops/operands.h"

namespace plimsoll::ops {
namespace {

/// No sum or product of an extent and some of these overflows.
constexpr int64_t kMostStep = int64_t{1} << 14, kMostGroups = int64_t{1} << 20;

/// The attributes, checked; then extents along an axis may be computed.
Conv2d checked_how(Operands& in, const OpTypes& t) {
  Conv2d how;
  const auto pair = [&](std::string_view name, int64_t least, std::array<int64_t, 2>& to) {
    const std::vector<int64_t>& given = t.attrs.ints(name);
    const bool fits = given.size() == 2 && std::min(given[0], given[1]) >= least &&
                      std::max(given[0], given[1]) <= kMostStep;
    in.require(fits, std::string(name) + " must be two numbers from " + std::to_string(least) + " to 16384");
    if (fits) std::copy_n(given.begin(), 2, to.begin());
  };
  pair("stride", 1, how.stride);
  pair("padding", 0, how.padding);
  pair("dilation", 1, how.dilation);
  const int64_t groups = t.attrs.i64("groups");
  in.require(groups >= 1 && groups <= kMostGroups, "groups must be between 1 and 2^20");
  how.groups = std::clamp<int64_t>(groups, 1, kMostGroups);
  return how;
}

/// Positions of the kernel along an axis; none where the kernel is larger than the padded image.
int64_t kernel_positions(const Conv2d& how, size_t axis, int64_t extent, int64_t kernel) {
  const int64_t room = extent + 2 * how.padding[axis] - how.dilation[axis] * (kernel - 1) - 1;
  return room < 0 ? 0 : room / how.stride[axis] + 1;
}

/// Checks x and weight against each other, and gives y's shape.
Shape result_shape(Operands& in, const Conv2d& how, const Shape& x, const Shape& weight) {
  in.require(x.dim(3) % how.groups == 0, "groups must divide the channels of x", {0, 1});
  in.require(weight.dim(0) % how.groups == 0, "groups must divide the results of weight", {0, 1});
  in.require(x.dim(3) / how.groups == weight.dim(3), "channels of a group differ from the weight's", {0, 1});
  const Shape y{x.dim(0), kernel_positions(how, 0, x.dim(1), weight.dim(1)),
                kernel_positions(how, 1, x.dim(2), weight.dim(2)), weight.dim(0)};
  in.require(y.dim(1) > 0 && y.dim(2) > 0, "the kernel is larger than the padded image", {0, 1});
  return y;
}

/// Two extents from an attribute.
std::array<int64_t, 2> extents_attr(Operands& in, const OpTypes& t, std::string_view name) {
  const std::vector<int64_t>& given = t.attrs.ints(name);
  const bool fits =
      given.size() == 2 && std::min(given[0], given[1]) >= 1 && std::max(given[0], given[1]) <= kMaxElements;
  in.require(fits, std::string(name) + " must be two extents");
  return fits ? std::array{given[0], given[1]} : std::array<int64_t, 2>{1, 1};
}

void require_images(Operands& in, const OpTypes& t, std::initializer_list<size_t> operands) {
  for (const size_t i : operands)
    in.require(t.inputs[i].shape.rank() == 4, "images and weights have four axes", {i});
}

Result<Types> infer_conv2d(const OpTypes& t) {
  Operands in(t, 2, {"x", "weight", "bias"});
  if (!in) return in.error();
  require_images(in.floating(), t, {0, 1});
  const Conv2d how = checked_how(in, t);
  check_precision(in, t);
  if (!in) return in.error();
  const Shape y = result_shape(in, how, t.inputs[0].shape, t.inputs[1].shape);
  in.shaped(2, Shape{y.dim(3)});
  return in.results({{out_dtype(in, t, t.inputs[0].dtype), y}});
}

Result<Types> infer_conv2d_input_grad(const OpTypes& t) {
  Operands in(t, 2, {"dy", "weight"});
  if (!in) return in.error();
  require_images(in.floating(), t, {0, 1});
  const Conv2d how = checked_how(in, t);
  const auto size = extents_attr(in, t, "size");
  check_precision(in, t);
  if (!in) return in.error();
  const Shape &dy = t.inputs[0].shape, &weight = t.inputs[1].shape;
  in.require(weight.dim(3) <= kMaxElements / how.groups, "too many channels", {1});
  if (!in) return in.error();
  const Shape x{dy.dim(0), size[0], size[1], weight.dim(3) * how.groups};
  in.shaped(0, result_shape(in, how, x, weight));
  return in.results({{out_dtype(in, t, t.inputs[0].dtype), x}});
}

Result<Types> infer_conv2d_weight_grad(const OpTypes& t) {
  Operands in(t, 2, {"x", "dy", "acc"});
  if (!in) return in.error();
  require_images(in.floating(), t, {0, 1});
  const Conv2d how = checked_how(in, t);
  const auto kernel = extents_attr(in, t, "kernel");
  check_precision(in, t);
  if (!in) return in.error();
  const Shape &x = t.inputs[0].shape, &dy = t.inputs[1].shape;
  const Shape weight{dy.dim(3), kernel[0], kernel[1], x.dim(3) / how.groups};
  in.shaped(1, result_shape(in, how, x, weight));
  const DType dtype = out_dtype(in, t, DType::kF32);
  in.shaped(2, weight).same_dtype(2, DType::kF32);
  in.require(!t.has(2) || dtype == DType::kF32, "a gradient is accumulated in f32");
  return in.results({{dtype, weight}});
}

ir::Attrs attrs_saying(const Conv2d& how) {
  const auto pair = [](const std::array<int64_t, 2>& p) { return std::vector<int64_t>{p[0], p[1]}; };
  return {{"stride", pair(how.stride)},
          {"padding", pair(how.padding)},
          {"dilation", pair(how.dilation)},
          {"groups", how.groups}};
}

/// The forward op's attributes for a gradient of that dtype, which is `otherwise` where nothing says it.
ir::Attrs grad_attrs(const Op& op, DType out, DType otherwise) {
  ir::Attrs attrs;
  for (const auto& [key, value] : op.attrs.entries())
    if (key != "out") attrs.set(key, value);
  if (out != otherwise) attrs.set("out", std::string(ir::name(out)));
  return attrs;
}

void vjp_conv2d(VjpContext& ctx) {
  const Op op = ctx.op();
  Builder& b = ctx.builder();
  const ValueId dy = ctx.cotangent(0);
  if (!dy.valid()) return;
  const TensorType x = b.type(op.inputs[0]), weight = b.type(op.inputs[1]);
  if (ctx.wants(0)) {
    ir::Attrs attrs = grad_attrs(op, x.dtype, b.type(dy).dtype);
    attrs.set("size", std::vector<int64_t>{x.shape.dim(1), x.shape.dim(2)});
    ctx.add(0, b.op("conv2d_input_grad", {dy, op.inputs[1]}, attrs));
  }
  if (ctx.wants(1)) {
    ir::Attrs attrs = grad_attrs(op, weight.dtype, DType::kF32);
    attrs.set("kernel", std::vector<int64_t>{weight.shape.dim(1), weight.shape.dim(2)});
    ctx.add(1, b.op("conv2d_weight_grad", {op.inputs[0], dy}, attrs));
  }
  if (op.inputs.size() > 2 && op.inputs[2].valid() && ctx.wants(2))
    ctx.add(2, b.op("sum_rows", {dy}, with_out({}, b.type(op.inputs[2]).dtype)));
}

// ---- extents and work

constexpr std::string_view kConvKey = "conv2d", kConvInputKey = "conv2d_input_grad",
                           kConvWeightKey = "conv2d_weight_grad";

template <ConvOp kOp>
Cost cost_conv2d(const OpTypes& t) {
  const ConvExtents e = conv_extents(kOp, t);
  return cost_of(t, 2.0 * static_cast<double>(e.rows()) * static_cast<double>(e.out_channels) *
                        static_cast<double>(e.taps()));
}

/// As the product of [rows, taps] and [taps, results], whichever of the three is computed from the others.
template <ConvOp kOp, const std::string_view& kKey>
WorkSize size_conv2d(const OpTypes& t, double) {
  const ConvExtents e = conv_extents(kOp, t);
  return {
      kKey,
      {static_cast<double>(e.rows()), static_cast<double>(e.out_channels), static_cast<double>(e.taps())}};
}

// ---- references

/// visit(x's element, weight's, y's) for every product of the definition.
template <typename Visit>
void for_products(const ConvExtents& e, const Visit& visit) {
  const auto& [stride, padding, dilation, groups] = e.how;
  const int64_t inputs = e.group_channels(), outputs = e.group_outputs();
  for (int64_t row = 0; row < e.rows(); ++row)
    for (int64_t o = 0; o < e.out_channels; ++o)
      for (int64_t kh = 0; kh < e.kernel_height; ++kh)
        for (int64_t kw = 0; kw < e.kernel_width; ++kw) {
          const int64_t n = row / e.out_pixels(), i = row % e.out_pixels() / e.out_width,
                        j = row % e.out_width;
          const int64_t h = i * stride[0] + kh * dilation[0] - padding[0],
                        w = j * stride[1] + kw * dilation[1] - padding[1];
          if (h < 0 || h >= e.height || w < 0 || w >= e.width) continue;
          for (int64_t c = 0; c < inputs; ++c)
            visit(at(((n * e.height + h) * e.width + w) * e.channels + o / outputs * inputs + c),
                  at(((o * e.kernel_height + kh) * e.kernel_width + kw) * inputs + c),
                  at(row * e.out_channels + o));
        }
}

OpTypes reference_types(const RefContext& ctx) {
  OpTypes types{ctx.op.def->name, {}, {}, ctx.op.attrs};
  for (const RefTensor* x : ctx.inputs) types.inputs.push_back(x == nullptr ? TensorType{} : x->type);
  for (const RefTensor* y : ctx.outputs) types.outputs.push_back(y->type);
  return types;
}

void reference_conv2d(RefContext& ctx) {
  const auto x = operand_of(ctx, *ctx.inputs[0]), weight = operand_of(ctx, *ctx.inputs[1]);
  auto& y = ctx.outputs[0]->data;
  for_products(conv_extents(ConvOp::kForward, reference_types(ctx)),
               [&](size_t i, size_t k, size_t o) { y[o] += x[i] * weight[k]; });
  if (ctx.inputs.size() > 2 && ctx.inputs[2] != nullptr)
    for (size_t i = 0; i < y.size(); ++i) y[i] += ctx.inputs[2]->data[i % ctx.inputs[2]->data.size()];
}

void reference_conv2d_input_grad(RefContext& ctx) {
  const auto dy = operand_of(ctx, *ctx.inputs[0]), weight = operand_of(ctx, *ctx.inputs[1]);
  auto& dx = ctx.outputs[0]->data;
  for_products(conv_extents(ConvOp::kInputGrad, reference_types(ctx)),
               [&](size_t i, size_t k, size_t o) { dx[i] += dy[o] * weight[k]; });
}

void reference_conv2d_weight_grad(RefContext& ctx) {
  const auto x = operand_of(ctx, *ctx.inputs[0]), dy = operand_of(ctx, *ctx.inputs[1]);
  auto& dw = ctx.outputs[0]->data;
  if (ctx.inputs.size() > 2 && ctx.inputs[2] != nullptr) dw = ctx.inputs[2]->data;
  for_products(conv_extents(ConvOp::kWeightGrad, reference_types(ctx)),
               [&](size_t i, size_t k, size_t o) { dw[k] += x[i] * dy[o]; });
}

std::vector<AttrSpec> conv_attrs(std::initializer_list<AttrSpec> more = {}) {
  std::vector<AttrSpec> attrs = {ints_attr("stride"), ints_attr("padding"), ints_attr("dilation"),
                                 int_attr("groups"),  precision_attr(),     out_attr()};
  attrs.insert(attrs.end(), more);
  return attrs;
}

}  // namespace

OpGroup conv2d_ops() {
  using enum ir::RecomputeClass;
  using enum ir::AutocastClass;
  static const std::vector<OpDef> kOps = {
      {.name = "conv2d",
       .summary = "convolution of images, plus bias",
       .work = {.kind = WorkKind::kProduct,
                .keys = {kConvKey},
                .size = size_conv2d<ConvOp::kForward, kConvKey>},
       .min_inputs = 2,
       .max_inputs = 3,
       .attrs = conv_attrs(),
       .infer = infer_conv2d,
       .vjp = vjp_conv2d,
       .cost = cost_conv2d<ConvOp::kForward>,
       .reference = reference_conv2d,
       .autocast = kLowPrecision,
       .recompute = kCompute,
       .output_dtypes = {{0, "out", 0}},
       .rounded_operands = 2},
      {.name = "conv2d_input_grad",
       .summary = "gradient of a convolution's images",
       .work = {.kind = WorkKind::kProduct,
                .keys = {kConvInputKey},
                .size = size_conv2d<ConvOp::kInputGrad, kConvInputKey>},
       .min_inputs = 2,
       .max_inputs = 2,
       .attrs = conv_attrs({ints_attr("size")}),
       .infer = infer_conv2d_input_grad,
       .cost = cost_conv2d<ConvOp::kInputGrad>,
       .reference = reference_conv2d_input_grad,
       .autocast = kLowPrecision,
       .recompute = kCompute,
       .output_dtypes = {{0, "out", 0}},
       .rounded_operands = 2},
      {.name = "conv2d_weight_grad",
       .summary = "gradient of a convolution's weight",
       .work = {.kind = WorkKind::kProduct,
                .keys = {kConvWeightKey},
                .size = size_conv2d<ConvOp::kWeightGrad, kConvWeightKey>},
       .min_inputs = 2,
       .max_inputs = 3,
       .attrs = conv_attrs({ints_attr("kernel")}),
       .infer = infer_conv2d_weight_grad,
       .cost = cost_conv2d<ConvOp::kWeightGrad>,
       .reference = reference_conv2d_weight_grad,
       .autocast = kLowPrecision,
       .recompute = kCompute,
       .accumulators = {{0, 2}},
       .output_dtypes = {{0, "out"}},
       .rounded_operands = 2},
  };
  return kOps;
}

bool ConvExtents::is_product() const {
  return kernel_height == 1 && kernel_width == 1 && how.stride == std::array<int64_t, 2>{1, 1} &&
         how.padding == std::array<int64_t, 2>{0, 0};
}

ConvExtents conv_extents(ConvOp op, const Shape& first, const Shape& second, const Shape& result,
                         const ir::Attrs& attrs) {
  const Shape& x = op == ConvOp::kInputGrad ? result : first;
  const Shape& weight = op == ConvOp::kWeightGrad ? result : second;
  const Shape& y = op == ConvOp::kForward ? result : op == ConvOp::kInputGrad ? first : second;
  const auto pair = [&](std::string_view name) {
    const std::vector<int64_t>& given = attrs.ints(name);
    return std::array<int64_t, 2>{given[0], given[1]};
  };
  return {.images = x.dim(0),
          .height = x.dim(1),
          .width = x.dim(2),
          .channels = x.dim(3),
          .out_height = y.dim(1),
          .out_width = y.dim(2),
          .out_channels = y.dim(3),
          .kernel_height = weight.dim(1),
          .kernel_width = weight.dim(2),
          .how = {pair("stride"), pair("padding"), pair("dilation"), attrs.i64("groups")}};
}

ConvExtents conv_extents(ConvOp op, const OpTypes& t) {
  return conv_extents(op, t.inputs[0].shape, t.inputs[1].shape, t.outputs[0].shape, t.attrs);
}

ValueId conv2d(Builder& b, ValueId x, ValueId weight, ValueId bias, const Conv2d& how) {
  return b.op("conv2d", trimmed({x, weight, bias}), attrs_saying(how));
}

}  // namespace plimsoll::ops
