// Layers of images [batch, channels, height, width], with torch's names of parameters, shapes, defaults and
// initialisation: `Conv2d stem{*this, "stem", 3, 64, 7, {.stride = 2, .padding = 3, .bias = false}}`.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>

#include "plimsoll/images.h"
#include "plimsoll/module.h"

namespace plimsoll {
inline namespace PLIMSOLL_INLINE_NAMESPACE {

/// x [batch, in, height, width] -> [batch, out, ...]. `weight` [out, in / groups, kernel height, kernel
/// width] and `bias` [out] begin uniformly within ±1/√(inputs of an output).
class Conv2d : public Module {
 public:
  Conv2d(Module& parent, std::string_view name, int64_t in, int64_t out, const Pair& kernel,
         const Conv2dOptions& options = {})
      : Module(parent, name),
        weight(*this, "weight", {out, in / options.groups, kernel.height, kernel.width},
               begin(in, kernel, options), "filters"),
        options_(options) {
    if (options.bias) bias.emplace(*this, "bias", Shape{out}, begin(in, kernel, options));
  }
  Value operator()(Value x) const {
    const Scope scope = Scope::of_module(x.trace(), path());
    return conv2d(x, weight, bias ? Value(*bias) : Value(), options_);
  }

  Parameter weight;
  std::optional<Parameter> bias;

 private:
  static Init begin(int64_t in, const Pair& kernel, const Conv2dOptions& options) {
    const int64_t inputs = in / options.groups * kernel.height * kernel.width;
    return Init::uniform(1 / std::sqrt(static_cast<double>(inputs)));
  }
  Conv2dOptions options_;
};

/// x [batch, in, length] -> [batch, out, ...]. `weight` [out, in / groups, kernel] and `bias` [out] begin
/// uniformly within ±1/√(inputs of an output).
class Conv1d : public Module {
 public:
  Conv1d(Module& parent, std::string_view name, int64_t in, int64_t out, int64_t kernel,
         const Conv1dOptions& options = {})
      : Module(parent, name),
        weight(*this, "weight", {out, in / options.groups, kernel}, begin(in, kernel, options)),
        options_(options) {
    if (options.bias) bias.emplace(*this, "bias", Shape{out}, begin(in, kernel, options));
  }
  Value operator()(Value x) const {
    const Scope scope = Scope::of_module(x.trace(), path());
    return conv1d(x, weight, bias ? Value(*bias) : Value(), options_);
  }

  Parameter weight;
  std::optional<Parameter> bias;

 private:
  static Init begin(int64_t in, int64_t kernel, const Conv1dOptions& options) {
    return Init::uniform(1 / std::sqrt(static_cast<double>(in / options.groups * kernel)));
  }
  Conv1dOptions options_;
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
