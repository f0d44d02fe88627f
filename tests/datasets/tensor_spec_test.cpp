// Sizes, copies and padding of tensors of any shape, element size and length axis.
#include "datasets/tensor_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace plimsoll::datasets {
namespace {

using testing::ElementsAre;

template <class T>
std::vector<T> copied(const TensorSpec& tensor, std::vector<T> from, int64_t from_length, int64_t to_length) {
  std::vector<T> to(static_cast<size_t>(tensor.example_shape(to_length).num_elements()));
  copy_example(tensor, std::as_bytes(std::span(from)), from_length, std::as_writable_bytes(std::span(to)),
               to_length);
  return to;
}

TEST(TensorSpec, HasTheShapeOfItsExamples) {
  const TensorSpec image{.name = "pixels", .dtype = ir::DType::kU8, .shape = {3, 4}};
  EXPECT_EQ(image.batch_type(5, 100), (ir::TensorType{ir::DType::kU8, {5, 3, 4}}));
  EXPECT_EQ(image.example_bytes(100), 12) << "no length";
  const TensorSpec label{.name = "label"};
  EXPECT_EQ(label.batch_type(5, 100), (ir::TensorType{ir::DType::kI32, {5}}));
  EXPECT_EQ(label.example_bytes(1), 4);
  const TensorSpec frames{.name = "frames", .dtype = ir::DType::kBf16, .shape = {2, 0, 3}, .length_axis = 1};
  EXPECT_EQ(frames.batch_type(5, 7), (ir::TensorType{ir::DType::kBf16, {5, 2, 7, 3}}));
  EXPECT_EQ(frames.example_bytes(7), 2 * 2 * 7 * 3);
  EXPECT_EQ(token_tensor("tokens", 0).batch_type(5, 7), (ir::TensorType{ir::DType::kI32, {5, 7}}));
}

TEST(TensorSpec, CopiesPadBehindTheLength) {
  EXPECT_THAT(copied<int32_t>(token_tensor("t", -100), {1, 2}, 2, 4), ElementsAre(1, 2, -100, -100));
  EXPECT_THAT(copied<int32_t>(token_tensor("d", 0, Padding::kIndex), {0, 0}, 2, 4), ElementsAre(0, 0, 2, 3));
  EXPECT_THAT(copied<int32_t>(token_tensor("t", 9), {1, 2}, 2, 2), ElementsAre(1, 2));
}

TEST(TensorSpec, PadsAlongAnyAxis) {
  const TensorSpec channels{
      .name = "c", .dtype = ir::DType::kU8, .shape = {2, 0}, .length_axis = 1, .padding_bits = 7};
  EXPECT_THAT(copied<uint8_t>(channels, {1, 2, 3, 4}, 2, 3), ElementsAre(1, 2, 7, 3, 4, 7));
  const TensorSpec frames{
      .name = "f", .dtype = ir::DType::kF16, .shape = {0, 2}, .length_axis = 0, .padding = Padding::kIndex};
  EXPECT_THAT(copied<uint16_t>(frames, {5, 6}, 1, 3), ElementsAre(5, 6, 1, 1, 2, 2));
}

TEST(TensorSpec, AnExampleOfNoLengthIsPaddedAsAWhole) {
  const TensorSpec numbers{.name = "n",
                           .dtype = ir::DType::kF32,
                           .shape = {3},
                           .padding_bits = element_bits(std::numeric_limits<float>::quiet_NaN())};
  std::vector<float> to(3);
  pad_example(numbers, std::as_writable_bytes(std::span(to)));
  for (const float value : to) EXPECT_TRUE(std::isnan(value));
  EXPECT_THAT(copied<float>(numbers, {1, 2, 3}, 8, 16), ElementsAre(1, 2, 3));
}

}  // namespace
}  // namespace plimsoll::datasets
