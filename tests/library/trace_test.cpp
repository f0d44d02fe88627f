#include "library/trace.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <span>
#include <vector>

#include "library/c_model.h"

namespace plimsoll::library {
namespace {

using testing::CBatch;
using testing::CBuilder;
using testing::CPlan;
using testing::CSession;
using testing::numbers;
using testing::Shape;
using testing::slope;

/// The loss sum(op(w) * y) of a parameter w, so that y is the gradient that comes to the op's result.
struct OneOp {
  explicit OneOp(const Shape& shape, const std::function<pls_value(CBuilder&, pls_value)>& make) : of(shape) {
    const pls_value w = builder.parameter("w", shape, R"({"init": "uniform", "bound": 1})");
    const pls_value made = make(builder, w);
    result = builder.shape(made);
    const pls_value y = builder.input("y", "float32", result);
    builder.loss(builder.op("sum", {builder.op("mul", {made, y})}));
  }
  size_t count() const {
    size_t all = 1;
    for (const int64_t extent : of) all *= static_cast<size_t>(extent);
    return all;
  }
  /// Compares the gradient with differences of the loss.
  void check() {
    const CPlan plan(builder, R"({"training": {"optimizer": "sgd"}})");
    ASSERT_EQ(plan.failed.code, PLS_OK) << plan.failed.message;
    CSession session(plan, R"({"seed": 5})");
    size_t elements = 1;
    for (const int64_t extent : result) elements *= static_cast<size_t>(extent);
    CBatch batch;
    batch.set("y", result, numbers(elements, 3));
    session.gradients(batch);
    ASSERT_EQ(session.failed.code, PLS_OK) << session.failed.message;
    const std::vector<float> gradient = session.read("w", count(), "gradient");
    for (size_t i = 0; i < count(); i += 1 + count() / 4)
      EXPECT_NEAR(gradient[i], slope(session, batch, "w", count(), i), 5e-3) << i;
  }
  CBuilder builder;
  Shape of, result;
};

TEST(Trace, OpsHaveShapesAndGradients) {
  const struct {
    const char* name;
    const char* attributes;
    Shape in, out;
  } rows[] = {{"reshape", R"({"shape": [-1, 3]})", {2, 6}, {4, 3}},
              {"permute", R"({"axes": [2, 0, 1]})", {2, 3, 4}, {4, 2, 3}},
              {"transpose", nullptr, {2, 3, 4}, {2, 4, 3}},
              {"slice", R"({"axis": 1, "start": 1, "end": -1, "step": 2})", {2, 7}, {2, 3}},
              {"flip", R"({"axis": 1})", {2, 3}, {2, 3}},
              {"expand", R"({"shape": [5, -1, 3]})", {2, 3}, {5, 2, 3}},
              {"sum", R"({"axes": [0, -1]})", {2, 3, 4}, {3}},
              {"mean", R"({"axes": 1, "keepdims": true})", {2, 3, 4}, {2, 1, 4}},
              {"max", R"({"axes": [1]})", {3, 5}, {3}},
              {"softmax", R"({"axis": 0})", {4, 3}, {4, 3}},
              {"log_softmax", nullptr, {4, 3}, {4, 3}},
              {"exp", nullptr, {3, 2}, {3, 2}},
              {"tanh", nullptr, {3, 2}, {3, 2}},
              {"sigmoid", nullptr, {3, 2}, {3, 2}},
              {"silu", nullptr, {3, 2}, {3, 2}},
              {"gelu", R"({"approximate": "tanh"})", {3, 2}, {3, 2}},
              {"pow", R"({"scalar": 3})", {3, 2}, {3, 2}},
              {"sub", R"({"scalar": 1.5, "reverse": true})", {3, 2}, {3, 2}},
              {"clamp", R"({"min": -0.5})", {6, 1}, {6, 1}},
              {"pointwise", R"x({"expression": "mul(x0,sigmoid(x0))"})x", {3, 2}, {3, 2}}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    OneOp op(row.in, [&](CBuilder& b, pls_value w) { return b.op(row.name, {w}, row.attributes); });
    EXPECT_EQ(op.result, row.out);
    op.check();
  }
}

TEST(Trace, ProductsAreThoseOfTorch) {
  const struct {
    Shape a, b, out;
  } rows[] = {{{2, 3}, {3, 4}, {2, 4}},
              {{3}, {3, 4}, {4}},
              {{2, 3}, {3}, {2}},
              {{5, 1, 2, 3}, {4, 3, 2}, {5, 4, 2, 2}}};
  for (const auto& row : rows) {
    OneOp op(row.a, [&](CBuilder& b, pls_value w) {
      return b.op("matmul", {w, b.input("other", "float32", row.b)});
    });
    EXPECT_EQ(op.result, row.out);
  }
}

TEST(Trace, ConcatAndSplitAreEachOthersInverse) {
  OneOp op({4, 3}, [](CBuilder& b, pls_value w) {
    pls_value parts[2] = {};
    pls_error* error = nullptr;
    testing::ok(pls_op(b.get(), "split", &w, 1, R"({"sizes": [1, 3], "axis": 0})", parts, 2, &error), error);
    return b.op("concat", {parts[1], parts[0]}, R"({"axis": 0})");
  });
  EXPECT_EQ(op.result, (Shape{4, 3}));
  op.check();
}

TEST(Trace, ErrorsNameOpShapesAndScope) {
  CBuilder b;
  const pls_value x = b.input("x", "float32", {2, 3}), w = b.parameter("w", {5, 4}, nullptr);
  b.push("module", "layers.0");
  b.push("module", "up");
  const testing::Failure shapes = b.wrong_op("linear", {x, w});
  EXPECT_EQ(shapes.code, PLS_INVALID_ARGUMENT);
  for (const char* word : {"linear", "[2,3]", "[5,4]", "layers.0.up"})
    EXPECT_NE(shapes.message.find(word), std::string::npos) << shapes.message;
  EXPECT_NE(b.wrong_op("linaer", {x, w}).hint.find("linear"), std::string::npos);
  EXPECT_NE(b.wrong_op("softmax", {x}, R"({"axes": 1})").hint.find("axis"), std::string::npos);
  EXPECT_EQ(b.wrong_op("softmax", {x}, R"({"axis": 2})").code, PLS_INVALID_ARGUMENT);
  EXPECT_EQ(b.wrong_op("linear", {x}).code, PLS_INVALID_ARGUMENT);
  EXPECT_EQ(b.wrong_op("relu", {99}).code, PLS_INVALID_ARGUMENT);
  EXPECT_EQ(b.wrong_op("dropout", {x}).code, PLS_INVALID_ARGUMENT);
  EXPECT_EQ(b.op("relu", {x}) >= 0, true);  // what was wrong is not kept
}

TEST(Trace, NamesAreUsedOnce) {
  Trace trace;
  const int64_t shape[] = {2, 3}, other[] = {3, 2};
  ASSERT_TRUE(trace.input("x", "float32", shape));
  EXPECT_FALSE(trace.input("x", "float32", shape));
  EXPECT_FALSE(trace.input("z", "complex64", shape));
  const auto w = trace.parameter("w", shape, {});
  ASSERT_TRUE(w);
  const auto again = trace.parameter("w", shape, {});
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, *w);
  EXPECT_FALSE(trace.parameter("w", other, {}));
  EXPECT_FALSE(trace.parameter("w", shape, {.trained = false}));
}

TEST(Trace, NothingFollowsTheLoss) {
  Trace trace;
  const int64_t shape[] = {1};
  const auto w = trace.parameter("w", shape, {});
  ASSERT_TRUE(w);
  ASSERT_TRUE(trace.set_loss(*w));
  const float value = 0;
  EXPECT_FALSE(trace.input("x", "float32", shape));
  EXPECT_FALSE(trace.parameter("v", shape, {}));
  EXPECT_FALSE(trace.constant("c", "float32", shape, std::as_bytes(std::span(&value, 1))));
  EXPECT_FALSE(trace.op("neg", std::vector{*w}, {}));
  EXPECT_EQ(trace.parameters().size(), 1U);
}

TEST(Trace, IndicesCanBeChecked) {
  CBuilder b;
  const pls_value table = b.parameter("table", {4, 2}, nullptr), x = b.input("x", "float32", {3});
  EXPECT_EQ(b.wrong_op("embedding", {table, x}).code, PLS_INVALID_ARGUMENT);
  EXPECT_EQ(b.wrong_op("embedding", {table, b.op("arange", {}, R"({"end": 5})")}).code, PLS_INVALID_ARGUMENT);
  EXPECT_EQ(b.shape(b.op("embedding", {table, b.op("arange", {}, R"({"end": 4})")})), (Shape{4, 2}));
  const pls_value ids = b.input("ids", "int32", {3});
  const auto joined = [&](int end) {
    const std::string attributes = fmt::format(R"({{"end": {}}})", end);
    return b.op("concat", {ids, b.op("arange", {}, attributes.c_str())});
  };
  EXPECT_EQ(b.shape(b.op("embedding", {table, joined(4)})), (Shape{7, 2}));
  EXPECT_EQ(b.wrong_op("embedding", {table, joined(5)}).code, PLS_INVALID_ARGUMENT) << "a part is beyond";
}

}  // namespace
}  // namespace plimsoll::library
