// Functions of values, with torch's names and meanings. Shapes: an axis below 0 counts from the last.
#pragma once

#include <optional>
#include <vector>

#include "plimsoll/value.h"

namespace plimsoll {
inline namespace PLIMSOLL_INLINE_NAMESPACE {

enum class Gelu { exact, tanh };

/// The exact one, by erf, or its approximation by tanh.
inline Value gelu(Value x, Gelu form = Gelu::exact) {
  return detail::op("gelu", {x}, detail::Json().set("approximate", form == Gelu::exact ? "none" : "tanh"));
}
/// The last axis of x [..., in] times weight [out, in]; bias [out] may be left out.
inline Value linear(Value x, Value weight, Value bias = {}) {
  return bias.is_none() ? detail::op("linear", {x, weight}) : detail::op("linear", {x, weight, bias});
}
/// As torch.matmul: the leading axes broadcast.
inline Value matmul(Value a, Value b) { return detail::op("matmul", {a, b}); }
inline Value softmax(Value x, int64_t axis = -1) {
  return detail::op("softmax", {x}, detail::Json().set("axis", axis));
}
inline Value log_softmax(Value x, int64_t axis = -1) {
  return detail::op("log_softmax", {x}, detail::Json().set("axis", axis));
}

struct ReduceOptions {
  std::vector<int64_t> axes = {};  ///< empty: all
  bool keepdims = false;
};
namespace detail {
inline Value reduce(const char* name, Value x, const ReduceOptions& options) {
  Json attributes;
  if (!options.axes.empty()) attributes.set("axes", std::span<const int64_t>(options.axes));
  return op(name, {x}, attributes.set("keepdims", options.keepdims));
}
inline Json shape_json(const char* key, const Shape& shape) {
  return Json().set(key, std::span<const int64_t>(shape));
}
}  // namespace detail
inline Value sum(Value x, const ReduceOptions& options = {}) { return detail::reduce("sum", x, options); }
inline Value mean(Value x, const ReduceOptions& options = {}) { return detail::reduce("mean", x, options); }
inline Value amax(Value x, const ReduceOptions& options = {}) { return detail::reduce("max", x, options); }

/// One extent may be -1.
inline Value reshape(Value x, const Shape& shape) {
  return detail::op("reshape", {x}, detail::shape_json("shape", shape));
}
inline Value permute(Value x, const std::vector<int64_t>& axes) {
  return detail::op("permute", {x}, detail::shape_json("axes", axes));
}
inline Value transpose(Value x, int64_t axis0, int64_t axis1) {
  return detail::op("transpose", {x}, detail::Json().set("axis0", axis0).set("axis1", axis1));
}
inline Value expand(Value x, const Shape& shape) {
  return detail::op("expand", {x}, detail::shape_json("shape", shape));
}
/// Indices [start, end) of an axis.
inline Value slice(Value x, int64_t axis, int64_t start, int64_t end, int64_t step = 1) {
  return detail::op("slice", {x},
                    detail::Json().set("axis", axis).set("start", start).set("end", end).set("step", step));
}
inline std::vector<Value> split(Value x, const std::vector<int64_t>& sizes, int64_t axis = -1) {
  return detail::append("split", std::span<const Value>(&x, 1),
                        detail::shape_json("sizes", sizes).set("axis", axis), sizes.size());
}
inline Value concat(const std::vector<Value>& values, int64_t axis = -1) {
  return detail::append("concat", values, detail::Json().set("axis", axis), 1).front();
}
/// Elements of `x` along `axis` at the indices that `index` holds, as torch.gather.
inline Value gather(Value x, int64_t axis, Value index) {
  return detail::op("gather", {x, index}, detail::Json().set("axis", axis));
}
inline Value full(const Shape& shape, double value) {
  return detail::op("full", {}, detail::shape_json("shape", shape).set("value", value));
}
/// a where the condition is not 0, else b.
inline Value where(Value condition, Value a, Value b) { return detail::op("where", {condition, a, b}); }
inline Value where(Value condition, Value a, double b) { return where(condition, a, full({1}, b)); }
inline Value where(Value condition, double a, Value b) { return where(condition, full({1}, a), b); }
inline Value cast(Value x, DType dtype) {
  return detail::op("cast", {x}, detail::Json().set("dtype", detail::dtype_name(dtype)));
}
/// Zero with probability p, else x / (1 - p); the session's evaluations do not drop.
inline Value dropout(Value x, double p) { return detail::op("dropout", {x}, detail::Json().set("p", p)); }

enum class HeadLayout {
  heads_first,  ///< [batch, heads, tokens, dim], as torch's scaled_dot_product_attention
  tokens_first  ///< [batch, tokens, heads, dim]
};
struct AttentionOptions {
  bool causal = true;
  std::optional<double> scale = {};  ///< of the scores; none: 1 / sqrt(dim)
  double dropout = 0;
  HeadLayout layout = HeadLayout::heads_first;
  int64_t window = 0;  ///< how many tokens one sees, itself among them; 0: all
};
/// The heads of q are a multiple of those of k and v.
inline Value attention(Value q, Value k, Value v, const AttentionOptions& options = {}) {
  detail::Json attributes;
  attributes.set("causal", options.causal);
  attributes.set("layout", options.layout == HeadLayout::heads_first ? "bhtd" : "bthd");
  if (options.scale) attributes.set("scale", *options.scale);
  if (options.dropout != 0) attributes.set("dropout", options.dropout);
  if (options.window != 0) attributes.set("window", options.window);
  return detail::op("attention", {q, k, v}, attributes);
}

struct CrossEntropyOptions {
  int64_t ignore = -100;  ///< labels of this value count nowhere
};
/// logits [..., classes], labels [...] of integers: the mean over the labels that count.
inline Value cross_entropy(Value logits, Value labels, const CrossEntropyOptions& options = {}) {
  return detail::op("cross_entropy", {logits, labels}, detail::Json().set("ignore_index", options.ignore));
}
/// The mean of (a - b)^2 over all elements.
inline Value mse(Value a, Value b) { return detail::op("mse", {a, b}); }
/// The mean of the binary cross-entropy of sigmoid(logits) over all elements.
inline Value bce_with_logits(Value logits, Value labels) {
  return detail::op("bce_with_logits", {logits, labels});
}

}  // namespace PLIMSOLL_INLINE_NAMESPACE
}  // namespace plimsoll
