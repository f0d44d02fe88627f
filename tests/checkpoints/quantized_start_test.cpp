// Adapters that begin beside what rounding leaves of a matrix.
#include "checkpoints/quantized_start.h"

#include <gtest/gtest.h>

#include <cmath>

#include "checkpoints/adapter_change.h"
#include "ops/block_values.h"

namespace plimsoll::checkpoints {
namespace {

constexpr int64_t kOuts = 40, kIn = 70;

Values drawn_matrix() {
  Values w(static_cast<size_t>(kOuts * kIn));
  uint32_t state = 1;
  for (float& v : w) {
    state = state * 1664525U + 1013904223U;
    v = static_cast<float>(state >> 8) / 0x1p24F - 0.5F;
  }
  return w;
}

QuantizedStartOptions options_of(models::Factors factors, ir::DType dtype, int64_t iterations = 1) {
  return {.type = {dtype, {kOuts, kIn}},
          .shape = {kOuts, kIn, 5, 2.0},
          .factors = factors,
          .iterations = iterations};
}

Values numbers_of(const QuantizedStart& start, const ir::TensorType& type) {
  Values q(static_cast<size_t>(type.num_elements()));
  ops::dequantize(type, start.storage.data(), 0, std::span(q));
  return q;
}

/// |W - (Q + s B A)|, Q lying as [outs, in].
double distance(const Values& w, Values q, const numerics::LowRankFactors& f, const AdaptedShape& shape) {
  for (size_t i = 0; i < q.size(); ++i) q[i] = w[i] - q[i];
  subtract_factors(f, shape, q);
  double sum = 0;
  for (const float v : q) sum += static_cast<double>(v) * static_cast<double>(v);
  return std::sqrt(sum);
}

TEST(QuantizedStart, LoftqComesNearerThanRoundingAlone) {
  const Values w = drawn_matrix();
  for (const ir::DType dtype :
       {ir::DType::kNf4, ir::DType::kNf4Double, ir::DType::kFp4, ir::DType::kI8Rows}) {
    const auto o = options_of(models::Factors::kLoftq, dtype);
    const QuantizedStart once = start_quantized(w, o);
    const Values q = numbers_of(once, o.type);
    const numerics::LowRankFactors none{Values(kOuts * 5, 0.0F), Values(5 * kIn, 0.0F)};
    const double plain = distance(w, q, none, o.shape), with = distance(w, q, once.factors, o.shape);
    EXPECT_LT(with, 0.95 * plain) << ir::name(dtype);
    const auto again = options_of(models::Factors::kLoftq, dtype, 6);
    const QuantizedStart often = start_quantized(w, again);
    EXPECT_LT(distance(w, numbers_of(often, o.type), often.factors, o.shape), 1.02 * with) << ir::name(dtype);
    EXPECT_NE(often.storage, once.storage);
    EXPECT_EQ(start_quantized(w, again).storage, often.storage);
  }
}

TEST(QuantizedStart, PrincipalPartsAreNotRounded) {
  const Values w = drawn_matrix();
  for (const models::Factors factors : {models::Factors::kSvd, models::Factors::kQr}) {
    const auto o = options_of(factors, ir::DType::kNf4);
    const QuantizedStart start = start_quantized(w, o);
    const numerics::LowRankFactors expected = low_rank_factors(w, o.shape, factors);
    EXPECT_EQ(start.factors.left, expected.left);
    EXPECT_EQ(start.factors.right, expected.right);
    Values rest = w;
    subtract_factors(expected, o.shape, rest);
    const Values q = numbers_of(start, o.type);
    for (size_t i = 0; i < rest.size(); ++i) EXPECT_NEAR(q[i], rest[i], 0.12);
  }
}

TEST(QuantizedStart, OfAMatrixThatLiesTransposed) {
  const Values w = drawn_matrix(), across = transpose(w, kOuts, kIn);
  for (const models::Factors factors :
       {models::Factors::kSvd, models::Factors::kQr, models::Factors::kLoftq}) {
    auto o = options_of(factors, ir::DType::kNf4, 2);
    o.type.shape = {kIn, kOuts};
    o.transposed = true;
    const QuantizedStart start = start_quantized(across, o);
    const Values q = transpose(numbers_of(start, o.type), kIn, kOuts);
    EXPECT_LT(distance(w, q, start.factors, o.shape), 0.1 * std::sqrt(kOuts * kIn / 12.0));
  }
}

}  // namespace
}  // namespace plimsoll::checkpoints
