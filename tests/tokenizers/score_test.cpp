#include "tokenizers/score.h"

#include <gtest/gtest.h>

#include <string>

namespace plimsoll::tokenizers {
namespace {

// By the tokenizers package (0.23.3): scores as its to_str writes them back.
TEST(Score, IsReadAsThePackageReadsIt) {
  EXPECT_EQ(read_score("0.5"), 0.5);
  EXPECT_EQ(read_score("-3.25e2"), -325.0);
  EXPECT_EQ(read_score("-9.415623777526747"), -9.415623777526749) << "not the nearest double";
  EXPECT_EQ(read_score("-10.068176175419225"), -10.068176175419223);
  EXPECT_EQ(read_score("-8.123456001281738"), -8.123456001281738);
}

TEST(Score, DigitsThatDoNotFitAreZeros) {
  EXPECT_EQ(read_score("18446744073709551615"), 18446744073709551615.0);
  EXPECT_EQ(read_score("184467440737095516159"), 18446744073709551615.0 * 10);
  EXPECT_EQ(read_score("0." + std::string(19, '1') + "999"), read_score("0." + std::string(19, '1') + "9"));
}

TEST(Score, ExponentsEnd) {
  EXPECT_EQ(read_score("1e308"), 1e308);
  EXPECT_EQ(read_score("1e309"), std::nullopt);
  EXPECT_EQ(read_score("-1" + std::string(400, '0')), std::nullopt);
  EXPECT_EQ(read_score("99e307"), std::nullopt);
  EXPECT_EQ(read_score("1e-400"), 0.0);
  EXPECT_EQ(read_score("1e-99999999999999999999999"), 0.0);
  EXPECT_EQ(read_score("0e99999999999999999999999"), 0.0);
  EXPECT_EQ(read_score("1e99999999999999999999999"), std::nullopt);
}

}  // namespace
}  // namespace plimsoll::tokenizers
