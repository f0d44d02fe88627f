// Ops of layers: products, look-ups, attention, dropout.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "library/front_ops.h"
#include "library/invalid.h"
#include "ops/attention.h"
#include "ops/elementwise.h"
#include "ops/embedding.h"
#include "ops/linear.h"

namespace plimsoll::library {
namespace {

using ir::ValueId;

/// x of one axis as a row of one.
ValueId as_rows(const OpCall& call, ValueId x) {
  const ir::Shape& shape = call.type(x).shape;
  return shape.rank() > 1 ? x : call.reshape(x, {1, shape.dim(0)});
}

/// A row of one as x of one axis was.
ValueId as_before(const OpCall& call, ValueId y, ValueId x) {
  const ir::Shape& shape = call.type(y).shape;
  return call.type(x).shape.rank() > 1 ? y : call.reshape(y, {shape.dim(-1)});
}

Result<Values> build_linear(OpCall& call) {
  const ValueId x = call.inputs[0];
  const ValueId bias = call.has(2) ? call.inputs[2] : ValueId{};
  const ValueId y = ops::linear(call.b, as_rows(call, x), call.inputs[1], bias);
  return Values{as_before(call, y, x)};
}

Result<Values> build_embedding(OpCall& call) {
  const ir::TensorType table = call.type(size_t{0}), ids = call.type(1);
  if (table.shape.rank() != 2 || ids.dtype != ir::DType::kI32)
    return invalid(fmt::format("embedding: weight {} and ids {}, expected [rows, dim] and integers",
                               ir::to_string(table), ir::to_string(ids)));
  PLIMSOLL_TRY(call.trace.note_range(call.inputs[1], table.shape.dim(0), /*ignores=*/false, "embedding"));
  std::optional<int64_t> padding;
  if (call.attrs.has("padding_idx")) {
    PLIMSOLL_ASSIGN(padding, axis_of(call, "padding_idx", call.attrs.integer("padding_idx"),
                                     static_cast<int>(table.shape.dim(0))));
  }
  // Rows are found by sequences: ids of one axis are sequences of one.
  const ValueId rows =
      ids.shape.rank() == 1 ? call.reshape(call.inputs[1], {ids.shape.dim(0), 1}) : call.inputs[1];
  const ValueId y = ops::embedding(call.b, call.inputs[0], rows, padding);
  std::vector<int64_t> shape = extents(ids.shape);
  shape.push_back(table.shape.dim(1));
  return Values{call.reshape(y, std::move(shape))};
}

Result<double> probability(const OpCall& call, std::string_view name) {
  const double p = call.attrs.number(name);
  if (!(p >= 0 && p < 1)) return call.attrs.wrong(name, "a probability below 1");
  return p;
}

Result<Values> build_dropout(OpCall& call) {
  PLIMSOLL_ASSIGN(const double p, probability(call, "p"));
  if (p == 0) return Values{call.inputs[0]};
  const ValueId random = call.trace.random();
  const int64_t key = call.trace.next_random_key();
  return Values{call.elementwise(
      {call.inputs[0]}, [&](const Values& v) { return ops::dropout(call.b, v[0], random, p, key); })};
}

Result<Values> build_attention(OpCall& call) {
  for (size_t i = 0; i < 3; ++i)
    if (call.type(i).shape.rank() != 4)
      return invalid(
          fmt::format("attention: operand {} is {}, expected 4 axes", i, ir::to_string(call.type(i))),
          "[batch, tokens, heads, dim], or [batch, heads, tokens, dim] with layout bhtd");
  PLIMSOLL_ASSIGN(const double p, probability(call, "dropout"));
  const bool heads_first = call.attrs.word("layout", {"bthd", "bhtd"}) == "bhtd";
  const auto turned = [&](ValueId v) { return heads_first ? call.permute(v, {0, 2, 1, 3}) : v; };
  ops::AttentionOptions options{
      .causal = call.attrs.flag("causal"), .window = call.attrs.integer("window"), .dropout = p};
  options.scale = call.attrs.has("scale")
                      ? call.attrs.number("scale")
                      : 1.0 / std::sqrt(static_cast<double>(call.type(size_t{0}).shape.dim(3)));
  ValueId random;
  if (p > 0) {
    random = call.trace.random();
    options.key = call.trace.next_random_key();
  }
  const ops::Attention result = ops::attention(call.b, turned(call.inputs[0]), turned(call.inputs[1]),
                                               turned(call.inputs[2]), {}, options, random);
  return Values{turned(result.out)};
}

/// x @ w with a parameter w [in, out] is a linear map; its kernels sum over rows as those of layers do.
bool is_map(const OpCall& call) {
  return call.type(1).shape.rank() == 2 && call.trace.find_parameter(call.inputs[1]) != nullptr &&
         !call.attrs.flag("transpose_a") && call.type(size_t{0}).shape.rank() >= 2;
}

Result<Values> build_matmul(OpCall& call) {
  const ir::Shape a = call.type(size_t{0}).shape, c = call.type(1).shape;
  const bool transpose_a = call.attrs.flag("transpose_a"), transpose_b = call.attrs.flag("transpose_b");
  if (is_map(call))
    return Values{ops::linear(call.b, call.inputs[0], call.inputs[1], {}, /*transposed=*/!transpose_b)};
  const ValueId left = a.rank() == 1 ? call.reshape(call.inputs[0], {1, a.dim(0)}) : call.inputs[0];
  const ValueId right = c.rank() == 1 ? call.reshape(call.inputs[1], {c.dim(0), 1}) : call.inputs[1];
  ir::Attrs attrs;
  if (transpose_a && a.rank() > 1) attrs.set("transpose_a", true);
  if (transpose_b && c.rank() > 1) attrs.set("transpose_b", true);
  const ValueId y = call.b.op("batched_matmul", {left, right}, std::move(attrs));
  std::vector<int64_t> shape = extents(call.type(y).shape);
  if (c.rank() == 1) shape.pop_back();
  if (a.rank() == 1) shape.erase(shape.end() - (c.rank() == 1 ? 1 : 2));
  if (shape.empty()) shape = {1};
  return Values{call.reshape(y, std::move(shape))};
}

Result<Values> softmax_over(OpCall& call, bool log) {
  const int rank = call.type(size_t{0}).shape.rank();
  PLIMSOLL_ASSIGN(const int64_t axis, axis_of(call, "axis", call.attrs.integer("axis"), rank));
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < rank; ++i) axes.push_back(i);
  std::swap(axes[static_cast<size_t>(axis)], axes.back());  // its own inverse
  ir::Attrs attrs;
  if (log) attrs.set("log", true);
  const ValueId y = call.b.op("softmax", {call.permute(call.inputs[0], axes)}, std::move(attrs));
  return Values{call.permute(y, axes)};
}

Result<Values> build_softmax(OpCall& call) { return softmax_over(call, /*log=*/false); }
Result<Values> build_log_softmax(OpCall& call) { return softmax_over(call, /*log=*/true); }

}  // namespace

FrontGroup front_layers() {
  static const std::vector<FrontOp> kOps = {
      {"linear", "x times weight [out, in], plus bias", {"x", "weight", "bias?"}, {}, build_linear},
      {"embedding",
       "rows of weight [rows, dim]",
       {"weight", "ids"},
       {{"padding_idx", "null"}},
       build_embedding},
      {"dropout", "in training zero with probability p, else x / (1 - p)", {"x"}, {{"p"}}, build_dropout},
      {"attention",
       "scaled dot-product attention; key and value heads may be fewer",
       {"q", "k", "v"},
       {{"causal", "false"}, {"scale", "null"}, {"dropout", "0"}, {"layout", R"("bthd")"}, {"window", "0"}},
       build_attention},
      {"matmul",
       "matrix product; leading axes broadcast",
       {"a", "b"},
       {{"transpose_a", "false"}, {"transpose_b", "false"}},
       build_matmul},
      {"softmax", "exp(x) over its sum along an axis", {"x"}, {{"axis", "-1"}}, build_softmax},
      {"log_softmax", "the logarithm of softmax", {"x"}, {{"axis", "-1"}}, build_log_softmax},
  };
  return kOps;
}

}  // namespace plimsoll::library
