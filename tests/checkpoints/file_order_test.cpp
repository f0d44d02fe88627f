// The order of a convolution's filters in files and in storage.
#include "checkpoints/file_order.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <vector>

namespace plimsoll::checkpoints {
namespace {

/// Values of filters [out, height, width, in] that are their own index in the file's [out, in, height,
/// width].
std::vector<float> stored_filters(int64_t out, int64_t height, int64_t width, int64_t in) {
  std::vector<float> values;
  for (int64_t o = 0; o < out; ++o)
    for (int64_t y = 0; y < height; ++y)
      for (int64_t x = 0; x < width; ++x)
        for (int64_t i = 0; i < in; ++i)
          values.push_back(static_cast<float>(((o * in + i) * height + y) * width + x));
  return values;
}

const models::ParameterView kView{.name = "w", .shape = {300, 3, 2, 5}, .form = models::FileForm::kFilters};

TEST(FileOrder, IsThatOfTheForm) {
  EXPECT_EQ(kView.file_shape(), (ir::Shape{300, 5, 3, 2}));
  EXPECT_FALSE(file_order(kView).is_stored());
  const models::ParameterView plain{.name = "w", .shape = {4, 3, 2, 5}};
  EXPECT_TRUE(file_order(plain).is_stored());
  const models::ParameterView depthwise{
      .name = "w", .shape = {4, 7, 7, 1}, .form = models::FileForm::kFilters};
  EXPECT_TRUE(file_order(depthwise).is_stored());
  EXPECT_EQ(depthwise.file_shape(), (ir::Shape{4, 1, 7, 7}));
  const models::ParameterView tokens{.name = "w", .shape = {4, 7}, .form = models::FileForm::kAxisBefore};
  EXPECT_TRUE(file_order(tokens).is_stored());
  EXPECT_EQ(tokens.file_shape(), (ir::Shape{1, 4, 7}));
}

TEST(FileOrder, ReadsFiltersAsFilesHaveThem) {
  const std::vector<float> stored = stored_filters(300, 3, 2, 5);  // more than a buffer holds
  const auto bytes = std::as_bytes(std::span(stored));
  std::vector<float> filed(stored.size());
  const ReadStored read = [&](int64_t offset, int64_t count, const runtime::TakePiece& take) -> Status {
    const auto all = bytes.subspan(static_cast<size_t>(offset), static_cast<size_t>(count));
    PLIMSOLL_TRY(take(all.first(20), 0));  // in pieces, as devices give them
    return take(all.subspan(20), 20);
  };
  ASSERT_TRUE(read_in_file_order(file_order(kView), 4, static_cast<int64_t>(bytes.size()), read,
                                 [&](std::span<const std::byte> piece, int64_t at) {
                                   std::memcpy(reinterpret_cast<std::byte*>(filed.data()) + at, piece.data(),
                                               piece.size());
                                   return Status(Ok{});
                                 }));
  std::vector<float> expected(stored.size());
  std::iota(expected.begin(), expected.end(), 0.0F);
  EXPECT_EQ(filed, expected);
}

TEST(FileOrder, FillsAnyPartOfTheStorage) {
  const std::vector<float> stored = stored_filters(300, 3, 2, 5);
  std::vector<float> filed(stored.size());
  std::iota(filed.begin(), filed.end(), 0.0F);
  const auto from = std::as_bytes(std::span(filed));
  const ReadFiled read = [&](int64_t offset, std::span<std::byte> bytes) -> Status {
    std::memcpy(bytes.data(), from.data() + offset, bytes.size());
    return Ok{};
  };
  for (const auto& [first, count] : {std::pair<size_t, size_t>{0, 9000}, {7, 1}, {29, 2}, {31, 1000}}) {
    std::vector<float> part(count);
    ASSERT_TRUE(fill_in_stored_order(file_order(kView), 4, static_cast<int64_t>(4 * first),
                                     std::as_writable_bytes(std::span(part)), read));
    EXPECT_TRUE(std::equal(part.begin(), part.end(), stored.begin() + static_cast<std::ptrdiff_t>(first)))
        << first;
  }
}

}  // namespace
}  // namespace plimsoll::checkpoints
