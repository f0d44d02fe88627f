#include "backends/cuda/product_choices.h"

#include <gtest/gtest.h>

namespace plimsoll::cuda {
namespace {

TEST(ProductChoices, AreReadAsTheyWereWritten) {
  const ProductChoices choices{130100, {{"14 14 0 1 2 3", {1, 0xfedcba9876543210, 3}}, {"0 0", {}}}};
  const auto read = parse_choices(choices_text(choices));
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->library_version, 130100);
  EXPECT_EQ(read->by_form, choices.by_form);
  const auto none = parse_choices(choices_text({}));
  ASSERT_TRUE(none);
  EXPECT_TRUE(none->by_form.empty());
}

TEST(ProductChoices, DamageIsSeen) {
  const std::string whole = choices_text({130100, {{"14 14", {1, 2}}}});
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] ^= 1;
    EXPECT_FALSE(parse_choices(damaged)) << i;
    EXPECT_FALSE(parse_choices(whole.substr(0, i))) << i;
  }
  EXPECT_FALSE(parse_choices(whole + "x"));
}

}  // namespace
}  // namespace plimsoll::cuda
