#include "base/svg.h"

#include <gtest/gtest.h>

namespace plimsoll {
namespace {

TEST(Svg, IsOneElementWithItsTitleAndStyles) {
  Svg svg(40, 20, 2, "a < b", ".mark{fill:none}", ".mark{fill:#fff}");
  svg.line(1, 2, 3.25, 4, "mark");
  svg.circle(5, 6, 3.5, "mark");
  svg.text(7, 8, "end", "x & y");
  svg.vertical_text(14, 10, "bytes");
  svg.add("<path/>\n");
  EXPECT_EQ(
      svg.finish(),
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"40\" height=\"20\" viewBox=\"0 0 40 20\" "
      "role=\"img\">\n"
      "<title>a &lt; b</title>\n"
      "<style>text{font:12px sans-serif;fill:#24292f}.title{font-weight:bold;font-size:14px}.page{fill:#fff}"
      ".mark{fill:none}@media(prefers-color-scheme:dark){text{fill:#e6edf3}.mark{fill:#fff}}</style>\n"
      "<rect class=\"page\" width=\"40\" height=\"20\"/>\n"
      "<text x=\"2.0\" y=\"24.0\" text-anchor=\"start\" class=\"title\">a &lt; b</text>\n"
      "<line x1=\"1.0\" y1=\"2.0\" x2=\"3.2\" y2=\"4.0\" class=\"mark\"/>\n"
      "<circle class=\"mark\" cx=\"5.0\" cy=\"6.0\" r=\"3.5\"/>\n"
      "<text x=\"7.0\" y=\"8.0\" text-anchor=\"end\">x &amp; y</text>\n"
      "<text transform=\"translate(14 10) rotate(-90)\" text-anchor=\"middle\">bytes</text>\n"
      "<path/>\n</svg>\n");
}

}  // namespace
}  // namespace plimsoll
