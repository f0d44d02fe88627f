// Each conversion against its definition, on every instruction set, at every length and offset.
#include "numerics/convert.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "numerics/reference.h"

namespace plimsoll::numerics {
namespace {

std::vector<uint32_t> encoded(Format format, std::span<const float> x, const EncodeOptions& options = {}) {
  const auto n = static_cast<int64_t>(x.size());
  std::vector<std::byte> bytes(static_cast<size_t>(encoded_bytes(format, n)));
  encode(format, x, bytes, options);
  std::vector<uint32_t> codes(x.size());
  const int bits = info(format).stored_bits;
  for (size_t i = 0; i < x.size(); ++i) {
    if (bits == 4)
      codes[i] = std::to_integer<uint32_t>(bytes[i / 2]) >> (i % 2 * 4) & 15;
    else
      std::memcpy(&codes[i], &bytes[i * static_cast<size_t>(bits / 8)], static_cast<size_t>(bits / 8));
  }
  return codes;
}

std::vector<float> decoded(Format format, std::span<const uint32_t> codes) {
  const int bits = info(format).stored_bits;
  std::vector<std::byte> bytes(
      static_cast<size_t>(encoded_bytes(format, static_cast<int64_t>(codes.size()))));
  for (size_t i = 0; i < codes.size(); ++i) {
    if (bits == 4)
      bytes[i / 2] |= static_cast<std::byte>(codes[i] << (i % 2 * 4));
    else
      std::memcpy(&bytes[i * static_cast<size_t>(bits / 8)], &codes[i], static_cast<size_t>(bits / 8));
  }
  std::vector<float> x(codes.size());
  decode(format, bytes, x);
  return x;
}

uint32_t bits_of(float x) { return std::bit_cast<uint32_t>(x); }

std::string where(const char* target, Format format, uint32_t bits) {
  char text[80];
  std::snprintf(text, sizeof text, "%s %s 0x%08x", target, std::string(info(format).name).c_str(), bits);
  return text;
}

/// All codes of a format that is sign, exponent, mantissa.
std::vector<uint32_t> all_codes(const Definition& d) {
  std::vector<uint32_t> codes(size_t{2} << (d.exponent_bits + d.mantissa_bits));
  for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<uint32_t>(i);
  return codes;
}

void check_decoded(const char* target, const Definition& d, std::span<const float> x) {
  const auto values = finite_values(d);
  const int bits = d.exponent_bits + d.mantissa_bits;
  for (uint32_t code = 0; code < x.size(); ++code) {
    const uint32_t magnitude = code & ((1U << bits) - 1);
    const bool is_negative = code >> bits != 0;
    ASSERT_EQ(std::signbit(x[code]), is_negative) << where(target, d.format, code);
    if (magnitude < values.size())
      ASSERT_EQ(std::abs(x[code]), values[magnitude]) << where(target, d.format, code);
    else if (magnitude == values.size() && d.ieee_specials)
      ASSERT_TRUE(std::isinf(x[code])) << where(target, d.format, code);
    else
      ASSERT_TRUE(std::isnan(x[code])) << where(target, d.format, code);
  }
}

TEST(Convert, DecodesEveryCodeAndEncodesItBack) {
  EachTarget().run([](const char* target) {
    for (const Definition& d : kDefinitions) {
      const auto codes = all_codes(d);
      const auto x = decoded(d.format, codes);
      check_decoded(target, d, x);
      for (const bool saturate : {false, true}) {
        const auto again = encoded(d.format, x, {.saturate = saturate});
        const auto numbers = decoded(d.format, again);
        for (const uint32_t code : codes) {
          const bool is_kept = std::isfinite(x[code]) || (std::isinf(x[code]) && !saturate);
          ASSERT_TRUE(again[code] == code || !is_kept) << where(target, d.format, code);
          ASSERT_EQ(std::isnan(numbers[code]), std::isnan(x[code])) << where(target, d.format, code);
        }
      }
    }
  });
}

TEST(Convert, RoundsToNearestEvenWithAndWithoutSaturation) {
  EachTarget().run([](const char* target) {
    for (const Definition& d : kDefinitions) {
      const auto values = finite_values(d);
      auto x = adversarial(values);
      const auto more = random_floats(20000);
      x.insert(x.end(), more.begin(), more.end());
      for (const bool saturate : {false, true}) {
        const auto codes = encoded(d.format, x, {.saturate = saturate});
        for (size_t i = 0; i < x.size(); ++i) {
          if (std::isnan(x[i])) continue;
          ASSERT_EQ(codes[i], nearest_code(d, values, x[i], saturate))
              << where(target, d.format, bits_of(x[i]));
        }
      }
    }
  });
}

/// Every kind of number, each of the upper 22 bits' patterns once, the lower ones at random.
std::vector<float> spread_floats() {
  std::vector<float> x = random_floats(size_t{1} << 22, 23);
  for (uint32_t i = 0; i < x.size(); ++i)
    x[i] = std::bit_cast<float>(i << 10 | (std::bit_cast<uint32_t>(x[i]) & 0x3FFU));
  return x;
}

TEST(Convert, RoundsEveryKindOfNumber) {
  const auto x = spread_floats();
  for (const Definition& d : kDefinitions) {
    const auto values = finite_values(d);
    const auto codes = encoded(d.format, x);
    for (size_t i = 0; i < x.size(); ++i)
      if (!std::isnan(x[i]) && codes[i] != nearest_code(d, values, x[i], false))
        FAIL() << where("best", d.format, bits_of(x[i])) << " gives " << codes[i];
  }
}

TEST(Convert, IsTheSameOnEveryInstructionSet) {
  const auto x = spread_floats();
  std::vector<float> numbers(x.size()), first_numbers(x.size());
  std::vector<std::byte> codes(x.size() * sizeof(float)), first_codes(codes.size());
  for (const FormatInfo& f : formats())
    for (const bool saturate : {false, true}) {
      const auto bytes = static_cast<size_t>(encoded_bytes(f.format, static_cast<int64_t>(x.size())));
      const auto convert = [&](std::vector<std::byte>& to, std::vector<float>& back) {
        encode(f.format, x, std::span(to).first(bytes), {.saturate = saturate});
        decode(f.format, std::span(to).first(bytes), back);
      };
      convert(first_codes, first_numbers);
      EachTarget().run([&](const char* target) {
        convert(codes, numbers);
        EXPECT_EQ(std::memcmp(codes.data(), first_codes.data(), bytes), 0) << target << " " << f.name;
        EXPECT_EQ(std::memcmp(numbers.data(), first_numbers.data(), numbers.size() * sizeof(float)), 0)
            << target << " " << f.name;
      });
    }
}

TEST(Convert, Nf4IsNearestEverywhere) {
  std::vector<float> x;
  for (int i = -(1 << 20); i <= 1 << 20; ++i) x.push_back(std::ldexp(static_cast<float>(i), -20) * 1.5F);
  for (int i = 0; i + 1 < 16; ++i) {
    const auto tie = static_cast<float>((double{kNf4Values[i]} + double{kNf4Values[i + 1]}) / 2);
    for (const float each : {tie, std::nextafterf(tie, -2.0F), std::nextafterf(tie, 2.0F)}) x.push_back(each);
  }
  for (const float each : {HUGE_VALF, 0x1.fffffep127F, 0x1p-149F, 0.0F}) x.insert(x.end(), {each, -each});
  EachTarget().run([&](const char* target) {
    const auto codes = encoded(Format::kNf4, x);
    for (size_t i = 0; i < x.size(); ++i) {
      // Half way between neighbours, as the nearest f32; what is not above it takes the lower.
      uint32_t expected = 0;
      while (expected < 15 &&
             x[i] > static_cast<float>((double{kNf4Values[expected]} + double{kNf4Values[expected + 1]}) / 2))
        ++expected;
      ASSERT_EQ(codes[i], expected) << where(target, Format::kNf4, bits_of(x[i]));
    }
  });
}

TEST(Convert, KeepsNan) {
  EachTarget().run([](const char* target) {
    for (const uint32_t bits : {0x7F800001U, 0x7FC00000U, 0x7FD55555U, 0xFF812345U, 0xFFFFFFFFU}) {
      const float x = std::bit_cast<float>(bits);
      const uint32_t sign = bits >> 31, quiet = bits | 0x00400000U;
      for (const bool saturate : {false, true}) {
        const auto code = [&](Format f) { return encoded(f, std::span(&x, 1), {.saturate = saturate})[0]; };
        EXPECT_EQ(code(Format::kBf16), quiet >> 16) << where(target, Format::kBf16, bits);
        EXPECT_EQ(code(Format::kFp16), sign << 15 | 0x7E00U | (bits >> 13 & 0x3FFU)) << target;
        EXPECT_EQ(code(Format::kTf32), quiet & 0xFFFFE000U) << target;
        EXPECT_EQ(code(Format::kE4m3), sign << 7 | 0x7FU) << target;
        EXPECT_EQ(code(Format::kE5m2), sign << 7 | 0x7FU) << target;
        EXPECT_EQ(code(Format::kE8m0), 255U) << target;
        EXPECT_EQ(code(Format::kE2m1), 7U) << target;
        EXPECT_EQ(code(Format::kNf4), 7U) << target;
        EXPECT_EQ(code(Format::kInt8), 0U) << target;
      }
    }
  });
}

TEST(Convert, Tf32IsF32WithTenBitsOfMantissa) {
  EachTarget().run([](const char* target) {
    auto x = random_floats(20000, 3);
    for (const uint32_t bits : {0x3F801000U, 0x3F803000U, 0x3F800FFFU, 0x7F7FFFFFU, 0x7F7FF000U, 0x7F7FEFFFU,
                                1U, 0x1000U, 0x1001U, 0x3000U, 0x80000000U, 0x7F800000U})
      x.push_back(std::bit_cast<float>(bits));
    for (const bool saturate : {false, true}) {
      const auto codes = encoded(Format::kTf32, x, {.saturate = saturate});
      for (size_t i = 0; i < x.size(); ++i) {
        if (std::isnan(x[i])) continue;
        // In units of the last of 10 bits; doubles hold what ldexp makes of it.
        int exponent = 0;
        std::frexp(double{x[i]}, &exponent);
        const int step = std::max(exponent, -125) - 11;
        double rounded =
            std::isinf(x[i]) ? x[i] : std::ldexp(std::nearbyint(std::ldexp(double{x[i]}, -step)), step);
        if (std::abs(rounded) > 0x1.ffcp127)
          rounded = std::copysign(saturate ? 0x1.ffcp127 : HUGE_VAL, rounded);
        ASSERT_EQ(codes[i], bits_of(static_cast<float>(rounded)))
            << where(target, Format::kTf32, bits_of(x[i]));
      }
    }
  });
}

TEST(Convert, E8m0IsTheNearestPowerOfTwo) {
  std::vector<uint32_t> codes(256);
  for (uint32_t i = 0; i < 256; ++i) codes[i] = i;
  EachTarget().run([&](const char* target) {
    const auto powers = decoded(Format::kE8m0, codes);
    for (uint32_t i = 0; i < 255; ++i)
      ASSERT_EQ(powers[i], std::ldexp(1.0, static_cast<int>(i) - 127)) << target;
    ASSERT_TRUE(std::isnan(powers[255]));
    auto x = random_floats(20000, 11);
    for (uint32_t i = 0; i < 255; ++i)
      for (const float v : {powers[i], 1.5F * powers[i], std::nextafterf(1.5F * powers[i], 0.0F)})
        x.push_back(v);
    for (const uint32_t bits : {0U, 1U, 0x003FFFFFU, 0x00400001U, 0x005FFFFFU, 0x00600000U, 0x7F800000U})
      x.push_back(std::bit_cast<float>(bits));
    for (const bool saturate : {false, true}) {
      const auto again = encoded(Format::kE8m0, x, {.saturate = saturate});
      for (size_t i = 0; i < x.size(); ++i) {
        if (std::isnan(x[i])) continue;
        const double a = std::abs(double{x[i]});
        uint32_t expected = 0;
        while (expected < 255 && a >= 1.5 * std::ldexp(1.0, static_cast<int>(expected) - 127)) ++expected;
        if (expected == 255 && saturate) expected = 254;
        ASSERT_EQ(again[i], expected) << where(target, Format::kE8m0, bits_of(x[i]));
      }
    }
  });
}

TEST(Convert, Nf4AndInt8AreNearest) {
  EachTarget().run([](const char* target) {
    auto x = ordinary_floats(20000);
    for (int i = -300; i <= 300; ++i) x.push_back(static_cast<float>(i) / 2);
    for (int i = 0; i < 16; ++i) x.push_back(kNf4Values[i]);
    const auto nf4 = encoded(Format::kNf4, x), int8 = encoded(Format::kInt8, x);
    const auto back = decoded(Format::kNf4, nf4), back8 = decoded(Format::kInt8, int8);
    for (size_t i = 0; i < x.size(); ++i) {
      const double distance = std::abs(double{x[i]} - double{back[i]});
      for (const float value : kNf4Values)
        ASSERT_LE(distance, std::abs(double{x[i]} - double{value}) * (1 + 1e-6)) << target << " " << x[i];
      const double rounded = std::clamp(std::nearbyint(double{x[i]}), -127.0, 127.0);
      ASSERT_EQ(back8[i], rounded) << target << " " << x[i];
    }
    for (uint32_t i = 0; i < 16; ++i) ASSERT_EQ(encoded(Format::kNf4, std::span(&kNf4Values[i], 1))[0], i);
  });
}

constexpr Format kAll[] = {Format::kFp32, Format::kTf32, Format::kFp16, Format::kBf16, Format::kE4m3,
                           Format::kE5m2, Format::kE8m0, Format::kE2m1, Format::kNf4,  Format::kInt8};

TEST(Convert, EveryLengthAndOffsetGivesTheSame) {
  const auto x = ordinary_floats(300);
  EachTarget().run([&](const char* target) {
    for (const Format format : kAll)
      for (const Rounding rounding : {Rounding::kNearestEven, Rounding::kStochastic}) {
        if (format == Format::kNf4 && rounding == Rounding::kStochastic) continue;
        const auto whole = encoded(format, x, {.rounding = rounding, .random = {9, 4}});
        for (size_t begin : {size_t{0}, size_t{1}, size_t{2}, size_t{3}, size_t{7}})
          for (size_t n = 0; n < 70; ++n) {
            const auto part = encoded(format, std::span(x).subspan(begin, n),
                                      {.rounding = rounding, .random = {9, 4, begin}});
            ASSERT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + static_cast<ptrdiff_t>(begin)))
                << target << " " << info(format).name << " " << begin << " " << n;
            const auto numbers = decoded(format, part), all = decoded(format, whole);
            for (size_t i = 0; i < n; ++i) ASSERT_EQ(bits_of(numbers[i]), bits_of(all[begin + i]));
          }
      }
  });
}

