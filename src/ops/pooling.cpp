// Pooling over windows of images.
#include "ops/pooling.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "ops/operands.h"
#include "ops/pooling_window.h"
#include "ops/reduce.h"

namespace plimsoll::ops {
namespace {

constexpr std::string_view kSkipPadding = "skip_padding", kSize = "size";
constexpr int64_t kMostExtent = int64_t{1} << 30;

bool is_pair(const std::vector<int64_t>& pair, int64_t least) {
  return pair.size() == 2 && pair[0] >= least && pair[1] >= least && pair[0] <= kMostExtent &&
         pair[1] <= kMostExtent;
}

/// The pooled image's shape, or an error in `in`, whose operand `shown` has `image`'s axes.
Shape pooled_shape(Operands& in, const ir::Attrs& attrs, Shape image) {
  const auto &kernel = attrs.ints("kernel"), &stride = attrs.ints("stride"), &padding = attrs.ints("padding");
  const bool are_pairs = is_pair(kernel, 1) && is_pair(stride, 1) && is_pair(padding, 0);
  in.require(are_pairs, "kernel, stride and padding must be pairs of small positive numbers");
  in.require(image.rank() == 4, "x must have the axes N, H, W, C", {0});
  if (!are_pairs || image.rank() != 4) return image;
  in.require(kernel[0] * kernel[1] <= kMostPositions, "a window has more than 255 positions");
  in.require(2 * padding[0] <= kernel[0] && 2 * padding[1] <= kernel[1],
             "padding must be at most half of the kernel");
  for (size_t axis = 0; axis < 2; ++axis) {
    const int i = static_cast<int>(axis) + 1;
    in.require(image.dim(i) + 2 * padding[axis] >= kernel[axis], "the window is larger than the image", {0});
    image.set_dim(i, std::max<int64_t>(1, pool_axis(attrs, axis, image.dim(i)).windows()));
  }
  return image;
}

Result<Types> infer_pool(const OpTypes& t, bool with_index) {
  Operands in(t, 1, {"x"});
  if (!in) return in.error();
  in.floating();
  const TensorType y{t.inputs[0].dtype, pooled_shape(in, t.attrs, t.inputs[0].shape)};
  if (!with_index) return in.results({y});
  return in.results({y, {DType::kU8, y.shape}});
}
Result<Types> infer_max_pool2d(const OpTypes& t) { return infer_pool(t, true); }
Result<Types> infer_avg_pool2d(const OpTypes& t) { return infer_pool(t, false); }

Result<Types> infer_pool_grad(const OpTypes& t, bool with_index) {
  Operands in = with_index ? Operands(t, 2, {"dy", "index"}) : Operands(t, 1, {"dy"});
  if (!in) return in.error();
  const TensorType& dy = t.inputs[0];
  in.require(ir::is_computable(dy.dtype), "dy must be f32, bf16 or f16");
  in.require(dy.shape.rank() == 4, "dy must have the axes N, H, W, C", {0});
  in.require(is_pair(t.attrs.ints(kSize), 1), "size must be a pair of small positive numbers");
  if (with_index) in.same_dtype(1, DType::kU8).shaped(1, dy.shape);
  const DType out = out_dtype(in, t, dy.dtype);
  if (!in) return in.error();
  Shape image = dy.shape;
  for (const int axis : {0, 1}) image.set_dim(axis + 1, t.attrs.ints(kSize)[at(axis)]);
  const Shape pooled = pooled_shape(in, t.attrs, image);
  in.require(pooled == dy.shape, "dy is not of the shape that an image of `size` is pooled to", {0});
  return in.results({{out, image}});
}
Result<Types> infer_max_pool2d_grad(const OpTypes& t) { return infer_pool_grad(t, true); }
Result<Types> infer_avg_pool2d_grad(const OpTypes& t) { return infer_pool_grad(t, false); }

void vjp_pool(VjpContext& ctx, std::string_view grad, bool with_index) {
  const Op op = ctx.op();
  Builder& b = ctx.builder();
  const ValueId dy = ctx.cotangent(0);
  if (!dy.valid() || !ctx.wants(0)) return;
  const TensorType x = b.type(op.inputs[0]);
  ir::Attrs attrs = op.attrs;
  attrs.set(kSize, std::vector<int64_t>{x.shape.dim(1), x.shape.dim(2)});
  if (x.dtype != b.type(dy).dtype) attrs.set("out", std::string(ir::name(x.dtype)));
  std::vector<ValueId> operands{dy};
  if (with_index) operands.push_back(op.outputs[1]);
  ctx.add(0, b.op(grad, std::move(operands), std::move(attrs)));
}
void vjp_max_pool2d(VjpContext& ctx) { vjp_pool(ctx, "max_pool2d_grad", true); }
void vjp_avg_pool2d(VjpContext& ctx) { vjp_pool(ctx, "avg_pool2d_grad", false); }

// ---- references

/// body(window's element, image's element, position in the window, divisor of a mean).
template <class Body>
void for_windows(const Op& op, const Shape& image, Body body) {
  const PoolAxis rows = pool_axis(op.attrs, 0, image.dim(1)), cols = pool_axis(op.attrs, 1, image.dim(2));
  const int64_t channels = image.dim(3);
  int64_t y = 0;
  for (int64_t n = 0; n < image.dim(0); ++n)
    for (int64_t oh = 0; oh < rows.windows(); ++oh)
      for (int64_t ow = 0; ow < cols.windows(); ++ow)
        for (int64_t c = 0; c < channels; ++c, ++y) {
          const PoolRange hs = rows.elements(oh), ws = cols.elements(ow);
          const int64_t divisor = mean_divisor(rows, cols, op.attrs.flag(kSkipPadding), oh, ow);
          for (int64_t h = hs.begin; h < hs.end; ++h)
            for (int64_t w = ws.begin; w < ws.end; ++w)
              body(at(y), at(((n * image.dim(1) + h) * image.dim(2) + w) * channels + c),
                   static_cast<double>((h - rows.start(oh)) * cols.kernel + w - cols.start(ow)),
                   static_cast<double>(divisor));
        }
}

void reference_max_pool2d(RefContext& ctx) {
  auto &y = ctx.outputs[0]->data, &index = ctx.outputs[1]->data;
  std::vector<bool> begun(y.size(), false);
  for_windows(ctx.op, ctx.inputs[0]->type.shape, [&](size_t window, size_t element, double position, double) {
    const double v = ctx.inputs[0]->data[element];
    if (begun[window] && !(v > y[window]) && !std::isnan(v)) return;
    y[window] = v, index[window] = position, begun[window] = true;
  });
}

void reference_max_pool2d_grad(RefContext& ctx) {
  for_windows(ctx.op, ctx.outputs[0]->type.shape,
              [&](size_t window, size_t element, double position, double) {
                if (ctx.inputs[1]->data[window] == position)
                  ctx.outputs[0]->data[element] += ctx.inputs[0]->data[window];
              });
}

void reference_avg_pool2d(RefContext& ctx) {
  for_windows(ctx.op, ctx.inputs[0]->type.shape, [&](size_t window, size_t element, double, double divisor) {
    ctx.outputs[0]->data[window] += ctx.inputs[0]->data[element] / divisor;
  });
}

void reference_avg_pool2d_grad(RefContext& ctx) {
  for_windows(ctx.op, ctx.outputs[0]->type.shape, [&](size_t window, size_t element, double, double divisor) {
    ctx.outputs[0]->data[element] += ctx.inputs[0]->data[window] / divisor;
  });
}

/// Each position of each window is looked at once; of a gradient as often.
Cost cost_pool(const OpTypes& t) {
  const auto& kernel = t.attrs.ints("kernel");
  return cost_of(t,
                 2.0 * static_cast<double>(kernel[0] * kernel[1]) *
                     static_cast<double>(std::min(t.inputs[0].num_elements(), t.outputs[0].num_elements())));
}

std::vector<AttrSpec> window_attrs(std::initializer_list<AttrSpec> others) {
  std::vector<AttrSpec> attrs{ints_attr("kernel"), ints_attr("stride"), ints_attr("padding")};
  attrs.insert(attrs.end(), others);
  return attrs;
}

ir::Attrs attrs_of(const Pool2d& pool) {
  const auto list = [](const std::array<int64_t, 2>& pair) {
    return std::vector<int64_t>(pair.begin(), pair.end());
  };
  return {{"kernel", list(pool.kernel)}, {"stride", list(pool.stride)}, {"padding", list(pool.padding)}};
}

}  // namespace

OpGroup pooling_ops() {
  using enum ir::RecomputeClass;
  static const std::vector<OpDef> kOps = {
      {.name = "max_pool2d",
       .summary = "the largest element of each window",
       .work = {WorkKind::kElementwise},
       .min_inputs = 1,
       .max_inputs = 1,
       .attrs = window_attrs({}),
       .infer = infer_max_pool2d,
       .vjp = vjp_max_pool2d,
       .cost = cost_pool,
       .reference = reference_max_pool2d,
       .recompute = kNearlyFree},
      {.name = "max_pool2d_grad",
       .summary = "dy goes to the largest element of each window",
       .work = {WorkKind::kElementwise},
       .min_inputs = 2,
       .max_inputs = 2,
       .attrs = window_attrs({ints_attr(kSize), out_attr()}),
       .infer = infer_max_pool2d_grad,
       .cost = cost_pool,
       .reference = reference_max_pool2d_grad,
       .recompute = kNearlyFree,
       .output_dtypes = {{0, "out", 0}}},
      {.name = "avg_pool2d",
       .summary = "the mean of each window",
       .work = {WorkKind::kElementwise},
       .min_inputs = 1,
       .max_inputs = 1,
       .attrs = window_attrs({bool_attr(kSkipPadding)}),
       .infer = infer_avg_pool2d,
       .vjp = vjp_avg_pool2d,
       .cost = cost_pool,
       .reference = reference_avg_pool2d,
       .recompute = kNearlyFree},
      {.name = "avg_pool2d_grad",
       .summary = "dy in equal parts to the elements of each window",
       .work = {WorkKind::kElementwise},
       .min_inputs = 1,
       .max_inputs = 1,
       .attrs = window_attrs({bool_attr(kSkipPadding), ints_attr(kSize), out_attr()}),
       .infer = infer_avg_pool2d_grad,
       .cost = cost_pool,
       .reference = reference_avg_pool2d_grad,
       .recompute = kNearlyFree,
       .output_dtypes = {{0, "out", 0}}},
  };
  return kOps;
}

ValueId max_pool2d(Builder& b, ValueId x, const Pool2d& pool) {
  return b.op("max_pool2d", {x}, attrs_of(pool));
}

ValueId avg_pool2d(Builder& b, ValueId x, const Pool2d& pool, bool count_padding) {
  ir::Attrs attrs = attrs_of(pool);
  if (!count_padding) attrs.set(kSkipPadding, true);
  return b.op("avg_pool2d", {x}, std::move(attrs));
}

ValueId global_mean(Builder& b, ValueId x) { return reduce(b, Reduce::kMean, x, {1, 2}, false); }

}  // namespace plimsoll::ops
