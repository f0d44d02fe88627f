// rms_norm and layer_norm: derivatives, the fused forms against what they replace, accumulation.
#include <gtest/gtest.h>

#include "ops/op_testing.h"

namespace plimsoll::ops_testing {
namespace {

const Attrs kEps{{"eps", 1e-2}};

TEST(Norm, DerivativesMatchFiniteDifferences) {
  const std::vector<DerivativeCase> rows = {
      {"rms_norm", "rms_norm", {normal({2, 3, 4}), normal({4}, 1)}, kEps},
      {"rms_norm of one row", "rms_norm", {normal({5}), normal({5}, 1)}, kEps},
      {"add_rms_norm", "add_rms_norm", {normal({3, 4}), normal({3, 4}, 2), normal({4}, 1)}, kEps, {0, 1}},
      {"add_rms_norm, sum alone",
       "add_rms_norm",
       {normal({3, 4}), normal({3, 4}, 2), normal({4}, 1)},
       kEps,
       {0},
       -1,
       {2}},
      {"add_rms_norm, y alone",
       "add_rms_norm",
       {normal({3, 4}), normal({3, 4}, 2), normal({4}, 1)},
       kEps,
       {1}},
      {"layer_norm", "layer_norm", {normal({2, 3, 4}), normal({4}, 1), normal({4}, 2)}, kEps},
      {"layer_norm of one row", "layer_norm", {normal({5}), normal({5}, 1), normal({5}, 2)}, kEps},
      {"add_layer_norm",
       "add_layer_norm",
       {normal({3, 4}), normal({3, 4}, 2), normal({4}, 1), normal({4}, 3)},
       kEps,
       {0, 1}},
      {"add_layer_norm, sum alone",
       "add_layer_norm",
       {normal({3, 4}), normal({3, 4}, 2), normal({4}, 1), normal({4}, 3)},
       kEps,
       {0},
       -1,
       {2, 3}},
      {"add_layer_norm, y alone",
       "add_layer_norm",
       {normal({3, 4}), normal({3, 4}, 2), normal({4}, 1), normal({4}, 3)},
       kEps,
       {1}},
  };
  for (const auto& row : rows) EXPECT_LT(derivative_error(row), kDerivativeTolerance) << row.name;
}

TEST(Norm, GivesKnownValues) {
  const RefTensor x = values({1, 2}, {3, 4});
  const Tensors rms = evaluate("rms_norm", {x, values({2}, {1, 10})}, {{"eps", 0.0}});
  EXPECT_LT(distance(rms[0], values({1, 2}, {3 / std::sqrt(12.5), 40 / std::sqrt(12.5)})), 1e-15);
  EXPECT_LT(distance(rms[1], values({1}, {1 / std::sqrt(12.5)})), 1e-15);
  const Tensors layer =
      evaluate("layer_norm", {x, values({2}, {1, 10}), values({2}, {0, 5})}, {{"eps", 0.0}});
  EXPECT_LT(distance(layer[0], values({1, 2}, {-1, 15})), 1e-15);
  EXPECT_LT(distance(layer[1], values({1}, {3.5})), 1e-15);
  EXPECT_LT(distance(layer[2], values({1}, {2})), 1e-15);
}

TEST(Norm, FusedFormsAreWhatTheyReplace) {
  const Tensors x = {normal({2, 3, 4}), normal({2, 3, 4}, 1), normal({4}, 2), normal({4}, 3),
                     normal({2, 3, 4}, 4)};
  const Tensors fused = evaluate(x, [](Builder& b, const auto& v) {
    const auto r = b.ops("add_rms_norm", {v[0], v[1], v[2]}, kEps);
    const auto l = b.ops("add_layer_norm", {v[0], v[1], v[2], v[3]}, kEps);
    const auto rg = b.ops("rms_norm_grad_add", {v[4], r[0], v[2], r[2], v[1]});
    const auto lg = b.ops("layer_norm_grad_add", {v[4], l[0], v[2], l[2], l[3], v[1]});
    return std::vector{r[0], r[1], r[2], l[0], l[1], l[2], l[3], rg[0], rg[1], lg[0], lg[1], lg[2]};
  });
  const Tensors apart = evaluate(x, [](Builder& b, const auto& v) {
    const ValueId sum = ops::add(b, v[0], v[1]);
    const auto r = ops::rms_norm(b, sum, v[2], 1e-2);
    const auto l = ops::layer_norm(b, sum, v[2], v[3], 1e-2);
    const auto rg = b.ops("rms_norm_grad", {v[4], sum, v[2], r.rstd});
    const auto lg = b.ops("layer_norm_grad", {v[4], sum, v[2], l.mean, l.rstd});
    return std::vector{sum,    r.y,
                       r.rstd, sum,
                       l.y,    l.mean,
                       l.rstd, ops::add(b, v[1], rg[0]),
                       rg[1],  ops::add(b, v[1], lg[0]),
                       lg[1],  lg[2]};
  });
  EXPECT_LT(distance(fused, apart), 1e-12);
}

TEST(Norm, RebuildGivesEachResultAgain) {
  const Tensors x = {normal({3, 4}), normal({3, 4}, 1), normal({4}, 2), normal({4}, 3)};
  for (const std::string op : {"add_rms_norm", "add_layer_norm"}) {
    const size_t operands = op == "add_rms_norm" ? 3 : 4;
    const Tensors results = evaluate({x.begin(), x.begin() + static_cast<std::ptrdiff_t>(operands)},
                                     [&](Builder& b, const auto& v) {
                                       auto made = b.ops(op, v, kEps);
                                       const ir::Op built = b.graph().op(b.graph().value(made[0]).producer);
                                       for (size_t i = 0; i < operands; ++i)
                                         made.push_back(built.def->rebuild(b, built, i));
                                       return made;
                                     });
    for (size_t i = 0; i < operands; ++i) EXPECT_EQ(results[i].data, results[operands + i].data) << op << i;
  }
}

/// The gradient onto `acc` is acc plus the gradient.
TEST(Norm, GradientsAccumulate) {
  const RefTensor dy = normal({3, 4}), x = normal({3, 4}, 1), w = normal({4}, 2), stat = positive({3}, 1),
                  acc = normal({4}, 5);
  const Tensors plain = evaluate("layer_norm_grad", {dy, x, w, stat, stat});
  const Tensors onto = evaluate("layer_norm_grad", {dy, x, w, stat, stat, acc, acc});
  const Tensors rms = evaluate("rms_norm_grad", {dy, x, w, stat});
  const Tensors rms_onto = evaluate("rms_norm_grad", {dy, x, w, stat, acc});
  const Tensors added = evaluate("rms_norm_grad_add", {dy, x, w, stat, x, acc});
  EXPECT_LT(distance(onto[1], evaluate("add", {acc, plain[1]})[0]), 1e-14);
  EXPECT_LT(distance(onto[2], evaluate("add", {acc, plain[2]})[0]), 1e-14);
  EXPECT_LT(distance(rms_onto[1], evaluate("add", {acc, rms[1]})[0]), 1e-14);
  EXPECT_EQ(added[1].data, rms_onto[1].data);
}

TEST(Norm, SaysWhatDoesNotFit) {
  const std::vector<ErrorCase> rows = {
      {"rms_norm", {f32({2, 3}), f32({4})}, kEps, "rms_norm: weight must be [3], is [4]"},
      {"rms_norm", {f32({2, 3})}, kEps, "rms_norm: takes (x, weight), given 1 operands"},
      {"add_rms_norm",
       {f32({2, 3}), f32({3}), f32({3})},
       kEps,
       "add_rms_norm: residual must be [2,3], is [3]"},
      {"rms_norm_grad",
       {f32({2, 3}), f32({2, 3}), f32({3}), f32({3})},
       {},
       "rms_norm_grad: rstd must be [2], is [3]"},
      {"rms_norm_grad",
       {f32({2, 3}), f32({2, 3}), f32({3}), f32({2}), f32({2})},
       {},
       "rms_norm_grad: acc_dw must be [3], is [2]"},
      {"rms_norm_grad_add",
       {f32({2, 3}), f32({2, 3}), f32({3}), f32({2}), {}},
       {},
       "rms_norm_grad_add: d_residual is absent"},
      {"layer_norm", {f32({2, 3}), f32({3}), f32({2})}, kEps, "layer_norm: bias must be [3], is [2]"},
      {"add_layer_norm",
       {f32({2, 3}), f32({2, 3}), f32({2}), f32({3})},
       kEps,
       "add_layer_norm: weight must be [3], is [2]"},
      {"layer_norm_grad",
       {f32({2, 3}), f32({2, 3}), f32({3}), f32({2}), f32({2}), f32({1})},
       {},
       "layer_norm_grad: acc_dw must be [3], is [1]"},
      {"layer_norm_grad_add",
       {f32({2, 3}), f32({2, 3}), f32({3}), f32({2}), f32({2}), f32({2})},
       {},
       "layer_norm_grad_add: d_residual must be [2,3], is [2]"},
  };
  for (const auto& row : rows) EXPECT_EQ(operand_error(row), row.what);
}

}  // namespace
}  // namespace plimsoll::ops_testing