TEST(Convert, NothingBeyondTheEndIsTouched) {
  const auto x = ordinary_floats(101);
  for (const Format format : kAll) {
    std::vector<std::byte> bytes(512, std::byte{0xA5});
    const auto n = static_cast<size_t>(encoded_bytes(format, 101));
    encode(format, x, std::span(bytes).subspan(3, n));
    for (size_t i = 0; i < bytes.size(); ++i) {
      const bool is_ours = i >= 3 && i < 3 + n;
      ASSERT_TRUE(is_ours || bytes[i] == std::byte{0xA5}) << info(format).name << " " << i;
    }
    std::vector<float> y(120, 7.0F);
    decode(format, std::span<const std::byte>(bytes).subspan(3, n), std::span(y).first(101));
    EXPECT_EQ(y[101], 7.0F);
  }
}

TEST(Convert, ThreadsAndStreamingDoNotShow) {
  const auto x = random_floats(size_t{2200000}, 17);
  for (const Format format : {Format::kTf32, Format::kBf16, Format::kFp16, Format::kE2m1})
    for (const Rounding rounding : {Rounding::kNearestEven, Rounding::kStochastic}) {
      const EncodeOptions one{.rounding = rounding, .random = {1, 2}};
      const auto codes = encoded(format, x, one);
      EncodeOptions three = one;
      three.num_threads = 3;
      ASSERT_EQ(encoded(format, x, three), codes) << info(format).name;
      // A tenth from the middle, which is too short to go past the caches.
      EncodeOptions part = one;
      part.random.first_element = 1000001;
      const auto some = encoded(format, std::span(x).subspan(1000001, 200000), part);
      ASSERT_TRUE(std::equal(some.begin(), some.end(), codes.begin() + 1000001)) << info(format).name;
    }
}

