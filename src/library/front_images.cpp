// Convolutions and pooling of images [batch, channels, height, width].
#include <fmt/format.h>

#include <array>
#include <optional>

#include "library/front_ops.h"
#include "library/invalid.h"
#include "ops/conv2d.h"
#include "ops/pooling.h"

namespace plimsoll::library {
namespace {

using ir::ValueId;
using Pair = std::array<int64_t, 2>;

/// An attribute of one number for both axes, or one for each.
Result<Pair> pair_of(OpCall& call, std::string_view name, int64_t least) {
  constexpr int64_t kMost = int64_t{1} << 14;
  const std::vector<int64_t> given = call.attrs.integers(name);
  const auto fits = [&](int64_t v) { return v >= least && v <= kMost; };
  if (given.empty() || given.size() > 2 || !fits(given.front()) || !fits(given.back()))
    return call.attrs.wrong(name, fmt::format("a number from {} to {}, or a pair", least, kMost));
  return Pair{given.front(), given.back()};
}

Status check_image(const OpCall& call, std::string_view op) {
  const ir::TensorType& x = call.type(size_t{0});
  if (x.shape.rank() == 4 && ir::is_floating(x.dtype)) return Ok{};
  return invalid(
      fmt::format("{}: x is {}, expected [batch, channels, height, width] of floats", op, ir::to_string(x)));
}

/// What the engine's error says of [N, H, W, C] is said of torch's axes.
Status check_filters(const OpCall& call, const ops::Conv2d& how) {
  const ir::Shape &x = call.type(size_t{0}).shape, &w = call.type(1).shape;
  if (w.rank() != 4)
    return invalid(fmt::format("conv2d: weight is {}, expected [out, in / groups, height, width]",
                               ir::to_string(call.type(1))));
  if (x.dim(1) % how.groups != 0 || w.dim(0) % how.groups != 0 || x.dim(1) / how.groups != w.dim(1))
    return invalid(fmt::format("conv2d: x has {} channels, and weight is {} in {} group{}", x.dim(1),
                               ir::to_string(w), how.groups, how.groups == 1 ? "" : "s"),
                   "weight is [out, in / groups, height, width]");
  for (const int axis : {0, 1}) {
    const auto i = static_cast<size_t>(axis);
    const int64_t reach = how.dilation[i] * (w.dim(2 + axis) - 1) + 1;
    if (x.dim(2 + axis) + 2 * how.padding[i] < reach)
      return invalid(fmt::format("conv2d: the kernel reaches over {} pixels, and the padded image has {}",
                                 reach, x.dim(2 + axis) + 2 * how.padding[i]));
  }
  return Ok{};
}

Result<Values> build_conv2d(OpCall& call) {
  PLIMSOLL_TRY(check_image(call, "conv2d"));
  ops::Conv2d how{.groups = call.attrs.integer("groups")};
  if (how.groups < 1) return call.attrs.wrong("groups", "1 or more");
  PLIMSOLL_ASSIGN(how.stride, pair_of(call, "stride", 1));
  PLIMSOLL_ASSIGN(how.padding, pair_of(call, "padding", 0));
  PLIMSOLL_ASSIGN(how.dilation, pair_of(call, "dilation", 1));
  PLIMSOLL_TRY(check_filters(call, how));
  const ValueId bias = call.has(2) ? call.inputs[2] : ValueId{};
  const ValueId y =
      ops::conv2d(call.b, call.channels_last(call.inputs[0]), call.channels_last(call.inputs[1]), bias, how);
  return Values{call.channels_first(y)};
}

Result<ops::Pool2d> window_of(OpCall& call, std::string_view op) {
  PLIMSOLL_TRY(check_image(call, op));
  ops::Pool2d pool;
  PLIMSOLL_ASSIGN(pool.kernel, pair_of(call, "kernel", 1));
  pool.stride = pool.kernel;
  if (call.attrs.has("stride")) {
    PLIMSOLL_ASSIGN(pool.stride, pair_of(call, "stride", 1));
  }
  PLIMSOLL_ASSIGN(pool.padding, pair_of(call, "padding", 0));
  return pool;
}

Result<Values> build_max_pool2d(OpCall& call) {
  PLIMSOLL_ASSIGN(const ops::Pool2d pool, window_of(call, "max_pool2d"));
  return Values{call.channels_first(ops::max_pool2d(call.b, call.channels_last(call.inputs[0]), pool))};
}

Result<Values> build_avg_pool2d(OpCall& call) {
  PLIMSOLL_ASSIGN(const ops::Pool2d pool, window_of(call, "avg_pool2d"));
  const bool count_padding = call.attrs.flag("count_include_pad");
  return Values{
      call.channels_first(ops::avg_pool2d(call.b, call.channels_last(call.inputs[0]), pool, count_padding))};
}

Result<Values> build_adaptive_avg_pool2d(OpCall& call) {
  PLIMSOLL_TRY(check_image(call, "adaptive_avg_pool2d"));
  PLIMSOLL_ASSIGN(const Pair size, pair_of(call, "size", 1));
  const ValueId x = call.inputs[0];
  const ir::Shape shape = call.type(x).shape;
  if (size == Pair{1, 1}) return Values{call.reduce("mean", x, {2, 3}, /*keeps=*/true)};
  if (shape.dim(2) % size[0] != 0 || shape.dim(3) % size[1] != 0)
    return invalid(fmt::format("adaptive_avg_pool2d: an image of {} x {} is not {} x {} equal windows",
                               shape.dim(2), shape.dim(3), size[0], size[1]),
                   "choose a size that divides the image");
  const Pair kernel{shape.dim(2) / size[0], shape.dim(3) / size[1]};
  if (kernel == Pair{1, 1}) return Values{x};
  return Values{call.channels_first(
      ops::avg_pool2d(call.b, call.channels_last(x), {.kernel = kernel, .stride = kernel}))};
}

}  // namespace

FrontGroup front_images() {
  static const std::vector<FrontOp> kOps = {
      {"conv2d",
       "convolution of x [batch, in, height, width] with weight [out, in / groups, height, width]",
       {"x", "weight", "bias?"},
       {{"stride", "1"}, {"padding", "0"}, {"dilation", "1"}, {"groups", "1"}},
       build_conv2d},
      {"max_pool2d",
       "the largest of each window of an image",
       {"x"},
       {{"kernel"}, {"stride", "null"}, {"padding", "0"}},
       build_max_pool2d},
      {"avg_pool2d",
       "the mean of each window of an image",
       {"x"},
       {{"kernel"}, {"stride", "null"}, {"padding", "0"}, {"count_include_pad", "true"}},
       build_avg_pool2d},
      {"adaptive_avg_pool2d",
       "the means of equal windows, `size` of them",
       {"x"},
       {{"size"}},
       build_adaptive_avg_pool2d},
  };
  return kOps;
}

}  // namespace plimsoll::library
