// The dynamic maps against bitsandbytes' own, and the nearest code against a search.
#include "numerics/dynamic_map.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

namespace plimsoll::numerics {
namespace {

/// sum (i + 1) * bits[i] modulo 2^32.
uint32_t mark(const DynamicMap& map) {
  uint32_t total = 0;
  for (uint32_t i = 0; i < 256; ++i) total += (i + 1) * std::bit_cast<uint32_t>(map.values[i]);
  return total;
}

TEST(DynamicMap, HasTheValuesOfBitsandbytes) {  // create_dynamic_map of 0.50.2
  EXPECT_EQ(mark(signed_dynamic_map()), 560415232U);
  EXPECT_EQ(mark(unsigned_dynamic_map()), 1980062734U);
  EXPECT_EQ(signed_dynamic_map().values[0], -0.992968738079071F);
  EXPECT_EQ(signed_dynamic_map().values[127], 0.0F);
  EXPECT_EQ(unsigned_dynamic_map().values[2], 7.749999895168003e-07F);
  EXPECT_EQ(unsigned_dynamic_map().values[255], 1.0F);
}

void expect_nearest(const DynamicMap& map, float x) {
  const float got = map.values[map.code(x)];
  for (const float value : map.values)
    ASSERT_LE(std::abs(static_cast<double>(got) - static_cast<double>(x)),
              std::abs(static_cast<double>(value) - static_cast<double>(x)) +
                  2.5e-7 * std::abs(static_cast<double>(x)))
        << x;
}

TEST(DynamicMap, FindsTheNearest) {
  for (const DynamicMap* map : {&signed_dynamic_map(), &unsigned_dynamic_map()}) {
    for (size_t i = 0; i < 256; ++i) {
      EXPECT_EQ(map->code(map->values[i]), i);
      if (i == 255) continue;
      const float between = (map->values[i] + map->values[i + 1]) / 2;
      for (const float x : {std::nextafter(between, -1.0F), between, std::nextafter(between, 1.0F)})
        expect_nearest(*map, x);
    }
    for (const float x : {0.0F, 1e-30F, 2e-7F, 3e-7F, 0.3F, 1.0F, std::nextafter(1.0F, 2.0F)})
      expect_nearest(*map, x);
    EXPECT_LE(map->code(std::nanf("")), 255);
  }
  EXPECT_EQ(signed_dynamic_map().code(-1.0F), 0);
}

}  // namespace
}  // namespace plimsoll::numerics