TEST(Convert, LargeArraysAreTheirPieces) {
  // Codes of 8 MiB and more are written past the caches, for which some instruction sets want aligned
  // vectors.
  const auto x = random_floats((size_t{1} << 23) + 77, 29);
  const size_t half = x.size() / 2;
  std::vector<std::byte> whole(2 * x.size()), pieces(2 * x.size());
  EachTarget().run([&](const char* target) {
    for (const Format format : {Format::kE4m3, Format::kBf16}) {
      const size_t each = format == Format::kE4m3 ? 1 : 2, part = half / each;
      const auto numbers = std::span(x).first(x.size() / each);
      encode(format, numbers, std::span(whole).first(numbers.size() * each));
      for (size_t i = 0; i < numbers.size(); i += part) {
        const size_t n = std::min(part, numbers.size() - i);
        encode(format, numbers.subspan(i, n), std::span(pieces).subspan(i * each, n * each));
      }
      ASSERT_EQ(std::memcmp(whole.data(), pieces.data(), numbers.size() * each), 0)
          << target << " " << info(format).name;
    }
  });
}

// ---- stochastic rounding

/// Philox-4x32-10 as its authors write it, a word at a time.
uint32_t philox_word(const RandomKey& key, uint64_t element) {
  uint32_t c[4] = {static_cast<uint32_t>(element / 4), static_cast<uint32_t>(element / 4 >> 32),
                   static_cast<uint32_t>(key.stream), static_cast<uint32_t>(key.stream >> 32)};
  uint32_t k0 = static_cast<uint32_t>(key.seed), k1 = static_cast<uint32_t>(key.seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53U} * c[0], p1 = uint64_t{0xCD9E8D57U} * c[2];
    const uint32_t next[4] = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(p1),
                              static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<uint32_t>(p0)};
    std::copy(next, next + 4, c);
    k0 += 0x9E3779B9U, k1 += 0xBB67AE85U;
  }
  return c[element % 4];
}

