#include "base/markup.h"

#include <gtest/gtest.h>

namespace plimsoll {
namespace {

TEST(EscapedMarkup, WritesWhatWouldEndTextOrAValueAsEntities) {
  EXPECT_EQ(escaped_markup("a<b> & \"c\" 'd'"), "a&lt;b&gt; &amp; &quot;c&quot; 'd'");
  EXPECT_EQ(escaped_markup(""), "");
}

}  // namespace
}  // namespace plimsoll
