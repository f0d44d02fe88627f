// Functions of images [batch, channels, height, width], with torch's names and meanings. The planner keeps
// channels last in memory: nothing is copied between two of these functions.
#pragma once

#include <cstdint>
#include <optional>

#include "plimsoll/functional.h"

namespace plimsoll {
inline namespace PLIMSOLL_INLINE_NAMESPACE {

/// One number for both axes of an image, or {height, width}.
struct Pair {
  int64_t height = 1, width = 1;

  Pair(int64_t both) : height(both), width(both) {}  // implicit by design
  Pair(int64_t high, int64_t wide) : height(high), width(wide) {}
};

namespace detail {
inline Json& set_pair(Json& attributes, const char* key, const Pair& pair) {
  const int64_t both[] = {pair.height, pair.width};
  return attributes.set(key, std::span<const int64_t>(both));
}
}  // namespace detail

struct Conv2dOptions {
  Pair stride = 1, padding = 0, dilation = 1;
  int64_t groups = 1;
  bool bias = true;  ///< of the layer
};
/// x [batch, in, height, width], weight [out, in / groups, kernel height, kernel width], bias [out] or none
/// -> [batch, out, ...].
inline Value conv2d(Value x, Value weight, Value bias = {}, const Conv2dOptions& options = {}) {
  detail::Json attributes;
  detail::set_pair(attributes, "stride", options.stride);
  detail::set_pair(attributes, "padding", options.padding);
  detail::set_pair(attributes, "dilation", options.dilation).set("groups", options.groups);
  return bias.is_none() ? detail::op("conv2d", {x, weight}, attributes)
                        : detail::op("conv2d", {x, weight, bias}, attributes);
}

struct Conv1dOptions {
  int64_t stride = 1, padding = 0, dilation = 1, groups = 1;
  bool bias = true;  ///< of the layer
};
/// x [batch, in, length], weight [out, in / groups, kernel], bias [out] or none -> [batch, out, ...]: conv2d
/// of images of one row.
inline Value conv1d(Value x, Value weight, Value bias = {}, const Conv1dOptions& options = {}) {
  const auto in_one_row = [](Value value) {
    Shape shape = value.shape();
    if (shape.size() == 3) shape.insert(shape.begin() + 2, 1);  // other shapes are refused by conv2d
    return reshape(value, shape);
  };
  const Value y = conv2d(in_one_row(x), in_one_row(weight), bias,
                         {.stride = {1, options.stride},
                          .padding = {0, options.padding},
                          .dilation = {1, options.dilation},
                          .groups = options.groups});
  const Shape shape = y.shape();
  return shape.size() == 4 ? reshape(y, {shape[0], shape[1], shape[3]}) : y;
}

struct PoolOptions {
  std::optional<Pair> stride = {};  ///< none: the kernel's size
  Pair padding = 0;
  bool count_include_pad = true;  ///< of means: padding counts as zeros
};
/// The largest element of each window.
inline Value max_pool2d(Value x, const Pair& kernel, const PoolOptions& options = {}) {
  detail::Json attributes;
  detail::set_pair(attributes, "kernel", kernel);
  detail::set_pair(attributes, "stride", options.stride.value_or(kernel));
  return detail::op("max_pool2d", {x}, detail::set_pair(attributes, "padding", options.padding));
}
/// The mean of each window.
inline Value avg_pool2d(Value x, const Pair& kernel, const PoolOptions& options = {}) {
  detail::Json attributes;
  detail::set_pair(attributes, "kernel", kernel);
  detail::set_pair(attributes, "stride", options.stride.value_or(kernel));
  detail::set_pair(attributes, "padding", options.padding);
  return detail::op("avg_pool2d", {x}, attributes.set("count_include_pad", options.count_include_pad));
}
/// The image as `size` means of equal windows: it divides the image.
inline Value adaptive_avg_pool2d(Value x, const Pair& size) {
  detail::Json attributes;
  return detail::op("adaptive_avg_pool2d", {x}, detail::set_pair(attributes, "size", size));
}

struct BatchNormOptions {
  double eps = 1e-5;
  double momentum = 0.1;  ///< the share of the batch's statistics in the next running value
};
/// Each channel of x [batch, channels, ...] with mean 0 and variance 1 over the batch, then weight and bias
/// [channels]. In a step the running values, which are buffers, follow the batch's; evaluations use them, and
/// without `training` steps too.
inline Value batch_norm(Value x, Value running_mean, Value running_var, Value weight = {}, Value bias = {},
                        bool training = true, const BatchNormOptions& options = {}) {
  detail::Json attributes;
  attributes.set("eps", options.eps).set("momentum", options.momentum).set("training", training);
  return detail::op("batch_norm", {x, weight, bias, running_mean, running_var}, attributes);
}
/// Each sample's groups of channels with mean 0 and variance 1, then weight and bias [channels].
inline Value group_norm(Value x, int64_t groups, Value weight = {}, Value bias = {}, double eps = 1e-5) {
  return detail::op("group_norm", {x, weight, bias}, detail::Json().set("groups", groups).set("eps", eps));
}

}  // namespace PLIMSOLL_INLINE_NAMESPACE
}  // namespace plimsoll