TEST(Philox, GivesThePublishedWords) {
  // Random123's known answers for counter 0, key 0.
  const uint32_t expected[4] = {0x6627E8D5U, 0xE169C58DU, 0xBC57AC4CU, 0x9B00DBD8U};
  for (uint64_t i = 0; i < 4; ++i) EXPECT_EQ(philox_word({}, i), expected[i]);
}

/// What stochastic rounding gives by definition: up where the word is in the last `fraction` of all words.
double stochastic(double x, const std::vector<double>& values, uint32_t word) {
  const double a = std::abs(x);
  const auto above = std::upper_bound(values.begin(), values.end(), a);
  if (above == values.end()) return std::copysign(values.back(), x);
  const double low = *(above - 1), fraction = (a - low) / (*above - low);
  const bool up = std::floor(fraction * 0x1p32) + static_cast<double>(word) >= 0x1p32;
  return std::copysign(up ? *above : low, x);
}

TEST(Stochastic, FollowsTheWordsOfEachElement) {
  const RandomKey key{.seed = 0x123456789ABCDEFULL, .stream = 77, .first_element = (uint64_t{1} << 34) - 37};
  EachTarget().run([&](const char* target) {
    for (const Definition& d : kDefinitions) {
      const auto values = finite_values(d);
      auto x = ordinary_floats(3000);
      for (size_t i = 0; i < x.size(); ++i) x[i] = std::ldexp(x[i], static_cast<int>(i % 40) - 30);
      for (const float tiny : {0x1p-149F, 0x1p-133F, 0x1.8p-134F, 0x1p-60F, 0x1.234p-24F, 0x1.8p-10F})
        x.push_back(tiny);
      const auto y =
          decoded(d.format,
                  encoded(d.format, x, {.rounding = Rounding::kStochastic, .saturate = true, .random = key}));
      for (size_t i = 0; i < x.size(); ++i)
        ASSERT_EQ(y[i], stochastic(x[i], values, philox_word(key, key.first_element + i)))
            << where(target, d.format, bits_of(x[i])) << " element " << i;
    }
  });
}

