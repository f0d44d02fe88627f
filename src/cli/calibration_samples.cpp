#include "cli/calibration_samples.h"

#include <array>

namespace plimsoll::cli {
namespace {

using ir::DType;
using ir::Shape;
using ir::TensorType;

/// Rows by weights of the largest product: a second of a slow core's.
constexpr int64_t kMostProduct = int64_t{5} << 30;

constexpr DType kTypes[] = {DType::kF32, DType::kBf16, DType::kF16};

TensorType single(Shape shape) { return {DType::kF32, shape}; }

/// What autocast gives a product of that type: activations are stored in it, weights are not.
ir::Attrs with_precision(ir::Attrs attrs, DType type) {
  if (type != DType::kF32) attrs.set("precision", std::string(ir::name(type)));
  return attrs;
}

ir::Attrs with_out(ir::Attrs attrs, DType type) {
  attrs.set("out", std::string(ir::name(type)));
  return attrs;
}

/// Forward, both derivatives: small, narrow as adapters are, wide, deep.
void add_products(DType type, std::vector<OpSample>& samples) {
  constexpr std::array<std::array<int64_t, 2>, 8> kWeights = {
      {{64, 64}, {256, 256}, {16, 1024}, {1024, 16}, {1536, 576}, {576, 1536}, {4096, 512}, {2048, 2048}}};
  for (const int64_t rows : {128, 512, 2048})
    for (const auto& [out, in] : kWeights) {
      if (rows * out * in > kMostProduct) continue;
      const TensorType x{type, {1, rows, in}}, y{type, {1, rows, out}}, w = single({out, in});
      samples.push_back({"linear", {x, w}, with_precision({{"transposed", false}}, type)});
      samples.push_back(
          {"linear", {y, w}, with_out(with_precision({{"transposed", true}}, type), DType::kF32)});
      samples.push_back(
          {"linear_dw", {x, y}, with_out(with_precision({{"transposed", false}}, type), DType::kF32)});
    }
}

void add_attention(DType type, std::vector<OpSample>& samples) {
  constexpr std::array<std::array<int64_t, 2>, 7> kShapes = {
      {{128, 64}, {256, 32}, {512, 32}, {512, 48}, {512, 64}, {512, 128}, {2048, 64}}};
  constexpr int64_t kHeads = 6, kKvHeads = 3;
  for (const auto& [tokens, head_dim] : kShapes) {
    const ir::Attrs how{{"heads", kHeads}, {"kv_heads", kKvHeads}, {"head_dim", head_dim},
                        {"scale", 0.125},  {"causal", true},       {"window", int64_t{0}}};
    const TensorType qkv{type, {1, tokens, (kHeads + 2 * kKvHeads) * head_dim}};
    const TensorType x{type, {1, tokens, kHeads * head_dim}};
    samples.push_back({"attention_packed", {qkv}, how});
    samples.push_back({"attention_packed_grad", {qkv, x, single({1, kHeads, tokens}), x}, how});
  }
}

void add_loss(DType type, std::vector<OpSample>& samples) {
  constexpr std::array<std::array<int64_t, 3>, 5> kShapes = {
      {{128, 1024, 128}, {1024, 2048, 128}, {1024, 4096, 256}, {128, 16384, 512}, {1024, 8192, 512}}};
  for (const auto& [rows, classes, hidden] : kShapes)
    samples.push_back(
        {"head_loss",
         {{type, {1, rows, hidden}}, single({classes, hidden}), {DType::kI32, {1, rows}}, single({1})},
         with_precision({{"grad", true}, {"transposed", false}, {"chunk_tokens", int64_t{256}}}, type)});
}

/// Ops that move more than they compute, in the caches and beyond.
void add_sweeps(DType type, std::vector<OpSample>& samples) {
  const auto out = [&](ir::Attrs attrs) { return type == DType::kF32 ? attrs : with_out(attrs, type); };
  const ir::Attrs eps{{"eps", 1e-5}};
  constexpr std::array<std::array<int64_t, 2>, 3> kShapes = {{{128, 256}, {1024, 512}, {4096, 768}}};
  for (const auto& [rows, hidden] : kShapes) {
    const Shape shape{1, rows, hidden}, wide{1, rows, 3 * hidden};
    const TensorType x = single(shape), y{type, shape}, w = single({hidden}), row = single({1, rows});
    const TensorType up{type, {1, rows, 6 * hidden}}, inner{type, wide};
    samples.push_back({"swiglu", {up}, {}});
    samples.push_back({"swiglu_grad", {inner, up}, {}});
    samples.push_back({"bias_gelu", {inner, single({3 * hidden})}, {{"approximate", std::string("none")}}});
    samples.push_back(
        {"bias_gelu_grad", {inner, inner, single({3 * hidden})}, {{"approximate", std::string("none")}}});
    samples.push_back({"rms_norm", {x, w}, out(eps)});
    samples.push_back({"add_rms_norm", {x, y, w}, out(eps)});
    samples.push_back({"layer_norm", {x, w, w}, out(eps)});
    samples.push_back({"add_layer_norm", {x, y, w, w}, out(eps)});
    samples.push_back({"add", {x, y}, {}});
    samples.push_back({"rope_packed",
                       {{type, wide}, single({1, rows, 64})},
                       {{"heads", 2 * hidden / 64}, {"head_dim", int64_t{64}}}});
    if (type != DType::kF32) continue;
    samples.push_back({"rms_norm_grad", {x, x, w, row}, {}});
    samples.push_back({"rms_norm_grad_add", {x, x, w, row, x}, {}});
    samples.push_back({"embedding", {single({32 * hidden, hidden}), {DType::kI32, {1, rows}}}, {}});
    samples.push_back({"embedding_grad", {x, {DType::kI32, {1, rows}}}, {{"rows", 32 * hidden}}});
  }
}

/// Norm and update of many tensors at once.
void add_updates(std::vector<OpSample>& samples) {
  for (const int64_t size : {int64_t{1} << 14, int64_t{1} << 18, int64_t{1} << 20}) {
    OpSample squares{"sum_squares_sweep", {}, {}};
    OpSample update{"adamw_sweep", {single({1}), single({2, 8})}, {}};
    std::vector<int64_t> groups;
    for (int i = 0; i < 8; ++i) {
      squares.inputs.push_back(single({size}));
      for (int operand = 0; operand < 4; ++operand) update.inputs.push_back(single({size}));
      groups.push_back(0);
    }
    update.attrs.set("group", groups);
    samples.push_back(std::move(squares));
    samples.push_back(std::move(update));
  }
}

}  // namespace

std::vector<SampleGroup> calibration_samples() {
  std::vector<SampleGroup> groups;
  constexpr const char* kNames[] = {"fp32", "bf16", "fp16"};
  for (size_t i = 0; i < std::size(kTypes); ++i) {
    groups.push_back({std::string("matrix products in ") + kNames[i], {}});
    add_products(kTypes[i], groups.back().samples);
  }
  groups.push_back({"attention", {}});
  for (const DType type : kTypes) add_attention(type, groups.back().samples);
  groups.push_back({"loss head", {}});
  for (const DType type : kTypes) add_loss(type, groups.back().samples);
  groups.push_back({"sweeps", {}});
  for (const DType type : {DType::kF32, DType::kBf16}) add_sweeps(type, groups.back().samples);
  groups.push_back({"updates", {}});
  add_updates(groups.back().samples);
  return groups;
}

}  // namespace plimsoll::cli
