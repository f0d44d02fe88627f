// Block formats against the formulas in double, written down apart from the code: scales first, then each
// number's code as the nearest of all codes, then what is decoded.
#include "numerics/blocks.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>

#include "numerics/convert.h"
#include "numerics/reference.h"

namespace plimsoll::numerics {
namespace {

struct Rounded {
  std::vector<std::byte> codes, scales;
  std::vector<float> numbers;
  TensorScale tensor;
  int64_t clipped = 0;
};

Rounded rounded(Scheme scheme, std::span<const float> x, int64_t rows, int64_t cols) {
  Rounded r;
  r.tensor = tensor_scale(scheme, largest_magnitude(x));
  r.codes.resize(static_cast<size_t>(rows * code_row_bytes(scheme, cols)));
  r.scales.resize(
      static_cast<size_t>(scale_rows(scheme, rows) * scale_cols(scheme, cols) * scale_bytes(scheme)));
  r.numbers.resize(x.size());
  r.clipped = quantize(scheme, r.tensor, x, rows, cols, r.codes, r.scales);
  dequantize(scheme, r.tensor, r.codes, r.scales, rows, cols, r.numbers);
  return r;
}

uint32_t code_at(Scheme scheme, const Rounded& r, int64_t cols, int64_t row, int64_t col) {
  const auto base = static_cast<size_t>(row * code_row_bytes(scheme, cols));
  if (info(info(scheme).codes).stored_bits == 4)
    return std::to_integer<uint32_t>(r.codes[base + static_cast<size_t>(col / 2)]) >> (col % 2 * 4) & 15;
  return std::to_integer<uint32_t>(r.codes[base + static_cast<size_t>(col)]);
}

float float_at(const std::vector<std::byte>& bytes, int64_t index) {
  float value;
  std::memcpy(&value, &bytes[static_cast<size_t>(index) * 4], 4);
  return value;
}

const Definition& definition(Format format) {
  for (const Definition& d : kDefinitions)
    if (d.format == format) return d;
  return kDefinitions[0];
}

uint32_t nearest(Format format, float x) {
  const Definition& d = definition(format);
  static std::map<Format, std::vector<double>> values;
  if (!values.contains(format)) values[format] = finite_values(d);
  if (std::isnan(x)) return format == Format::kE2m1 ? 7 : std::signbit(x) ? 255 : 127;
  return nearest_code(d, values[format], x, true);
}

double value_of(Format format, uint32_t code) {
  static std::map<Format, std::vector<double>> values;
  const Definition& d = definition(format);
  if (!values.contains(format)) values[format] = finite_values(d);
  const uint32_t sign = 1U << (d.exponent_bits + d.mantissa_bits);
  return (code & sign) != 0 ? -values[format][code & (sign - 1)] : values[format][code];
}

/// What a block comes to: the multiplier of numbers, of codes, and the bytes of its scale.
struct Expected {
  float encode, decode;
  std::vector<std::byte> scale;
};

template <class T>
std::vector<std::byte> bytes_of(T value) {
  std::vector<std::byte> bytes(sizeof(T));
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}

float rn(double x) { return static_cast<float>(x); }  // one rounding to f32

Expected expected_scale(Scheme scheme, float amax, float tensor_amax) {
  constexpr double kMax = 0x1.fffffep127;
  if (scheme == Scheme::kMxfp8) {
    const double v = double{rn(double{amax} * double{rn(1.0 / 448)})};
    int e = 0;
    while (e < 254 && std::ldexp(1.0, e - 127) < v) ++e;
    return {rn(std::ldexp(1.0, 127 - e)), rn(std::ldexp(1.0, e - 127)), {std::byte(e)}};
  }
  if (scheme == Scheme::kNvfp4) {
    const float s = tensor_amax == 0 ? 1.0F : rn(std::min(kMax, 2688.0 / double{tensor_amax}));
    const uint32_t code =
        nearest(Format::kE4m3, rn(double{amax} * double{rn(double{s} * double{rn(1.0 / 6)})}));
    const double block = value_of(Format::kE4m3, code);
    const double product = double{rn(block * double{rn(1.0 / double{s})})};
    const float encode = product == 0 ? rn(kMax) : rn(std::min(kMax, double{rn(1.0 / product)}));
    return {encode, rn(double{rn(block * double{tensor_amax})} * double{rn(1.0 / 2688)}), {std::byte(code)}};
  }
  double scale = amax == 0 ? 1.0 : std::min(kMax, double{rn(448.0 / double{amax})});
  int exponent = 0;
  std::frexp(scale, &exponent);
  scale = std::ldexp(1.0, exponent - 1);
  return {rn(scale), rn(1 / scale), bytes_of(rn(1 / scale))};
}

void check_scaled(const char* target, Scheme scheme, const std::vector<float>& x, int64_t rows,
                  int64_t cols) {
  const SchemeInfo& s = info(scheme);
  const Rounded r = rounded(scheme, x, rows, cols);
  int64_t index = 0;
  for (int64_t row = 0; row < rows; row += s.block_rows)
    for (int64_t col = 0; col < cols; col += s.block_cols, ++index) {
      float amax = 0;
      const int64_t row_end = std::min(rows, row + s.block_rows),
                    col_end = std::min(cols, col + s.block_cols);
      for (int64_t i = row; i < row_end; ++i)
        for (int64_t j = col; j < col_end; ++j)
          amax = std::fmax(amax, std::abs(x[static_cast<size_t>(i * cols + j)]));
      const Expected e = expected_scale(scheme, amax, r.tensor.amax);
      ASSERT_EQ(0, std::memcmp(e.scale.data(), &r.scales[static_cast<size_t>(index) * e.scale.size()],
                               e.scale.size()))
          << target << " " << s.name << " block " << index << " amax " << amax;
      for (int64_t i = row; i < row_end; ++i)
        for (int64_t j = col; j < col_end; ++j) {
          const auto at = static_cast<size_t>(i * cols + j);
          const uint32_t code = nearest(s.codes, rn(double{x[at]} * double{e.encode}));
          ASSERT_EQ(code_at(scheme, r, cols, i, j), code) << target << " " << s.name << " " << x[at];
          if (std::isnan(x[at])) continue;
          ASSERT_EQ(r.numbers[at], rn(value_of(s.codes, code) * double{e.decode})) << s.name << " " << x[at];
        }
    }
}

/// Matrices that blocks fill, fill in part, or do not reach; numbers of all sizes.
template <class Body>
void for_matrices(Body&& body) {
  const std::pair<int64_t, int64_t> shapes[] = {{1, 1},     {1, 15},    {3, 16},  {2, 33},  {5, 130},
                                                {130, 129}, {129, 259}, {2, 640}, {1, 1100}};
  for (const auto& [rows, cols] : shapes) {
    const auto n = static_cast<size_t>(rows * cols);
    auto x = ordinary_floats(n, static_cast<uint64_t>(cols));
    body(x, rows, cols);
    for (size_t i = 0; i < n; ++i) x[i] = std::ldexp(x[i], static_cast<int>(i / 7 % 200) - 100);
    body(x, rows, cols);
    for (size_t i = 0; i < n; ++i)
      x[i] = std::ldexp(x[i], -60 - static_cast<int>(i % 20));  // f32's subnormals
    body(x, rows, cols);
    std::fill(x.begin(), x.end(), 0.0F);
    body(x, rows, cols);
    x[n / 2] = std::nanf("");
    x[n / 3] = -2.5F;
    body(x, rows, cols);
    for (size_t i = 0; i < n; ++i) x[i] = i % 3 == 0 ? 0x1.fffffep127F : -0x1p127F;
    body(x, rows, cols);
  }
}

TEST(Blocks, ScalesAndCodesFollowTheFormulas) {
  EachTarget().run([](const char* target) {
    for_matrices([&](const std::vector<float>& x, int64_t rows, int64_t cols) {
      for (const Scheme scheme :
           {Scheme::kFp8Block1x128, Scheme::kFp8Block128x128, Scheme::kMxfp8, Scheme::kNvfp4})
        ASSERT_NO_FATAL_FAILURE(check_scaled(target, scheme, x, rows, cols));
    });
  });
}

TEST(Blocks, LargeMatricesAreTheirParts) {
  // From 8 MiB on numbers are read ahead and results go past the caches, wherever they begin.
  constexpr int64_t kRows = 2048, kCols = 1033;
  const auto x = ordinary_floats(static_cast<size_t>(kRows * kCols));
  EachTarget().run([&](const char* target) {
    for (const Scheme scheme : {Scheme::kMxfp8, Scheme::kNf4, Scheme::kInt8Block256}) {
      const Rounded whole = rounded(scheme, x, kRows, kCols);
      const auto half = std::span(x).subspan(x.size() / 2);
      const Rounded part = rounded(scheme, half, kRows / 2, kCols);
      EXPECT_TRUE(std::equal(part.codes.rbegin(), part.codes.rend(), whole.codes.rbegin())) << target;
      EXPECT_TRUE(std::equal(part.scales.rbegin(), part.scales.rend(), whole.scales.rbegin())) << target;
      EXPECT_TRUE(std::equal(part.numbers.rbegin(), part.numbers.rend(), whole.numbers.rbegin())) << target;
    }
  });
}

TEST(Blocks, TensorScaleIsCurrentScaling) {
  EachTarget().run([](const char* target) {
    for (const Scheme scheme : {Scheme::kE4m3, Scheme::kE5m2}) {
      const Format format = info(scheme).codes;
      const auto x = ordinary_floats(1001);
      const Rounded r = rounded(scheme, x, 7, 143);
      float amax = 0;
      for (const float v : x) amax = std::max(amax, std::abs(v));
      EXPECT_EQ(r.tensor.amax, amax);
      EXPECT_EQ(r.tensor.scale, rn(info(format).max / double{amax}));
      EXPECT_EQ(r.tensor.decode, rn(1.0 / double{r.tensor.scale}));
      for (size_t i = 0; i < x.size(); ++i) {
        const uint32_t code = nearest(format, rn(double{x[i]} * double{r.tensor.scale}));
        ASSERT_EQ(std::to_integer<uint32_t>(r.codes[i]), code) << target;
        ASSERT_EQ(r.numbers[i], rn(value_of(format, code) * double{r.tensor.decode})) << target;
      }
    }
  });
}

TEST(Blocks, TensorScaleOfNothingInfinityAndTheVerySmall) {
  EXPECT_EQ(tensor_scale(Scheme::kE4m3, 0).scale, 1);
  EXPECT_EQ(tensor_scale(Scheme::kE4m3, HUGE_VALF).scale, 1);
  EXPECT_EQ(tensor_scale(Scheme::kE4m3, 0x1p-149F).scale, 0x1.fffffep127F);
  EXPECT_EQ(tensor_scale(Scheme::kNvfp4, 2688).scale, 1);
  EXPECT_EQ(tensor_scale(Scheme::kNvfp4, HUGE_VALF).scale, 1);
}

TEST(Blocks, Nf4TakesTheNearestOfItsValues) {
  EachTarget().run([](const char* target) {
    for_matrices([&](const std::vector<float>& x, int64_t rows, int64_t cols) {
      const Rounded r = rounded(Scheme::kNf4, x, rows, cols);
      const int64_t blocks = (cols + 63) / 64;
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < cols; ++j) {
          const float v = x[static_cast<size_t>(i * cols + j)];
          const double absmax = double{float_at(r.scales, i * blocks + j / 64)};
          ASSERT_TRUE(std::isnan(v) || std::abs(double{v}) <= absmax);
          // Products of 24-bit numbers: exact in double.
          uint32_t best = 7;
          for (uint32_t c = 0; c < 16 && !std::isnan(v); ++c)
            if (std::abs(double{v} - double{kNf4Values[c]} * absmax) <
                std::abs(double{v} - double{kNf4Values[best]} * absmax))
              best = c;
          const uint32_t code = code_at(Scheme::kNf4, r, cols, i, j);
          ASSERT_EQ(code, best) << target << " " << v << " of " << absmax;
          ASSERT_EQ(r.numbers[static_cast<size_t>(i * cols + j)], rn(double{kNf4Values[code]} * absmax));
        }
    });
  });
}

TEST(Blocks, Int8IsTheNearestIntegerExactly) {
  EachTarget().run([](const char* target) {
    const auto check = [&](const std::vector<float>& x, int64_t rows, int64_t cols) {
      const Rounded r = rounded(Scheme::kInt8Block256, x, rows, cols);
      const int64_t blocks = (cols + 255) / 256;
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < cols; ++j) {
          const float v = x[static_cast<size_t>(i * cols + j)];
          const double absmax = double{float_at(r.scales, i * blocks + j / 256)};
          const double exact = std::isnan(v) || absmax == 0 ? 0 : std::nearbyint(double{v} * 127 / absmax);
          const auto code = static_cast<int8_t>(code_at(Scheme::kInt8Block256, r, cols, i, j));
          ASSERT_EQ(code, exact) << target << " " << v << " of " << absmax;
          ASSERT_EQ(r.numbers[static_cast<size_t>(i * cols + j)],
                    rn(static_cast<double>(code) * absmax / 127.0));
        }
    };
    for_matrices(check);
    std::vector<float> ties = {127};  // k + 1/2 steps, and their neighbours
    for (int k = 0; k < 127; ++k)
      for (const float v :
           {static_cast<float>(k) + 0.5F, std::nextafterf(static_cast<float>(k) + 0.5F, 0.0F)})
        ties.push_back(k % 2 == 0 ? v : -v);
    for (const float unit : {1.0F, 1.0F / 3, 0x1p-140F}) {
      std::vector<float> x;
      for (const float v : ties) x.push_back(v * unit);
      check(x, 1, static_cast<int64_t>(x.size()));
    }
  });
}