TEST(Stochastic, IsUnbiasedAndKeepsWhatIsExact) {
  constexpr size_t kDraws = 200000;
  for (const Format format : {Format::kTf32, Format::kFp16, Format::kBf16, Format::kE4m3, Format::kE5m2,
                              Format::kE2m1, Format::kInt8, Format::kE8m0})
    for (const float x : {1.0F, 1.17F, 1.99F, 0.013F, -3.3F}) {
      if (format == Format::kE8m0 && x < 0) continue;
      const std::vector<float> same(kDraws, x);
      const auto y =
          decoded(format, encoded(format, same, {.rounding = Rounding::kStochastic, .random = {3, 5}}));
      const auto [low, high] = std::minmax_element(y.begin(), y.end());
      double sum = 0;
      for (const float v : y) sum += double{v};
      // Five standard errors of a draw between two neighbours.
      const double step = double{*high} - double{*low};
      EXPECT_NEAR(sum / kDraws, double{x}, 5 * step / 2 / std::sqrt(double{kDraws}) + 1e-12)
          << info(format).name << " of " << x;
      EXPECT_LE(*low, x);
      EXPECT_GE(*high, x);
    }
}

TEST(Stochastic, OtherKeysGiveOtherBits) {
  const auto x = ordinary_floats(4000);
  const auto with = [&](RandomKey key) {
    return encoded(Format::kBf16, x, {.rounding = Rounding::kStochastic, .random = key});
  };
  EXPECT_EQ(with({1, 2, 3}), with({1, 2, 3}));
  EXPECT_NE(with({1, 2, 3}), with({2, 2, 3}));
  EXPECT_NE(with({1, 2, 3}), with({1, 3, 3}));
  EXPECT_NE(with({1, 2, 3}), with({1, 2, 4}));
  EXPECT_NE(with({1, uint64_t{1} << 32, 0}), with({1, 0, 0}));
}

