#include "passes/recompute/recompute_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "ops/op_list.h"
#include "ops/ops.h"
#include "passes/pipeline.h"

namespace plimsoll::passes {
namespace {

using Kind = passes::RecomputePolicy::Kind;
using ir::Graph;
using ir::OpId;
using ir::Shape;
using ir::ValueId;
using testing::ElementsAre;
using testing::HasSubstr;

/// A decoder of four blocks as models build it, differentiated, with the gradients assigned to states.
class BlockNet {
 public:
  explicit BlockNet(passes::PipelineOptions options, const char* attention = "self_attn",
                    bool head_alone = false)
      : attention_(attention) {
    ir::Builder b(graph, ops::find_op);
    const auto in = [&](const char* name) {
      return b.state({name, {ir::DType::kI32, Shape{2, 8}}, ir::StateClass::kInput});
    };
    const ValueId ids = in("ids"), targets = in("targets");
    const ValueId scale = b.state({"scale", {ir::DType::kF32, Shape{1}}, ir::StateClass::kScalars});
    ValueId x = ops::embedding(b, parameter(b, "table", Shape{11, 12}), ids);
    for (int32_t i = 0; i < 4; ++i) {
      const auto block = b.block(i, "layers." + std::to_string(i));
      x = add_block(b, x);
    }
    x = ops::rms_norm(b, x, parameter(b, "norm", Shape{12}), 1e-5).y;
    ValueId loss = ops::cross_entropy(b, product(b, x, "head", Shape{11, 12}), targets, scale, {}).loss;
    passes::Pipeline pipeline(std::move(options));
    EXPECT_TRUE(b.status().ok() && pipeline.forward(graph, {&loss, 1}).ok());
    last_forward_op = graph.value(loss).producer;
    if (head_alone) parameters_ = {parameters_.back()};
    const auto derivative = pipeline.differentiate(graph, {loss, parameters_});
    EXPECT_TRUE(derivative.ok());
    for (size_t i = 0; i < parameters_.size(); ++i) {
      graph.declare_state(
          {"grad." + std::to_string(i), graph.type(parameters_[i]), ir::StateClass::kGradient});
      b.assign("grad." + std::to_string(i), derivative->cotangents[i]);
    }
    const Status status = pipeline.backward(graph);
    EXPECT_TRUE(status.ok()) << status.error().message();
    for (const auto& unit : pipeline.recomputed()) names.push_back(unit.name);
  }

  /// Values of blocks that forward makes and backward reads, once each.
  [[nodiscard]] std::set<ValueId> kept() const {
    std::set<ValueId> made, kept;
    bool is_forward = true;
    for (const OpId id : graph.order()) {
      const ir::Op& op = graph.op(id);
      for (ValueId v : op.inputs) {
        while (graph.op(graph.value(v).producer).def->is_view)
          v = graph.op(graph.value(v).producer).inputs[0];
        if (!is_forward && made.contains(v)) kept.insert(v);
      }
      if (is_forward && op.block >= 0 && op.def->state == ir::StateAccess::kNone)
        made.insert(op.outputs.begin(), op.outputs.end());
      if (id == last_forward_op) is_forward = false;
    }
    return kept;
  }
  /// Products that run once more, by layer.
  [[nodiscard]] std::map<std::string, int> products_again() const {
    std::map<std::string, int> count;
    for (const OpId id : graph.order())
      if (graph.op(id).recomputed && graph.op(id).def->name == "linear") ++count[graph.op(id).layer];
    return count;
  }

  Graph graph;
  OpId last_forward_op;
  std::vector<std::string> names;  ///< what was computed again

 private:
  ValueId parameter(ir::Builder& b, const std::string& name, Shape shape) {
    parameters_.push_back(b.state({b.layer() + name, {ir::DType::kF32, shape}, ir::StateClass::kParameter}));
    return parameters_.back();
  }
  ValueId norm(ir::Builder& b, ValueId x) {
    return ops::rms_norm(b, x, parameter(b, "norm", Shape{12}), 1e-5).y;
  }
  ValueId product(ir::Builder& b, ValueId x, const std::string& name, Shape shape) {
    return ops::linear(b, x, parameter(b, name, shape), {});
  }
  ValueId add_block(ir::Builder& b, ValueId x) {
    {
      const auto scope = b.scope(attention_);
      const ValueId qkv = product(b, norm(b, x), "qkv", Shape{36, 12});
      const auto parts = ops::split(b, qkv, {12, 12, 12});
      const auto head = [&](size_t i) { return ops::reshape(b, parts[i], {2, 8, 3, 4}); };
      const ValueId out = ops::attention(b, head(0), head(1), head(2), {}, {.scale = 0.5}, {}).out;
      const ValueId flat = ops::reshape(b, out, {2, 8, 12});
      x = ops::add(b, x, product(b, flat, "o", Shape{12, 12}));
    }
    const auto scope = b.scope("mlp");
    const auto parts = ops::split(b, product(b, norm(b, x), "up", Shape{48, 12}), {24, 24});
    const ValueId gated = ops::mul(b, ops::silu(b, parts[0]), parts[1]);
    return ops::add(b, x, product(b, gated, "down", Shape{12, 24}));
  }

