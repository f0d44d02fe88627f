// Layers with torch's names of parameters, shapes, defaults and initialisation. Each is made as a member of
// its module: `Linear up{*this, "up", 64, 256, {.bias = false}}`.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>

#include "plimsoll/functional.h"
#include "plimsoll/module.h"

namespace plimsoll {
inline namespace PLIMSOLL_INLINE_NAMESPACE {

struct LinearOptions {
  bool bias = true;
};

/// x [..., in] -> [..., out]. `weight` [out, in] and `bias` [out] begin uniformly within ±1/√in.
class Linear : public Module {
 public:
  Linear(Module& parent, std::string_view name, int64_t in, int64_t out, const LinearOptions& options = {})
      : Module(parent, name),
        weight(*this, "weight", {out, in}, Init::uniform(1 / std::sqrt(static_cast<double>(in)))) {
    if (options.bias)
      bias.emplace(*this, "bias", Shape{out}, Init::uniform(1 / std::sqrt(static_cast<double>(in))));
  }
  Value operator()(Value x) const {
    const Scope scope = Scope::of_module(x.trace(), path());
    return linear(x, weight, bias ? Value(*bias) : Value());
  }

  Parameter weight;
  std::optional<Parameter> bias;
};

struct EmbeddingOptions {
  std::optional<int64_t> padding_idx = {};  ///< this row gets no gradient
};

/// Integers of any shape -> [..., dim]: rows of `weight` [rows, dim], which begins as standard normals.
class Embedding : public Module {
 public:
  Embedding(Module& parent, std::string_view name, int64_t rows, int64_t dim,
            const EmbeddingOptions& options = {})
      : Module(parent, name),
        weight(*this, "weight", {rows, dim}, Init::normal(), "embedding"),
        options_(options) {}
  Value operator()(Value ids) const {
    const Scope scope = Scope::of_module(ids.trace(), path());
    detail::Json attributes;
    if (options_.padding_idx) attributes.set("padding_idx", *options_.padding_idx);
    return detail::op("embedding", {weight, ids}, attributes);
  }

  Parameter weight;

 private:
  EmbeddingOptions options_;
};

struct RMSNormOptions {
  double eps = 0x1p-23;  ///< torch's default: the spacing of floats at 1
};

/// x / sqrt(mean(x^2) + eps) * weight over the last axis.
class RMSNorm : public Module {
 public:
  RMSNorm(Module& parent, std::string_view name, int64_t dim, const RMSNormOptions& options = {})
      : Module(parent, name), weight(*this, "weight", {dim}, Init::ones()), options_(options) {}
  Value operator()(Value x) const {
    const Scope scope = Scope::of_module(x.trace(), path());
    return detail::op("rms_norm", {x, weight}, detail::Json().set("eps", options_.eps));
  }

  Parameter weight;

 private:
  RMSNormOptions options_;
};

struct LayerNormOptions {
  double eps = 1e-5;
};

/// (x - mean) / sqrt(variance + eps) * weight + bias over the last axis.
class LayerNorm : public Module {
 public:
  LayerNorm(Module& parent, std::string_view name, int64_t dim, const LayerNormOptions& options = {})
      : Module(parent, name),
        weight(*this, "weight", {dim}, Init::ones()),
        bias(*this, "bias", {dim}, Init::zeros()),
        options_(options) {}
  Value operator()(Value x) const {
    const Scope scope = Scope::of_module(x.trace(), path());
    return detail::op("layer_norm", {x, weight, bias}, detail::Json().set("eps", options_.eps));
  }

  Parameter weight;
  Parameter bias;

 private:
  LayerNormOptions options_;
};

/// Zero with probability p, else x / (1 - p). A session's evaluations do not drop, nor steps after eval().
class Dropout : public Module {
 public:
  Dropout(Module& parent, std::string_view name, double p = 0.5) : Module(parent, name), p_(p) {}
  Value operator()(Value x) const {
    const Scope scope = Scope::of_module(x.trace(), path());
    return dropout(x, training() ? p_ : 0);
  }

 private:
  double p_;
};

}  // namespace PLIMSOLL_INLINE_NAMESPACE
}  // namespace plimsoll