TEST(Blocks, InfinitiesSaturateAndAreNotCountedAsClipped) {
  std::vector<float> x = ordinary_floats(256);
  x[5] = HUGE_VALF, x[70] = -HUGE_VALF;
  for (const SchemeInfo& s : schemes()) {
    const Rounded r = rounded(s.scheme, x, 2, 128);
    EXPECT_EQ(r.clipped, 0) << s.name;
    EXPECT_GT(r.numbers[5], 0) << s.name;
    EXPECT_LT(r.numbers[70], 0) << s.name;
  }
  EXPECT_EQ(rounded(Scheme::kE4m3, x, 2, 128).numbers[5], 448);
}

TEST(Blocks, ClippedAreThoseBeyondTheLargestCodeByMoreThanRounding) {
  const std::vector<float> half = {65504, 65519.9F, 65520, -70000, 1};
  EXPECT_EQ(rounded(Scheme::kFp16, half, 1, 5).clipped, 2);
  EXPECT_EQ(rounded(Scheme::kBf16, half, 1, 5).clipped, 0);
  // With an infinity the scale is 1, and E4M3 ends at 448; 464 rounds to it, more does not.
  const std::vector<float> eight = {HUGE_VALF, 448, 464, 464.1F, -1000, 3};
  EXPECT_EQ(rounded(Scheme::kE4m3, eight, 1, 6).clipped, 2);
}