  const char* attention_;
  std::vector<ValueId> parameters_;
};

passes::PipelineOptions with(passes::RecomputePolicy policy, bool fused = true) {
  passes::PipelineOptions options;
  options.recompute = std::move(policy);
  options.fuse_norms = options.fuse_activations = options.fuse_attention = fused;
  return options;
}

TEST(RecomputePolicy, FullKeepsTheBlocksInputsAlone) {
  for (const bool fused : {true, false}) {
    const BlockNet net(with({.kind = Kind::kFull}, fused));
    EXPECT_THAT(net.names, ElementsAre("layers.0", "layers.1", "layers.2", "layers.3"));
    // The first block's input is the embedding; where norms are not fused, the last block's output is a sum
    // of its own, which the final norm keeps.
    const std::set<ValueId> kept = net.kept();
    EXPECT_EQ(kept.size(), fused ? 3U : 4U);
    for (const ValueId v : kept) EXPECT_EQ(net.graph.type(v).shape, (Shape{2, 8, 12}));
    // Once each, and the product that ends a block not at all.
    for (const auto& [layer, count] : net.products_again())
      EXPECT_EQ(count, layer.ends_with("mlp") ? 1 : 2) << layer;
    EXPECT_EQ(net.products_again().size(), 8U);
  }
}

TEST(RecomputePolicy, SegmentsAreKeptByOneInputEach) {
  const BlockNet net(with({.kind = Kind::kSegments, .count = 2}));
  EXPECT_THAT(net.names, ElementsAre("layers.0..layers.1", "layers.2..layers.3"));
  EXPECT_EQ(net.kept().size(), 1U);
  const auto again = net.products_again();
  for (const char* inner : {"layers.0.mlp", "layers.2.mlp"}) EXPECT_EQ(again.at(inner), 2) << inner;
  for (const char* last : {"layers.1.mlp", "layers.3.mlp"}) EXPECT_EQ(again.at(last), 1) << last;
  EXPECT_THAT(BlockNet(with({.kind = Kind::kSegments, .count = 3})).names,
              ElementsAre("layers.0..layers.1", "layers.2", "layers.3"));
  EXPECT_EQ(BlockNet(with({.kind = Kind::kSegments})).names, net.names) << "the root of four";
}

TEST(RecomputePolicy, PartsLeaveTheOtherPartAlone) {
  const BlockNet plain(with({}));
  const BlockNet attention(with({.kind = Kind::kAttention})), mlp(with({.kind = Kind::kMlp}));
  EXPECT_TRUE(plain.products_again().empty());
  EXPECT_EQ(attention.products_again().size(), 4U);
  EXPECT_EQ(attention.products_again().at("layers.2.self_attn"), 1);
  EXPECT_EQ(mlp.products_again().at("layers.2.mlp"), 1);
  for (const char* name : {"attn", "attention"}) {  // of GPT-2, of a vision transformer
    const BlockNet other(with({.kind = Kind::kAttention}), name);
    EXPECT_EQ(other.products_again().at(std::string("layers.2.") + name), 1);
    EXPECT_EQ(BlockNet(with({.kind = Kind::kMlp}), name).products_again().size(), 4U) << name;
  }
  EXPECT_LT(attention.kept().size(), plain.kept().size());
  EXPECT_LT(mlp.kept().size(), plain.kept().size());
  EXPECT_THAT(BlockNet(with({.kind = Kind::kSelective})).names, testing::SizeIs(4)) << "a part of each block";
  EXPECT_THAT(BlockNet(with({.kind = Kind::kSelective}), "self_attn", /*head_alone=*/true).names,
              testing::IsEmpty())
      << "backward reads nothing of a frozen block";
}

TEST(RecomputePolicy, LayersAreNamed) {
  const auto names = [](std::vector<std::string> patterns) {
    return BlockNet(with({.kind = Kind::kLayers, .layers = std::move(patterns)})).names;
  };
  EXPECT_THAT(names({"layers.3", "layers.1.mlp"}), ElementsAre("layers.1.mlp", "layers.3"));
  EXPECT_THAT(names({"*.mlp", "layers.2*"}),
              ElementsAre("layers.0.mlp", "layers.1.mlp", "layers.2", "layers.3.mlp"));
  EXPECT_THAT(names({"layers.0..layers.2", "layers.1", "layers.3.self_attn"}),
              ElementsAre("layers.0..layers.2", "layers.3.self_attn"));
  EXPECT_THAT(BlockNet(with({.kind = Kind::kEvery, .count = 3})).names, ElementsAre("layers.2"));
}

TEST(RecomputePolicy, RefusesWhatTheModelDoesNotHave) {
  const BlockNet net(with({}));
  const auto refusal = [&](passes::RecomputePolicy policy) {
    const auto units = passes::recompute_units({net.graph, net.last_forward_op}, policy);
    return units ? "accepted" : units.error().message();
  };
  EXPECT_THAT(refusal({.kind = Kind::kLayers, .layers = {"*.mlp", "layers.4"}}),
              testing::AllOf(HasSubstr("\"layers.4\" names no layer"), HasSubstr("memory.recompute")));
  EXPECT_THAT(refusal({.kind = Kind::kLayers, .layers = {"layers.2..layers.1"}}),
              HasSubstr("names no layer"));
  EXPECT_THAT(refusal({.kind = Kind::kLayers, .layers = {"layers.0..layers.2", "layers.2..layers.3"}}),
              HasSubstr("overlap"));
  EXPECT_THAT(refusal({.kind = Kind::kSegments, .count = 5}),
              HasSubstr("5 is more than the model has blocks, 4"));
  EXPECT_THAT(refusal({.kind = Kind::kEvery, .count = 5}), HasSubstr("5 is more"));
}

}  // namespace
}  // namespace plimsoll::passes
