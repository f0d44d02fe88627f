#include "ir/span.h"

#include <gtest/gtest.h>

namespace plimsoll::ir {
namespace {

TEST(Span, OfWhatIsDenseIsAllOfIt) {
  const TensorType type{DType::kF32, {3, 4}};
  EXPECT_EQ(span_bytes(type, dense_strides(type.shape)), type.bytes().count);
}

TEST(Span, OfAViewEndsBehindItsLastElement) {
  // Columns of rows of ten: two whole rows, and two elements of the third.
  const TensorType type{DType::kBf16, {3, 2}};
  Strides strides{};
  strides[0] = 10, strides[1] = 1;
  EXPECT_EQ(span_bytes(type, strides), 2 * (2 * 10 + 2));
}

TEST(Span, OfRepeatedElementsIsThatOfOne) {
  const TensorType type{DType::kF32, {5, 7}};
  EXPECT_EQ(span_bytes(type, Strides{}), 4);
}

}  // namespace
}  // namespace plimsoll::ir