TEST(Stochastic, SpecialsStay) {
  const float inf = HUGE_VALF;
  for (const Format format : {Format::kTf32, Format::kFp16, Format::kBf16, Format::kE5m2}) {
    const std::vector<float> x(40, -inf);
    for (const float y : decoded(format, encoded(format, x, {.rounding = Rounding::kStochastic})))
      EXPECT_EQ(y, -inf);
    const std::vector<float> nan(40, std::nanf(""));
    for (const float y : decoded(format, encoded(format, nan, {.rounding = Rounding::kStochastic})))
      EXPECT_TRUE(std::isnan(y));
  }
}

TEST(Formats, TableAgreesWithTheCodes) {
  for (const Definition& d : kDefinitions) {
    const FormatInfo& f = info(d.format);
    const auto values = finite_values(d);
    EXPECT_EQ(f.exponent_bits, d.exponent_bits);
    EXPECT_EQ(f.mantissa_bits, d.mantissa_bits);
    EXPECT_EQ(f.bits, 1 + d.exponent_bits + d.mantissa_bits);
    EXPECT_EQ(f.max, values.back()) << f.name;
    EXPECT_EQ(f.smallest_subnormal, values[1]) << f.name;
    EXPECT_EQ(f.smallest_normal, values[size_t{1} << d.mantissa_bits]) << f.name;
    EXPECT_EQ(f.epsilon, *std::upper_bound(values.begin(), values.end(), 1.0) - 1.0) << f.name;
  }
}

}  // namespace
}  // namespace plimsoll::numerics
