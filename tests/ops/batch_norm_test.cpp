// Batch normalisation: derivatives with given statistics and through those of the batch, known values,
// operands that do not fit.
#include "ops/batch_norm.h"

#include <gtest/gtest.h>

#include "ops/batch_norm_ranks.h"
#include "ops/image_ops_torch.h"
#include "ops/op_testing.h"

namespace plimsoll::ops_testing {
namespace {

const Shape kNormedImages{2, 2, 3, 4}, kNormedChannels{4};

Attrs batch_norm_attrs(bool batch, bool relu) {
  Attrs attrs{{"eps", 1e-3}};
  if (batch) attrs.set("batch", true);
  if (relu) attrs.set("relu", true);
  return attrs;
}

Tensors operands(bool residual) {
  Tensors in{normal(kNormedImages, 1), normal(kNormedChannels, 2), positive(kNormedChannels, 0.5, 3),
             normal(kNormedChannels, 4), normal(kNormedChannels, 5)};
  if (residual) in.push_back(normal(kNormedImages, 6));
  return in;
}

TEST(BatchNorm, DerivativeWithGivenStatistics) {
  for (const bool relu : {false, true})
    for (const bool residual : {false, true}) {
      const DerivativeCase row{"", "batch_norm", operands(residual), batch_norm_attrs(false, relu), {0},
                               -1, {1, 2}};
      EXPECT_LT(derivative_error(row), kDerivativeTolerance) << relu << residual;
    }
}

/// The statistics of x and then the norm, as models put them.
std::vector<ValueId> normed(Builder& b, const std::vector<ValueId>& in, bool relu, int64_t ranks = 1) {
  ops::BatchStatistics of_x = ops::batch_statistics(b, in[0]);
  if (ranks > 1) of_x = ops::over_ranks(b, of_x, ranks);
  const ValueId residual = in.size() > 3 ? in[3] : ValueId{};
  return {ops::batch_norm(b, in[0], of_x.mean, of_x.variance, in[1], in[2], residual,
                          {.eps = 1e-3, .batch = true, .relu = relu, .ranks = ranks})};
}

double weighted(const Tensors& in, const RefTensor& weights, bool relu) {
  const RefTensor y = evaluate(in, [&](Builder& b, const auto& v) { return normed(b, v, relu); })[0];
  double sum = 0;
  for (size_t i = 0; i < y.data.size(); ++i) sum += weights.data[i] * y.data[i];
  return sum;
}

/// Gradients of x, weight, bias and the residual by the op's derivative.
Tensors gradients_through_batch(Tensors in, const RefTensor& weights, bool relu, int64_t ranks = 1) {
  in.push_back(weights);
  return evaluate(in, [&](Builder& b, std::vector<ValueId> v) {
    const ValueId dy = v.back();
    v.pop_back();
    const ValueId y = normed(b, v, relu, ranks)[0];
    SingleOpVjp vjp(b, b.graph().op(b.graph().value(y).producer), {dy}, {true, true, true, true, true, true});
    vjp.op().def->vjp(vjp);
    std::vector<ValueId> found = vjp.sums();
    found.erase(found.begin() + 1, found.begin() + 3);  // mean and variance
    return found;
  });
}

/// With the same values on all ranks they are those of one.
TEST(BatchNorm, OfSeveralRanksIsThatOfOneWithAllValues) {
  for (const bool relu : {false, true})
    for (const bool residual : {false, true}) {
      Tensors in{normal(kNormedImages, 1), normal(kNormedChannels, 4), normal(kNormedChannels, 5)};
      if (residual) in.push_back(normal(kNormedImages, 6));
      const RefTensor weights = normal(kNormedImages, 9);
      const Tensors one = gradients_through_batch(in, weights, relu);
      const Tensors three = gradients_through_batch(in, weights, relu, 3);
      ASSERT_EQ(one.size(), three.size());
      for (size_t i = 0; i < one.size(); ++i)
        for (size_t e = 0; e < one[i].data.size(); ++e)
          EXPECT_NEAR(three[i].data[e], one[i].data[e], 1e-5) << relu << residual << i;
    }
}

TEST(BatchNorm, DerivativeThroughTheBatch) {
  constexpr double kStep = 1e-5;
  for (const bool relu : {false, true})
    for (const bool residual : {false, true}) {
      Tensors in{normal(kNormedImages, 1), normal(kNormedChannels, 4), normal(kNormedChannels, 5)};
      if (residual) in.push_back(normal(kNormedImages, 6));
      const RefTensor weights = normal(kNormedImages, 9);
      const Tensors found = gradients_through_batch(in, weights, relu);
      ASSERT_EQ(found.size(), in.size());
      for (size_t i = 0; i < in.size(); ++i) {
        RefTensor expected = in[i];
        for (size_t e = 0; e < expected.data.size(); ++e) {
          Tensors moved = in;
          moved[i].data[e] += kStep;
          const double above = weighted(moved, weights, relu);
          moved[i].data[e] -= 2 * kStep;
          expected.data[e] = (above - weighted(moved, weights, relu)) / (2 * kStep);
        }
        EXPECT_LT(distance(found[i], expected), 1e-6) << "operand " << i << relu << residual;
      }
    }
}

TEST(BatchNorm, AgreesWithTorch) {
  const Shape images{2, 3, 3, 2};
  const auto expect = [&](const TorchResult& torch, bool relu, bool adds) {
    Tensors in{recorded_operand(images, 1), recorded_operand({2}, 2), recorded_operand({2}, 3)};
    if (adds) in.push_back(recorded_operand(images, 4));
    const Tensors y = evaluate(in, [&](Builder& b, const auto& v) { return normed(b, v, relu); });
    EXPECT_LT(distance_to_torch(y[0], torch.result), 1e-12);
    const Tensors found = gradients_through_batch(in, recorded_weights(images), relu);
    for (size_t i = 0; i < in.size(); ++i)
      EXPECT_LT(distance_to_torch(found[i], torch.gradients[i]), 1e-12) << "operand " << i;
  };
  expect(kTorchBatchNorm, false, false);
  expect(kTorchBatchNormRelu, true, false);
  expect(kTorchBatchNormAddRelu, true, true);
}

TEST(BatchNorm, GivesKnownValues) {
  const RefTensor x = values({4, 1}, {1, 2, 3, 6});
  const Tensors statistics = evaluate("batch_statistics", {x});
  EXPECT_EQ(statistics[0].data[0], 3);
  EXPECT_EQ(statistics[1].data[0], 3.5) << "the biased variance";
  const Tensors y = evaluate("batch_norm",
                             {x, values({1}, {3}), values({1}, {4}), values({1}, {2}), values({1}, {0.5}),
                              values({4, 1}, {0, 0, 0, -4})},
                             {{"eps", 0.0}, {"relu", true}});
  EXPECT_EQ(y[0].data, (std::vector<double>{0, 0, 0.5, 0}));
}

TEST(BatchNorm, SaysWhatDoesNotFit) {
  const TensorType x = f32({2, 3, 3, 8}), row = f32({8});
  const std::vector<ErrorCase> rows = {
      {"batch_statistics",
       {f32({1, 1, 1, 8})},
       {},
       "batch_statistics: expected more than 1 value per channel: x [1,1,1,8]"},
      {"batch_norm",
       {x, row, f32({3}), row, row},
       batch_norm_attrs(false, false),
       "batch_norm: variance must be [8], is [3]"},
      {"batch_norm",
       {x, row, row, row, row, f32({2, 3, 3, 4})},
       batch_norm_attrs(false, false),
       "batch_norm: residual must be [2,3,3,8], is [2,3,3,4]"},
      {"batch_norm",
       {x, {DType::kBf16, {8}}, row, row, row},
       batch_norm_attrs(false, false),
       "batch_norm: mean must be f32, is bf16[8]"},
      {"batch_norm_grad",
       {x, x, row, row, row, row, {DType::kBf16, {8}}},
       batch_norm_attrs(false, false),
       "batch_norm_grad: acc_dw must be f32, is bf16[8]"},
      {"batch_norm_add_grad",
       {x, x, row, row, row, row},
       batch_norm_attrs(false, false),
       "batch_norm_add_grad: y must be [2,3,3,8], is [8]"},
  };
  for (const auto& row_of_table : rows) EXPECT_EQ(operand_error(row_of_table), row_of_table.what);
}

}  // namespace
}  // namespace plimsoll::ops_testing
