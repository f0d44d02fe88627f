// Softmax and its logarithm: derivatives, known values, operands that do not fit.
#include "ops/softmax.h"

#include <gtest/gtest.h>

#include "ops/op_testing.h"

namespace plimsoll::ops_testing {
namespace {

TEST(Softmax, DerivativesMatchFiniteDifferences) {
  for (const bool log : {false, true})
    EXPECT_LT(derivative_error({"", "softmax", {normal({3, 5})}, {{"log", log}}}), kDerivativeTolerance)
        << log;
}

TEST(Softmax, GivesKnownValues) {
  const RefTensor x = values({2, 2}, {0, std::log(3.0), 1000, 1000});
  EXPECT_LT(distance(evaluate("softmax", {x})[0], values({2, 2}, {0.25, 0.75, 0.5, 0.5})), 1e-12);
  EXPECT_LT(distance(evaluate("softmax", {x}, {{"log", true}})[0],
                     values({2, 2}, {std::log(0.25), std::log(0.75), std::log(0.5), std::log(0.5)})),
            1e-12);
  EXPECT_EQ(operand_error({"softmax_grad", {f32({2}), f32({3})}, {}, ""}),
            "softmax_grad: y must be [2], is [3]");
}

}  // namespace
}  // namespace plimsoll::ops_testing
