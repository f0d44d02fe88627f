// The ops that a layer's attention is made of, by what its spec says.
#include "models/blocks/attention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/op_list.h"
#include "ops/ops.h"

namespace plimsoll::models {
namespace {

using testing::ElementsAre;
using testing::IsSupersetOf;

class AttentionOnly final : public Model {
 public:
  AttentionOnly() {
    const auto add = [&](const char* name, ParameterKind kind, ir::Shape shape) {
      parameters_.push_back({name, kind, shape, Init::kNormal, 0.02, {{name, 0, shape}}});
    };
    add("qkv.weight", ParameterKind::kLinear, {8 + 4 + 4, 12});
    add("out.weight", ParameterKind::kLinear, {12, 8});
    add("q_norm.weight", ParameterKind::kVector, {4});
    add("k_norm.weight", ParameterKind::kVector, {4});
  }
};

const AttentionSpec kPlain{.qkv = {.weight = "qkv.weight"},
                           .out = {.weight = "out.weight"},
                           .heads = 2,
                           .kv_heads = 1,
                           .head_dim = 4,
                           .layer = 3};

struct Built {
  std::vector<std::string> ops, states;
  ir::Shape shape;
};

/// With a rotation where `rotates`, with a cache of as many positions where there are any.
Built built(AttentionSpec spec, bool rotates, int64_t cache_tokens = 0) {
  ir::Graph graph;
  ir::Builder b(graph, ops::find_op);
  const auto input = [&](const char* name, ir::DType dtype, ir::Shape shape) {
    return b.state({name, {dtype, shape}, ir::StateClass::kInput});
  };
  if (rotates) spec.rope = ops::rope_table(b, input("frequencies", ir::DType::kF32, {2}), {}, 5, 1.0);
  Forward forward{.tokens = input("tokens", ir::DType::kI32, {3, 5})};
  if (cache_tokens > 0) {
    forward.start = input("start", ir::DType::kI32, {3});
    forward.cache_tokens = cache_tokens;
  }
  const ir::ValueId y = attention(b, AttentionOnly(), forward, spec, input("x", ir::DType::kF32, {3, 5, 12}));
  EXPECT_TRUE(b.status().ok());
  Built result{.ops = {}, .states = {}, .shape = b.type(y).shape};
  for (const ir::OpId id : graph.order())
    if (graph.op(id).def->state == ir::StateAccess::kNone) result.ops.emplace_back(graph.op(id).def->name);
  for (const ir::StateDecl& state : graph.states()) result.states.push_back(state.name);
  return result;
}

TEST(AttentionBlock, DoesWhatItsSpecSays) {
  const Built plain = built(kPlain, false);
  EXPECT_THAT(plain.ops, ElementsAre("linear", "split", "reshape", "reshape", "reshape", "attention",
                                     "reshape", "linear"));
  EXPECT_EQ(plain.shape, (ir::Shape{3, 5, 12}));
  AttentionSpec normed = kPlain;
  normed.q_norm = "q_norm.weight", normed.k_norm = "k_norm.weight", normed.norm_eps = 1e-5;
  EXPECT_THAT(built(normed, true).ops,
              ElementsAre("rope_table", "linear", "split", "reshape", "reshape", "reshape", "rms_norm",
                          "rms_norm", "rope", "rope", "attention", "reshape", "linear"));
}

TEST(AttentionBlock, KeepsKeysAndValuesOfItsLayer) {
  const Built cached = built(kPlain, false, 9);
  EXPECT_THAT(cached.states, IsSupersetOf({"cache.k.3", "cache.v.3"}));
  EXPECT_THAT(cached.ops, ElementsAre("linear", "split", "reshape", "reshape", "reshape", "cache_update",
                                      "cache_update", "attention_cached", "reshape", "linear"));
}

}  // namespace
}  // namespace plimsoll::models
