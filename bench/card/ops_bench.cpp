// Ops at the shapes of a micro-batch of Llama-2-7B and of SmolLM-135M: bytes or operations a second, which
// the page holds against what the card can do.
#include <benchmark/benchmark.h>

#include <string>

#include "bound.h"

namespace plimsoll {
namespace {

using bench::Bound;
using ir::DType;

/// A layer, and the tokens of a micro-batch.
struct Layer {
  int64_t batch, tokens, width, heads, kv_heads, head_dim, inner, vocabulary;
};
constexpr Layer kLlama7b{2, 1024, 4096, 32, 32, 128, 11008, 32000};
constexpr Layer kSmol135m{4, 512, 576, 9, 3, 64, 1536, 49152};

using bench::measure;

/// As it is, or with small extents; heads and what is in one stay as kernels want them.
Layer shown(Layer l) {
  using bench::extent;
  if (!bench::options().small) return l;
  return {1, extent(l.tokens), extent(l.width), 2, 1, l.head_dim, extent(l.inner), extent(l.vocabulary)};
}

void add_rms_norm(benchmark::State& state, const Layer& full, DType stream) {
  const Layer l = shown(full);
  Bound b;
  b.in = {b.tensor(DType::kBf16, {l.batch, l.tokens, l.width}),
          b.tensor(stream, {l.batch, l.tokens, l.width}), b.tensor(DType::kF32, {l.width})};
  b.out = {b.tensor(stream, {l.batch, l.tokens, l.width}),
           b.tensor(DType::kBf16, {l.batch, l.tokens, l.width}), b.tensor(DType::kF32, {l.batch, l.tokens})};
  b.op.attrs.set("eps", 1e-5);
  b.finish("add_rms_norm");
  measure(state, b);
}

void rms_norm_grad_add(benchmark::State& state, const Layer& full, DType stream) {
  const Layer l = shown(full);
  Bound b;
  const ir::Shape rows{l.batch, l.tokens, l.width};
  b.in = {b.tensor(DType::kBf16, rows), b.tensor(stream, rows), b.tensor(DType::kF32, {l.width}),
          b.tensor(DType::kF32, {l.batch, l.tokens}), b.tensor(stream, rows)};
  b.out = {b.tensor(stream, rows), b.tensor(DType::kF32, {l.width})};
  b.finish("rms_norm_grad_add");
  measure(state, b);
}

void swiglu(benchmark::State& state, const Layer& full, bool backward) {
  const Layer l = shown(full);
  Bound b;
  const ir::Shape rows{l.batch, l.tokens, l.inner}, pairs{l.batch, l.tokens, 2 * l.inner};
  if (backward) {
    b.in = {b.tensor(DType::kBf16, rows), b.tensor(DType::kBf16, pairs)};
    b.out = {b.tensor(DType::kBf16, pairs)};
  } else {
    b.in = {b.tensor(DType::kBf16, pairs)};
    b.out = {b.tensor(DType::kBf16, rows)};
  }
  b.finish(backward ? "swiglu_grad" : "swiglu");
  measure(state, b);
}

ir::Shape packed_rows(const Layer& l) { return {l.batch, l.tokens, (l.heads + 2 * l.kv_heads) * l.head_dim}; }

void rope(benchmark::State& state, const Layer& full) {
  const Layer l = shown(full);
  Bound b;
  const auto qkv = b.tensor(DType::kBf16, packed_rows(l));
  b.in = {qkv, b.tensor(DType::kF32, {1, l.tokens, l.head_dim})};
  b.out = {qkv};
  b.op.attrs.set("head_dim", l.head_dim);
  b.op.attrs.set("heads", l.heads + l.kv_heads);
  b.op.attrs.set("inverse", false);
  b.finish("rope_packed");
  measure(state, b);
}

void attention(benchmark::State& state, const Layer& full, bool backward) {
  const Layer l = shown(full);
  Bound b;
  const int64_t tokens = bench::extent(state.range(0)),
                batch = l.batch * l.tokens / tokens > 0 ? l.batch * l.tokens / tokens : 1;
  const Layer at{batch, tokens, l.width, l.heads, l.kv_heads, l.head_dim, l.inner, l.vocabulary};
  const ir::Shape out{batch, tokens, l.heads * l.head_dim};
  const auto qkv = b.tensor(DType::kBf16, packed_rows(at)), o = b.tensor(DType::kBf16, out);
  const auto lse = b.tensor(DType::kF32, {batch, l.heads, tokens});
  if (backward) {
    b.in = {qkv, o, lse, b.tensor(DType::kBf16, out)};
    b.out = {b.tensor(DType::kBf16, packed_rows(at))};
  } else {
    b.in = {qkv};
    b.out = {o, lse};
  }
  b.op.attrs.set("heads", l.heads);
  b.op.attrs.set("kv_heads", l.kv_heads);
  b.op.attrs.set("head_dim", l.head_dim);
  b.op.attrs.set("causal", true);
  b.op.attrs.set("window", int64_t{0});
  b.op.attrs.set("scale", 0.088);
  b.finish(backward ? "attention_packed_grad" : "attention_packed");
  const auto pairs = static_cast<double>(batch * l.heads * tokens * tokens) / 2;  // the causal half
  measure(state, b, (backward ? 10.0 : 4.0) * pairs * static_cast<double>(l.head_dim));
}

void cross_entropy(benchmark::State& state, const Layer& full) {
  const Layer l = shown(full);
  Bound b;
  b.in = {b.tensor(DType::kF32, {1, l.tokens, l.vocabulary}), b.zeros(DType::kI32, {1, l.tokens}),
          b.tensor(DType::kF32, {1})};
  b.out = {b.tensor(DType::kF32, {1}), b.tensor(DType::kF32, {1, l.tokens})};
  b.finish("cross_entropy");
  measure(state, b);
}

void cast(benchmark::State& state, const Layer& full) {
  const Layer l = shown(full);
  Bound b;
  b.in = {b.tensor(DType::kF32, {l.batch, l.tokens, l.width})};
  b.out = {b.tensor(DType::kBf16, {l.batch, l.tokens, l.width})};
  b.op.attrs.set("out", std::string("bf16"));
  b.finish("cast");
  measure(state, b);
}

void adamw(benchmark::State& state, const Layer& full) {
  const Layer l = shown(full);
  Bound b;
  const ir::Shape weight{l.inner, l.width};
  const auto p = b.tensor(DType::kF32, weight), m = b.tensor(DType::kF32, weight),
             v = b.tensor(DType::kF32, weight);
  b.in = {p, b.tensor(DType::kF32, weight), m, v, b.tensor(DType::kF32, {1}), b.tensor(DType::kF32, {1, 8})};
  b.out = {p, m, v};
  b.op.attrs.set("group", int64_t{0});
  b.finish("adamw");
  measure(state, b);
}

#define PLIMSOLL_BOTH(name, label, ...)                                             \
  BENCHMARK_CAPTURE(name, llama_7b##label, kLlama7b, ##__VA_ARGS__)->UseRealTime(); \
  BENCHMARK_CAPTURE(name, smol_135m##label, kSmol135m, ##__VA_ARGS__)->UseRealTime()
#define PLIMSOLL_ATTENTION(label, backward)                                                               \
  BENCHMARK_CAPTURE(attention, llama_7b##label, kLlama7b, backward)->UseRealTime()->Arg(1024)->Arg(4096); \
  BENCHMARK_CAPTURE(attention, smol_135m##label, kSmol135m, backward)->UseRealTime()->Arg(512)->Arg(4096)

PLIMSOLL_BOTH(add_rms_norm, , DType::kBf16);
PLIMSOLL_BOTH(add_rms_norm, _f32_stream, DType::kF32);
PLIMSOLL_BOTH(rms_norm_grad_add, , DType::kBf16);
PLIMSOLL_BOTH(rms_norm_grad_add, _f32_stream, DType::kF32);
PLIMSOLL_BOTH(swiglu, , false);
PLIMSOLL_BOTH(swiglu, _grad, true);
PLIMSOLL_BOTH(rope, );
PLIMSOLL_BOTH(cross_entropy, );
PLIMSOLL_BOTH(cast, );
PLIMSOLL_BOTH(adamw, );
PLIMSOLL_ATTENTION(, false);
PLIMSOLL_ATTENTION(_grad, true);

}  // namespace
}  // namespace plimsoll
