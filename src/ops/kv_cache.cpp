// Keys and values that generation keeps: writing new rows into the cache, and attention over it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ops/operands.h"

namespace plimsoll::ops {
namespace {

Result<Types> infer_cache_update(const OpTypes& t) {
  Operands in(t, 3, {"cache", "x", "start"});
  if (!in) return in.error();
  const Shape& cache = t.inputs[0].shape;
  const Shape& x = t.inputs[1].shape;
  in.floating({}, {2}).require(cache.rank() == 4, "cache must be [B,S,kv_heads,head_dim]", {0});
  in.require(
      x.rank() == 4 && x.dim(0) == cache.dim(0) && x.dim(2) == cache.dim(2) && x.dim(3) == cache.dim(3),
      "x must be [B,T,kv_heads,head_dim] as cache", {0, 1});
  if (!in) return in.error();
  return in.shaped(2, Shape{cache.dim(0)}).results({t.inputs[0]});
}

void reference_cache_update(RefContext& ctx) {
  const Shape& cache = ctx.inputs[0]->type.shape;
  const Shape& x = ctx.inputs[1]->type.shape;
  const int64_t width = cache.dim(2) * cache.dim(3);
  ctx.outputs[0]->data = ctx.inputs[0]->data;
  for (int64_t b = 0; b < x.dim(0); ++b)
    for (int64_t t = 0; t < x.dim(1); ++t) {
      const auto position = static_cast<int64_t>(ctx.inputs[2]->data[at(b)]) + t;
      if (position >= cache.dim(1)) break;
      for (int64_t i = 0; i < width; ++i)
        ctx.outputs[0]->data[at((b * cache.dim(1) + position) * width + i)] =
            ctx.inputs[1]->data[at((b * x.dim(1) + t) * width + i)];
    }
}

/// The new rows are read and written; the rest of the cache stays where it is.
Cost cost_cache_update(const OpTypes& t) {
  return {0.0, 2.0 * static_cast<double>(t.inputs[1].bytes().count)};
}

Result<Types> infer_attention_cached(const OpTypes& t) {
  Operands in(t, 4, {"q", "k", "v", "start"});
  if (!in) return in.error();
  const Shape& q = t.inputs[0].shape;
  const Shape& k = t.inputs[1].shape;
  in.floating({}, {3}).require(q.rank() == 4, "q must be [B,T,heads,head_dim]", {0});
  in.require(k.rank() == 4 && k.dim(0) == q.dim(0) && k.dim(3) == q.dim(3),
             "k must be [B,S,kv_heads,head_dim] as q", {0, 1});
  if (!in) return in.error();
  in.require(q.dim(2) % k.dim(2) == 0,
             fmt::format("{} heads are no multiple of {} kv heads", q.dim(2), k.dim(2)));
  in.require(t.attrs.i64("window") >= 0, "window must be positive, or 0 for none");
  in.require(std::isfinite(t.attrs.f64("scale")), "scale must be finite");
  return in.shaped(2, k).shaped(3, Shape{q.dim(0)}).results({t.inputs[0]});
}

Cost cost_attention_cached(const OpTypes& t) {
  const Shape& q = t.inputs[0].shape;
  return cost_of(t,
                 4.0 * static_cast<double>(q.num_elements()) * static_cast<double>(t.inputs[1].shape.dim(1)));
}

/// One head of one token: softmax over the positions [first, last] of the cache.
struct CachedRow {
  const RefTensor &k, &v;
  int64_t row = 0, kv_head = 0, first = 0, last = 0;
  double scale = 1;

  [[nodiscard]] size_t at_position(int64_t j) const {
    const Shape& s = k.type.shape;
    return at(((row * s.dim(1) + j) * s.dim(2) + kv_head) * s.dim(3));
  }
  void attend(const double* q, double* out) const {
    const size_t width = at(k.type.shape.dim(3));
    std::vector<double> scores;
    for (int64_t j = first; j <= last; ++j) {
      double sum = 0;
      for (size_t d = 0; d < width; ++d) sum += q[d] * k.data[at_position(j) + d];
      scores.push_back(sum * scale);
    }
    const double highest = *std::max_element(scores.begin(), scores.end());
    double total = 0;
    for (double& s : scores) total += s = std::exp(s - highest);
    for (size_t d = 0; d < width; ++d) {
      double sum = 0;
      for (int64_t j = first; j <= last; ++j) sum += scores[at(j - first)] * v.data[at_position(j) + d];
      out[d] = sum / total;
    }
  }
};

void reference_attention_cached(RefContext& ctx) {
  const Shape& q = ctx.inputs[0]->type.shape;
  const Shape& cache = ctx.inputs[1]->type.shape;
  const int64_t window = ctx.op.attrs.i64("window");
  for (int64_t b = 0; b < q.dim(0); ++b)
    for (int64_t t = 0; t < q.dim(1); ++t) {
      const int64_t position = static_cast<int64_t>(ctx.inputs[3]->data[at(b)]) + t;
      const int64_t last = std::min(position, cache.dim(1) - 1);
      const int64_t first = window > 0 ? std::clamp<int64_t>(position - window + 1, 0, last) : 0;
      for (int64_t h = 0; h < q.dim(2); ++h) {
        const CachedRow row{*ctx.inputs[1], *ctx.inputs[2],           b, h / (q.dim(2) / cache.dim(2)), first,
                            last,           ctx.op.attrs.f64("scale")};
        const size_t place = at(((b * q.dim(1) + t) * q.dim(2) + h) * q.dim(3));
        row.attend(&ctx.inputs[0]->data[place], &ctx.outputs[0]->data[place]);
      }
    }
}

}  // namespace

OpGroup kv_cache_ops() {
  static const std::vector<OpDef> kOps = {
      {.name = "cache_update",
       .summary = "writes new keys or values into the cache",
       .work = {WorkKind::kCopy},
       .min_inputs = 3,
       .max_inputs = 3,
       .infer = infer_cache_update,
       .cost = cost_cache_update,
       .reference = reference_cache_update,
       .recompute = ir::RecomputeClass::kNever,
       .consumes = {{0, 0}}},
      {.name = "attention_cached",
       .summary = "attention of new tokens over the cache",
       .work = {WorkKind::kAttention},
       .min_inputs = 4,
       .max_inputs = 4,
       .attrs = {float_attr("scale"), int_attr("window")},
       .infer = infer_attention_cached,
       .cost = cost_attention_cached,
       .reference = reference_attention_cached},
  };
  return kOps;
}

ValueId cache_update(Builder& b, ValueId cache, ValueId x, ValueId start) {
  return b.op("cache_update", {cache, x, start}, {});
}

ValueId attention_cached(Builder& b, ValueId q, ValueId k, ValueId v, ValueId start,
                         const AttentionOptions& options) {
  return b.op("attention_cached", {q, k, v, start}, {{"scale", options.scale}, {"window", options.window}});
}

}  // namespace plimsoll::ops
