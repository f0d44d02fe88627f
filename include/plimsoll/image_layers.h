// Layers of images [batch, channels, height, width], with torch's names of parameters, shapes, defaults and
// initialisation: `Conv2d stem{*this, "stem", 3, 64, 7, {.stride = 2, .padding = 3, .bias = false}}`.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <string_view>

#include "plimsoll/images.h"
#include "plimsoll/module.h"

namespace plimsoll {
inline namespace PLIMSOLL_INLINE_NAMESPACE {

namespace detail {

/// A convolution's `weight` and `bias` [out], which begin uniformly within ±1/√(inputs of an output).
template <class Options>
class Conv : public Module {
 public:
  Parameter weight;
  std::optional<Parameter> bias;

 protected:
  /// `shape`: the weight's, [out, in / groups, kernel …].
  Conv(Module& parent, std::string_view name, const Shape& shape, const Options& options,
       const char* kind = nullptr)
      : Module(parent, name), weight(*this, "weight", shape, begin(shape), kind), options_(options) {
    if (options.bias) bias.emplace(*this, "bias", Shape{shape[0]}, begin(shape));
  }
  [[nodiscard]] Value bias_or_none() const { return bias ? Value(*bias) : Value(); }
  [[nodiscard]] const Options& options() const { return options_; }

 private:
  static Init begin(const Shape& shape) {
    const int64_t inputs =
        std::accumulate(shape.begin() + 1, shape.end(), int64_t{1}, std::multiplies<int64_t>());
    return Init::uniform(1 / std::sqrt(static_cast<double>(inputs)));
  }
  Options options_;
};

}  // namespace detail

/// x [batch, in, height, width] -> [batch, out, ...]; `weight` [out, in / groups, kernel height, kernel
/// width].
class Conv2d : public detail::Conv<Conv2dOptions> {
 public:
  Conv2d(Module& parent, std::string_view name, int64_t in, int64_t out, const Pair& kernel,
         const Conv2dOptions& options = {})
      : Conv(parent, name, {out, in / options.groups, kernel.height, kernel.width}, options, "filters") {}
  Value operator()(Value x) const {
    const Scope scope = Scope::of_module(x.trace(), path());
    return conv2d(x, weight, bias_or_none(), options());
  }
};

/// x [batch, in, length] -> [batch, out, ...]; `weight` [out, in / groups, kernel].
class Conv1d : public detail::Conv<Conv1dOptions> {
 public:
  Conv1d(Module& parent, std::string_view name, int64_t in, int64_t out, int64_t kernel,
         const Conv1dOptions& options = {})
      : Conv(parent, name, {out, in / options.groups, kernel}, options) {}
  Value operator()(Value x) const {
    const Scope scope = Scope::of_module(x.trace(), path());
    return conv1d(x, weight, bias_or_none(), options());
  }
};

/// Each channel with mean 0 and variance 1 over the batch and its pixels, then `weight` and `bias`, which
/// begin as ones and zeros. See batch_norm for the running values.
class BatchNorm2d : public Module {
 public:
  BatchNorm2d(Module& parent, std::string_view name, int64_t channels, const BatchNormOptions& options = {})
      : Module(parent, name),
        weight(*this, "weight", {channels}, Init::ones()),
        bias(*this, "bias", {channels}, Init::zeros()),
        running_mean(*this, "running_mean", {channels}, Init::zeros()),
        running_var(*this, "running_var", {channels}, Init::ones()),
        num_batches_tracked(*this),
        options_(options) {}
  Value operator()(Value x) const {
    const Scope scope = Scope::of_module(x.trace(), path());
    return batch_norm(x, running_mean, running_var, weight, bias, training(), options_);
  }

  Parameter weight, bias;
  Buffer running_mean, running_var;
  BatchCount num_batches_tracked;

 private:
  BatchNormOptions options_;
};
/// The same of x [batch, channels] or [batch, channels, length].
using BatchNorm1d = BatchNorm2d;

struct GroupNormOptions {
  double eps = 1e-5;
};

/// Each sample's groups of channels with mean 0 and variance 1, then `weight` and `bias`, which begin as ones
/// and zeros.
class GroupNorm : public Module {
 public:
  GroupNorm(Module& parent, std::string_view name, int64_t groups, int64_t channels,
            const GroupNormOptions& options = {})
      : Module(parent, name),
        weight(*this, "weight", {channels}, Init::ones()),
        bias(*this, "bias", {channels}, Init::zeros()),
        groups_(groups),
        options_(options) {}
  Value operator()(Value x) const {
    const Scope scope = Scope::of_module(x.trace(), path());
    return group_norm(x, groups_, weight, bias, options_.eps);
  }

  Parameter weight, bias;

 private:
  int64_t groups_;
  GroupNormOptions options_;
};

}  // namespace PLIMSOLL_INLINE_NAMESPACE
}  // namespace plimsoll