/// A block whose scale vanishes beside the tensor's becomes zeros: nothing of it is clipped.
TEST(Blocks, AVanishedScaleClipsNothing) {
  std::vector<float> x(32, 1.0F);
  x[0] = 1e4F;
  for (size_t i = 16; i < 32; ++i) x[i] = 1e-6F * static_cast<float>(i);
  EXPECT_EQ(rounded(Scheme::kNvfp4, x, 2, 16).clipped, 0);
}

TEST(Blocks, HalfBytesBeginWithEachRow) {
  const std::vector<float> x = {6, -6, 0.5F, 1, 2, 3};
  const Rounded r = rounded(Scheme::kNvfp4, x, 2, 3);
  ASSERT_EQ(r.codes.size(), 4U);
  EXPECT_EQ(r.codes[0], std::byte{0xF7});
  EXPECT_EQ(r.codes[1], std::byte{0x01});
  EXPECT_EQ(r.codes[3] >> 4, std::byte{0});
  EXPECT_EQ(r.scales.size(), 2U);
}

TEST(Blocks, NamesAreFoundAndDifferent) {
  std::set<std::string> names;
  for (const SchemeInfo& s : schemes()) {
    EXPECT_EQ(find_scheme(s.name), s.scheme);
    names.emplace(s.name);
  }
  EXPECT_EQ(names.size(), schemes().size());
  EXPECT_EQ(find_scheme("fp9"), std::nullopt);
  EXPECT_DOUBLE_EQ(bits_per_value(Scheme::kNvfp4), 4.5);
  EXPECT_DOUBLE_EQ(bits_per_value(Scheme::kMxfp8), 8.25);
  EXPECT_DOUBLE_EQ(bits_per_value(Scheme::kNf4), 4.5);
}

}  // namespace
}  // namespace plimsoll::numerics
