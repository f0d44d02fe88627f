#include "measuring/op_samples.h"

#include <array>
#include <initializer_list>
#include <span>

#include "ops/tensor_rules.h"

namespace plimsoll::measuring {
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

/// Rows, and the weight's extents.
using Pair = std::array<int64_t, 2>;
using Triple = std::array<int64_t, 3>;

/// Forward, both derivatives.
void add_product(DType type, int64_t rows, const Pair& weight, std::vector<OpSample>& samples) {
  const auto [out, in] = weight;
  const TensorType x{type, {1, rows, in}}, y{type, {1, rows, out}}, w = single({out, in});
  samples.push_back({"linear", {x, w}, with_precision({{"transposed", false}}, type)});
  samples.push_back({"linear", {y, w}, with_out(with_precision({{"transposed", true}}, type), DType::kF32)});
  samples.push_back(
      {"linear_dw", {x, y}, with_out(with_precision({{"transposed", false}}, type), DType::kF32)});
}

/// The same of a card, whose weights are in the product's type. `precision`: "tf32", or the type's name.
void add_card_product(DType type, const std::string& precision, int64_t rows, const Pair& weight,
                      std::vector<OpSample>& samples) {
  const auto [out, in] = weight;
  const TensorType x{type, {1, rows, in}}, y{type, {1, rows, out}}, w{type, {out, in}};
  const auto how = [&](bool transposed) {
    ir::Attrs attrs{{"transposed", transposed}};
    if (precision != ir::name(DType::kF32)) attrs.set("precision", precision);
    return attrs;
  };
  samples.push_back({"linear", {x, w}, how(false)});
  samples.push_back({"linear", {y, w}, how(true)});
  samples.push_back({"linear_dw", {x, y}, with_out(how(false), DType::kF32)});
}

/// Small, narrow as adapters are, wide, deep.
void add_products(DType type, std::vector<OpSample>& samples) {
  constexpr std::array<Pair, 8> kWeights = {
      {{64, 64}, {256, 256}, {16, 1024}, {1024, 16}, {1536, 576}, {576, 1536}, {4096, 512}, {2048, 2048}}};
  for (const int64_t rows : {32, 128, 512, 2048})  // short sequences one at a time are all small ones
    for (const Pair& weight : kWeights)
      if (rows * weight[0] * weight[1] <= kMostProduct) add_product(type, rows, weight, samples);
}

/// Images, their extent, channels, results, the kernel's extent and stride.
using ConvShape = std::array<int64_t, 6>;
constexpr ConvShape kConvShapes[] = {{1, 112, 3, 64, 7, 2},    {1, 56, 64, 64, 3, 1},
                                     {2, 28, 128, 128, 3, 1},  {4, 14, 256, 256, 3, 1},
                                     {4, 14, 256, 1024, 1, 1}, {2, 7, 512, 512, 3, 1}};

/// Forward, both derivatives.
void add_convolutions(DType type, std::vector<OpSample>& samples) {
  for (const auto& [images, extent, channels, results, kernel, step] : kConvShapes) {
    const int64_t stride = step;  // a lambda takes no structured binding
    const int64_t padding = kernel / 2, out = (extent + 2 * padding - kernel) / stride + 1;
    const TensorType x{type, {images, extent, extent, channels}}, y{type, {images, out, out, results}};
    const TensorType w = single({results, kernel, kernel, channels});
    const auto twice = [](int64_t value) { return std::vector<int64_t>{value, value}; };
    const auto with = [&](std::string_view name, int64_t value) {
      ir::Attrs how = with_precision({{"stride", twice(stride)},
                                      {"padding", twice(padding)},
                                      {"dilation", twice(1)},
                                      {"groups", int64_t{1}}},
                                     type);
      if (!name.empty()) how.set(name, twice(value));
      return how;
    };
    samples.push_back({"conv2d", {x, w}, with("", 0)});
    samples.push_back({"conv2d_input_grad", {y, w}, with("size", extent)});
    samples.push_back({"conv2d_weight_grad", {x, y}, with_out(with("kernel", kernel), DType::kF32)});
  }
}

/// Tokens, the head's size; how many heads ask, and are asked.
constexpr Pair kCardAttentionShapes[] = {{512, 64}, {2048, 64}, {2048, 128}, {8192, 128}};
struct Heads {
  int64_t asking = 6, asked = 3;
};

constexpr Pair kAttentionShapes[] = {{32, 64},  {128, 64}, {256, 32},  {512, 32},
                                     {512, 48}, {512, 64}, {512, 128}, {2048, 64}};

/// `precision`: "tf32", of f32.
void add_attention(DType type, std::span<const Pair> shapes, std::vector<OpSample>& samples, Heads heads = {},
                   const std::string& precision = "") {
  for (const auto& [tokens, head_dim] : shapes) {
    ir::Attrs how{{"heads", heads.asking}, {"kv_heads", heads.asked}, {"head_dim", head_dim},
                  {"scale", 0.125},        {"causal", true},          {"window", int64_t{0}}};
    if (!precision.empty()) how.set("precision", precision);
    const TensorType qkv{type, {1, tokens, (heads.asking + 2 * heads.asked) * head_dim}};
    const TensorType x{type, {1, tokens, heads.asking * head_dim}};
    samples.push_back({"attention_packed", {qkv}, how});
    samples.push_back({"attention_packed_grad", {qkv, x, single({1, heads.asking, tokens}), x}, how});
  }
}

/// Rows, classes, width, and rows at a time: by fewer of them operands that are rounded are packed more
/// often.
using LossShape = std::array<int64_t, 4>;
constexpr LossShape kCardLossShapes[] = {
    {2048, 49152, 576, 2048}, {2048, 32000, 4096, 1024}, {8192, 151936, 2048, 2048}};
constexpr LossShape kLossShapes[] = {{32, 8192, 512, 256},   {128, 1024, 128, 256},  {1024, 2048, 128, 256},
                                     {1024, 4096, 256, 256}, {128, 16384, 512, 256}, {1024, 8192, 512, 1024}};

void add_loss(DType type, std::span<const LossShape> shapes, std::vector<OpSample>& samples) {
  for (const auto& [rows, classes, hidden, chunk] : shapes)
    samples.push_back(
        {"head_loss",
         {{type, {1, rows, hidden}}, single({classes, hidden}), {DType::kI32, {1, rows}}, single({1})},
         with_precision({{"grad", true}, {"transposed", false}, {"chunk_tokens", chunk}}, type)});
}

/// Ops that move more than they compute, in the caches and beyond.
constexpr Pair kMemoryBoundShapes[] = {{32, 512}, {128, 256}, {1024, 512}, {4096, 768}};

/// `with_tables`: look-ups too, whose tables are large and read here and there.
void add_memory_bound(DType type, std::span<const Pair> shapes, bool with_tables,
                      std::vector<OpSample>& samples) {
  const auto out = [&](ir::Attrs attrs) { return type == DType::kF32 ? attrs : with_out(attrs, type); };
  const ir::Attrs eps{{"eps", 1e-5}};
  for (const auto& [rows, hidden] : shapes) {
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
    if (!with_tables) continue;
    samples.push_back({"embedding", {single({32 * hidden, hidden}), {DType::kI32, {1, rows}}}, {}});
    samples.push_back({"embedding_grad", {x, {DType::kI32, {1, rows}}}, {{"rows", 32 * hidden}}});
  }
}

/// What stands between convolutions, of images of that extent and so many channels.
void add_image_ops(DType type, std::initializer_list<Pair> images, std::vector<OpSample>& samples) {
  ir::Attrs batch{{"eps", 1e-5}, {"batch", true}};
  ir::Attrs relu = batch;
  relu.set("relu", true);
  const std::vector<int64_t> two{2, 2}, three{3, 3}, one{1, 1};
  const ir::Attrs pool{{"kernel", three}, {"stride", two}, {"padding", one}};
  for (const auto& [extent, channels] : images) {
    const TensorType x{type, {4, extent, extent, channels}}, row = single({channels});
    samples.push_back({"batch_statistics", {x}, {}});
    samples.push_back({"batch_norm", {x, row, row, row, row}, relu});
    samples.push_back({"batch_norm", {x, row, row, row, row, x}, relu});
    samples.push_back({"batch_norm_grad", {x, x, row, row, row, row}, relu});
    samples.push_back({"batch_norm_add_grad", {x, x, row, row, row, x}, batch});
    samples.push_back({"max_pool2d", {x}, pool});
  }
}

/// Norm and update of many tensors at once.
void add_updates(std::initializer_list<int64_t> sizes, std::vector<OpSample>& samples) {
  for (const int64_t size : sizes) {
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

/// With moments of 8 bits: an op a tensor, bound by what it computes.
void add_8bit_updates(std::initializer_list<int64_t> sizes, std::vector<OpSample>& samples) {
  for (const int64_t size : sizes) {
    const Shape shape{size / ops::kCodeBlock, ops::kCodeBlock};
    const TensorType codes{DType::kU8, shape}, scales = single({shape.dim(0)});
    samples.push_back(
        {"adamw_8bit",
         {single(shape), single(shape), codes, codes, scales, scales, single({1}), single({2, 8})},
         {{"group", int64_t{0}}, {"parts", std::vector<int64_t>{shape.dim(0)}}}});
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
  groups.push_back({"convolutions", {}});
  for (const DType type : {DType::kF32, DType::kBf16}) add_convolutions(type, groups.back().samples);
  groups.push_back({"attention", {}});
  for (const DType type : kTypes) add_attention(type, kAttentionShapes, groups.back().samples);
  groups.push_back({"loss head", {}});
  for (const DType type : kTypes) add_loss(type, kLossShapes, groups.back().samples);
  groups.push_back({"memory-bound ops", {}});
  for (const DType type : {DType::kF32, DType::kBf16})
    add_memory_bound(type, kMemoryBoundShapes, true, groups.back().samples);
  for (const DType type : {DType::kF32, DType::kBf16})
    add_image_ops(type, {{56, 64}, {14, 512}}, groups.back().samples);
  groups.push_back({"updates", {}});
  add_updates({1 << 14, 1 << 18, 1 << 20}, groups.back().samples);
  add_8bit_updates({1 << 14, 1 << 18, 1 << 20}, groups.back().samples);
  return groups;
}

std::vector<SampleGroup> card_samples() {
  constexpr Pair kWeights[] = {{576, 576},    {1536, 576},   {2048, 2048}, {4096, 4096},
                               {11008, 4096}, {4096, 11008}, {16, 4096},   {4096, 16}};
  constexpr Pair kMemoryBound[] = {{512, 576}, {2048, 2048}, {8192, 4096}};
  const std::pair<DType, std::string> precisions[] = {
      {DType::kF32, "f32"}, {DType::kF32, "tf32"}, {DType::kBf16, "bf16"}, {DType::kF16, "f16"}};
  SampleGroup products{"matrix products", {}}, attention{"attention", {}}, loss{"loss head", {}},
      memory_bound{"memory-bound ops", {}}, updates{"updates", {}};
  for (const auto& [type, precision] : precisions)
    for (const int64_t rows : {512, 2048, 8192})
      for (const Pair& weight : kWeights) add_card_product(type, precision, rows, weight, products.samples);
  constexpr Heads kCardHeads{.asking = 32, .asked = 8};
  add_attention(DType::kF32, kCardAttentionShapes, attention.samples, kCardHeads, "tf32");
  for (const DType type : kTypes) {
    add_attention(type, kCardAttentionShapes, attention.samples, kCardHeads);
    add_loss(type, kCardLossShapes, loss.samples);
    if (type != DType::kF16) add_memory_bound(type, kMemoryBound, true, memory_bound.samples);
  }
  add_updates({1 << 18, 1 << 22, 1 << 24}, updates.samples);
  add_8bit_updates({1 << 18, 1 << 22, 1 << 24}, updates.samples);
  return {products, attention, loss, memory_bound, updates};
}

std::vector<SampleGroup> first_samples() {
  constexpr Pair kAttention[] = {{512, 64}}, kMemoryBound[] = {{512, 512}};
  constexpr LossShape kLoss[] = {{256, 2048, 256, 256}};
  SampleGroup products{"products", {}}, attention{"attention", {}}, loss{"loss head", {}},
      memory_bound{"memory-bound ops", {}}, small{"small products", {}}, large{"large products", {}},
      updates{"updates", {}};
  for (const DType type : kTypes) {
    add_product(type, 256, {1024, 512}, products.samples);
    add_product(type, 2048, {1024, 512}, large.samples);
    add_product(type, 128, {256, 256}, small.samples);
    add_product(type, 256, {16, 512}, small.samples);
    add_product(type, 32, {512, 512}, small.samples);
    add_attention(type, kAttention, attention.samples);
    add_loss(type, kLoss, loss.samples);
    if (type != DType::kF16) add_memory_bound(type, kMemoryBound, false, memory_bound.samples);
  }
  add_updates({1 << 16}, updates.samples);
  add_8bit_updates({1 << 16}, updates.samples);
  return {products, attention, loss, updates, small, memory_bound, large};
}

}  // namespace plimsoll::measuring
