#include "base/units.h"

#include <gtest/gtest.h>

namespace plimsoll {
namespace {

TEST(UnitsTest, ParseBytesReadsBinaryAndDecimalUnits) {
  EXPECT_EQ(parse_bytes("6GiB")->count, int64_t{6} << 30);
  EXPECT_EQ(parse_bytes("1.5 kb")->count, 1500);
  EXPECT_EQ(parse_bytes("512 MiB")->count, 512 << 20);
  EXPECT_EQ(parse_bytes("17")->count, 17);
  EXPECT_EQ(parse_bytes("1EB")->count, 1'000'000'000'000'000'000);
  EXPECT_EQ(parse_bytes("2PiB")->count, int64_t{2} << 50);
}

TEST(UnitsTest, ParseBytesRefusesWhatIsNoSize) {
  for (const char* text : {"", "GiB", "-1GiB", "1 parsec", "nan", "inf", "1e30GiB", "5EB", "1GiB2"})
    EXPECT_FALSE(parse_bytes(text)) << text;
}

TEST(UnitsTest, PrintsThreeDigitsOrSo) {
  EXPECT_EQ(to_string(Bytes(512)), "512 B");
  EXPECT_EQ(to_string(Bytes(1536)), "1.50 KiB");
  EXPECT_EQ(to_string(12_MiB), "12.0 MiB");
}

}  // namespace
}  // namespace plimsoll
