#include "ir/attrs.h"

#include <gtest/gtest.h>

namespace plimsoll::ir {
namespace {

TEST(Attrs, ACopyThatIsChangedLeavesTheOther) {
  Attrs a{{"axis", int64_t{1}}, {"name", std::string("x")}};
  Attrs b = a;
  EXPECT_EQ(&a.entries(), &b.entries()) << "shared until then";
  b.set("axis", int64_t{2});
  EXPECT_EQ(a.i64("axis"), 1);
  EXPECT_EQ(b.i64("axis"), 2);
  EXPECT_NE(a, b);
  a.set("axis", int64_t{2});
  EXPECT_EQ(a, b) << "by what they hold";
}

TEST(Attrs, NoneAreAsGoodAsNone) {
  const Attrs none;
  EXPECT_TRUE(none.entries().empty());
  EXPECT_EQ(none, Attrs({}));
  EXPECT_FALSE(none.flag("x"));
  EXPECT_NE(none, Attrs({{"x", true}}));
}

}  // namespace
}  // namespace plimsoll::ir
