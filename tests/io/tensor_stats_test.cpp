// Statistics against sums written down plainly.
#include "io/tensor_stats.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "safetensors_bytes.h"
#include "temporary_folder.h"

namespace plimsoll::io {
namespace {

template <typename T>
TensorStats measure(const std::string& dtype, const std::vector<T>& values) {
  const TemporaryFolder folder;
  std::string payload(values.size() * sizeof(T), '\0');
  if (!values.empty()) std::memcpy(payload.data(), values.data(), payload.size());
  const std::string header =
      "{" + header_entry("x", dtype, std::to_string(values.size()), "0," + std::to_string(payload.size())) +
      "}";
  const auto file = SafetensorsFile::open(folder.write("a", safetensors_bytes(header, payload)));
  EXPECT_TRUE(file) << file.error().message();
  const auto stats = measure_tensor(*file, file->tensors()[0]);
  EXPECT_TRUE(stats) << stats.error().message();
  return *stats;
}

/// Far from zero with a small spread, where a sum of squares would lose everything.
template <typename T>
void expect_right(const std::string& dtype, double tolerance) {
  for (const size_t n : {1U, 7U, 2048U, 2049U, 50'001U}) {
    std::vector<T> values(n);
    for (size_t i = 0; i < n; ++i)
      values[i] = static_cast<T>(1000.0 + std::sin(static_cast<double>(i)) * 1e-3);
    double mean = 0, squares = 0;
    for (const T x : values) mean += static_cast<double>(x) / static_cast<double>(n);
    for (const T x : values) squares += std::pow(static_cast<double>(x) - mean, 2);
    const TensorStats stats = measure(dtype, values);
    EXPECT_EQ(stats.elements, static_cast<int64_t>(n));
    EXPECT_EQ(stats.finite, static_cast<int64_t>(n));
    EXPECT_EQ(stats.zeros, 0);
    EXPECT_EQ(stats.min, static_cast<double>(*std::min_element(values.begin(), values.end())));
    EXPECT_EQ(stats.max, static_cast<double>(*std::max_element(values.begin(), values.end())));
    EXPECT_NEAR(stats.mean, mean, 1e-10);
    EXPECT_NEAR(stats.std, std::sqrt(squares / static_cast<double>(n)), tolerance);
  }
}

TEST(TensorStats, AgreesWithPlainSums) {
  expect_right<float>("F32", 1e-10);
  expect_right<double>("F64", 1e-10);
}

TEST(TensorStats, CountsWhatIsNotFinite) {
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  const TensorStats stats = measure<float>("F32", {nan, 0.0F, -0.0F, 2.0F, infinity, -infinity, -4.0F, -nan});
  EXPECT_EQ(stats.elements, 8);
  EXPECT_EQ(stats.finite, 4);
  EXPECT_EQ(stats.zeros, 2);
  EXPECT_EQ(stats.min, -4.0);
  EXPECT_EQ(stats.max, 2.0);
  EXPECT_EQ(stats.mean, -0.5);
  EXPECT_DOUBLE_EQ(stats.std, std::sqrt((0.25 + 0.25 + 6.25 + 12.25) / 4));
  EXPECT_EQ(measure<float>("F32", {nan, nan}).finite, 0);
  EXPECT_EQ(measure<float>("F32", {}).elements, 0);
}

TEST(TensorStats, ReadsSmallTypes) {
  const TensorStats bf16 = measure<uint16_t>("BF16", {0x3f80, 0xc040, 0x0000, 0x7fc0});  // 1, -3, 0, NaN
  EXPECT_EQ(bf16.finite, 3);
  EXPECT_EQ(bf16.min, -3.0);
  EXPECT_EQ(bf16.max, 1.0);
  const TensorStats f16 = measure<uint16_t>("F16", {0x3c00, 0xfbff, 0x0001});  // 1, -65504, 2^-24
  EXPECT_EQ(f16.min, -65504.0);
  EXPECT_EQ(f16.zeros, 0);
  const TensorStats e4m3 = measure<uint8_t>("F8_E4M3", {0x7e, 0xfe, 0x7f, 0x01, 0x38});  // ±448, NaN, 2^-9, 1
  EXPECT_EQ(e4m3.finite, 4);
  EXPECT_EQ(e4m3.max, 448.0);
  EXPECT_EQ(e4m3.min, -448.0);
  EXPECT_DOUBLE_EQ(e4m3.mean, (1 + 0x1p-9) / 4);
  const TensorStats e5m2 = measure<uint8_t>("F8_E5M2", {0x7b, 0x7c, 0x7f, 0x3c});  // 57344, infinity, NaN, 1
  EXPECT_EQ(e5m2.finite, 2);
  EXPECT_EQ(e5m2.max, 57344.0);
  EXPECT_EQ(measure<int32_t>("I32", {1, 2}).elements, 0) << "integers have none";
}

TEST(TensorStats, ThreadsDoNotMatter) {
  const TemporaryFolder folder;
  std::string members, payload;
  for (int t = 0; t < 20; ++t) {
    const std::string begin = std::to_string(payload.size());
    for (int i = 0; i < 3000 + t; ++i) {
      const float x = std::sin(static_cast<float>(i * (t + 1)));
      payload.append(reinterpret_cast<const char*>(&x), 4);
    }
    members += (t == 0 ? "" : ",") + header_entry("t" + std::to_string(t), "F32", std::to_string(3000 + t),
                                                  begin + "," + std::to_string(payload.size()));
  }
  const auto file = SafetensorsFile::open(folder.write("a", safetensors_bytes("{" + members + "}", payload)));
  ASSERT_TRUE(file) << file.error().message();
  std::vector<WeightRef> refs;
  for (const auto& tensor : file->tensors()) refs.push_back({&*file, &tensor});
  const auto one = measure_tensors(refs, 1), three = measure_tensors(refs, 3);
  ASSERT_TRUE(one && three);
  for (size_t i = 0; i < refs.size(); ++i) {
    EXPECT_EQ(std::memcmp(&(*one)[i], &(*three)[i], sizeof(TensorStats)), 0) << i;
    EXPECT_EQ((*one)[i].elements, refs[i].tensor->num_elements());
  }
}

}  // namespace
}  // namespace plimsoll::io
