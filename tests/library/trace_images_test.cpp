// Models with images: what their traces hold, and what sessions make of running values.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "library/c_model.h"
#include "library/trace.h"
#include "library/traced_model.h"

namespace plimsoll::library {
namespace {

using ir::ValueId;
using testing::CBatch;
using testing::CBuilder;
using testing::CPlan;
using testing::CSession;
using testing::numbers;

class Network {
 public:
  ValueId input(const char* name, std::vector<int64_t> shape) { return *trace.input(name, "float32", shape); }
  ValueId tensor(const char* name, std::vector<int64_t> shape, const char* options) {
    auto made = trace.parameter(name, shape, *parse_parameter_options(options));
    EXPECT_TRUE(made) << made.error().message();
    return made ? *made : ValueId{};
  }
  ValueId op(const char* name, std::vector<ValueId> inputs, const char* attributes = "") {
    auto made = trace.op(name, inputs, attributes);
    EXPECT_TRUE(made) << name << ": " << made.error().message();
    return made ? made->front() : ValueId{};
  }
  /// conv2d of 3x3 and batch_norm.
  ValueId unit(const std::string& name, ValueId x, int64_t in, int64_t out) {
    const ValueId filters = tensor((name + ".conv").c_str(), {out, in, 3, 3}, R"({"kind": "filters"})");
    const ValueId y = op("conv2d", {x, filters}, R"({"padding": 1})");
    return op("batch_norm",
              {y, tensor((name + ".weight").c_str(), {out}, R"({"init": "ones"})"),
               tensor((name + ".bias").c_str(), {out}, "{}"),
               tensor((name + ".running_mean").c_str(), {out}, R"({"kind": "buffer"})"),
               tensor((name + ".running_var").c_str(), {out}, R"({"kind": "buffer", "init": "ones"})")});
  }
  /// Ops of that name that the loss needs.
  [[nodiscard]] std::vector<const ir::Op*> needed(std::string_view name) const {
    const std::vector<bool> all = needed_ops(trace);
    std::vector<const ir::Op*> found;
    for (size_t i = 0; i < all.size(); ++i) {
      const ir::Op& op = trace.graph().op(ir::OpId{static_cast<int32_t>(i)});
      if (all[i] && op.def->name == name) found.push_back(&op);
    }
    return found;
  }
  Trace trace;
};

TEST(TraceImages, TheInputAloneIsTurned) {
  Network net;
  ValueId x = net.input("x", {2, 3, 8, 6});
  x = net.op("relu", {net.unit("stem", x, 3, 8)});
  x = net.op("max_pool2d", {x}, R"({"kernel": 2})");
  const ValueId y = net.op("relu", {net.op("add", {net.unit("layer", x, 8, 8), x})});
  const ValueId gate = net.op("sigmoid", {net.op("mean", {y}, R"({"axes": [2, 3], "keepdims": true})")});
  const ValueId both = net.op("concat", {net.op("mul", {y, gate}), x}, R"({"axis": 1})");
  ASSERT_TRUE(net.trace.set_loss(net.op("mean", {net.op("adaptive_avg_pool2d", {both}, R"({"size": 1})")})));
  EXPECT_EQ(net.needed("permute").size(), 1U);
}

TEST(TraceImages, ReluAndTheResidualArePartsOfTheNorm) {
  Network net;
  ValueId x = net.input("x", {2, 4, 8, 6});
  const ValueId y = net.op("relu", {net.unit("first", x, 4, 4)});
  const ValueId z = net.op("relu", {net.op("add", {net.unit("second", y, 4, 4), y})});
  ASSERT_TRUE(net.trace.set_loss(net.op("mean", {z})));
  const auto norms = net.needed("batch_norm");
  ASSERT_EQ(norms.size(), 2U);
  for (const ir::Op* norm : norms) EXPECT_TRUE(norm->attrs.flag("relu"));
  EXPECT_EQ(norms[0]->inputs.size(), 5U);
  EXPECT_EQ(norms[1]->inputs.size(), 6U);
  EXPECT_TRUE(net.needed("pointwise").empty());
  EXPECT_TRUE(net.needed("add").empty());
  const TracedModel model(net.trace);
  EXPECT_EQ(model.batch_norms().size(), 2U);
  EXPECT_TRUE(model.couples_micro_batch());
  EXPECT_EQ(model.parameters()[0].shape, (ir::Shape{4, 3, 3, 4}));
}

TEST(TraceImages, WhatIsNoFiltersOrBufferIsNamed) {
  Network net;
  const auto refused = [&](const char* name, std::vector<int64_t> shape, const char* options) {
    const auto made = net.trace.parameter(name, shape, *parse_parameter_options(options));
    return made ? std::string() : made.error().message();
  };
  EXPECT_NE(refused("w", {4, 3}, R"({"kind": "filters"})").find("four axes"), std::string::npos);
  EXPECT_NE(refused("m", {4}, R"({"kind": "buffer", "init": "normal"})").find("drawn"), std::string::npos);
  const ValueId x = net.input("x", {2, 4, 8, 6}), weight = net.tensor("weight", {4}, "{}");
  const auto wrong = [&](const char* op, std::vector<ValueId> inputs, const char* attributes) {
    const auto made = net.trace.op(op, inputs, attributes);
    return made ? std::string() : made.error().message();
  };
  EXPECT_NE(wrong("batch_norm", {x, weight, weight, weight, weight}, "").find("no buffers"),
            std::string::npos);
  EXPECT_NE(wrong("batch_norm", {x, weight, weight, weight}, "").find("left out"), std::string::npos);
  EXPECT_NE(wrong("max_pool2d", {x}, R"({"kernel": [1, 2, 3]})").find("kernel"), std::string::npos);
  EXPECT_NE(wrong("conv2d", {x, weight}, "").find("conv2d: weight"), std::string::npos);
}

TEST(TraceImages, RunningValuesFollowStepsAlone) {
  CBuilder builder;
  const pls_value x = builder.input("x", "float32", {6, 2});
  const pls_value w = builder.parameter("w", {2}, R"({"init": "ones"})");
  const pls_value b = builder.parameter("b", {2}, "{}");
  const pls_value mean = builder.parameter("norm.running_mean", {2}, R"({"kind": "buffer"})");
  const pls_value var = builder.parameter("norm.running_var", {2}, R"({"kind": "buffer", "init": "ones"})");
  const pls_value y = builder.op("batch_norm", {x, w, b, mean, var}, R"({"momentum": 0.5})");
  builder.loss(builder.op("mean", {builder.op("square", {y})}));
  const CPlan plan(builder, "{}");
  ASSERT_EQ(plan.failed.code, PLS_OK) << plan.failed.message;
  CSession session(plan);
  CBatch batch;
  batch.set("x", {6, 2}, std::vector<float>{1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0});
  session.gradients(batch);
  EXPECT_EQ(session.read("norm.running_mean", 2), (std::vector<float>{0, 0}));
  const double before = session.evaluate(batch);
  session.step(batch);
  EXPECT_EQ(session.read("norm.running_mean", 2), (std::vector<float>{1.75F, 0}));
  EXPECT_FLOAT_EQ(session.read("norm.running_var", 2)[0], 0.5F + 0.5F * 3.5F);
  EXPECT_NE(session.evaluate(batch), before);
  EXPECT_EQ(session.read("norm.running_mean", 2), (std::vector<float>{1.75F, 0}));
}

TEST(TraceImages, BatchesAreCountedWhereRunningValuesFollow) {
  CBuilder builder;
  const pls_value x = builder.input("x", "float32", {2, 2});
  const pls_value w = builder.parameter("w", {2}, R"({"init": "ones"})");
  const pls_value mean = builder.parameter("norm.running_mean", {2}, R"({"kind": "buffer"})");
  const pls_value var = builder.parameter("norm.running_var", {2}, R"({"kind": "buffer", "init": "ones"})");
  const char* const name = "norm.num_batches_tracked";
  EXPECT_EQ(builder.parameter(name, {}, R"({"kind": "count"})"), PLS_NONE);
  EXPECT_EQ(builder.parameter(name, {}, R"({"kind": "count"})"), PLS_NONE) << "it is the same";
  builder.loss(builder.op(
      "mean", {builder.op("square", {builder.op("batch_norm", {x, w, PLS_NONE, mean, var}, "{}")})}));
  const CPlan plan(builder, "{}");
  ASSERT_EQ(plan.failed.code, PLS_OK) << plan.failed.message;
  EXPECT_NE(std::string(pls_plan_json(plan.get())).find(R"("dtype": "int64", "shape": []})"),
            std::string::npos);
  CSession session(plan);
  CBatch batch;
  batch.set("x", {2, 2}, std::vector<float>{1, 0, 3, 4});
  session.gradients(batch);
  session.evaluate(batch);
  EXPECT_EQ(session.read(name, 1), std::vector<float>{0});
  session.step(batch);
  session.step(batch);
  EXPECT_EQ(session.read(name, 1), std::vector<float>{2});
}

/// The buffers of two norms in one module.
TEST(TraceImages, AllRunningValuesOfAModuleAreKept) {
  CBuilder builder;
  const auto norm = [&](pls_value x, const std::string& number) {
    return builder.op("batch_norm",
                      {x, PLS_NONE, PLS_NONE,
                       builder.parameter(("block.mean" + number).c_str(), {2}, R"({"kind": "buffer"})"),
                       builder.parameter(("block.var" + number).c_str(), {2}, R"({"kind": "buffer"})")},
                      R"({"momentum": 0.5})");
  };
  const pls_value x = builder.input("x", "float32", {2, 2});
  const pls_value w = builder.parameter("w", {2}, R"({"init": "ones"})");
  const pls_value y = norm(builder.op("add", {builder.op("mul", {norm(x, "1"), w}), x}), "2");
  builder.loss(builder.op("mean", {builder.op("square", {y})}));
  const CPlan plan(builder, "{}");
  ASSERT_EQ(plan.failed.code, PLS_OK) << plan.failed.message;
  CSession session(plan);
  CBatch batch;
  batch.set("x", {2, 2}, std::vector<float>{1, 0, 3, 4});
  const std::vector<float> none{0, 0};
  session.gradients(batch);
  for (const char* buffer : {"block.mean1", "block.var1", "block.mean2", "block.var2"})
    EXPECT_EQ(session.read(buffer, 2), none) << buffer;
  session.step(batch);
  for (const char* buffer : {"block.mean1", "block.var1", "block.mean2", "block.var2"})
    EXPECT_NE(session.read(buffer, 2), none) << buffer;
}

}  // namespace
}  // namespace plimsoll::library
