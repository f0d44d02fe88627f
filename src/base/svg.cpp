#include "base/svg.h"

#include <fmt/format.h>

#include <utility>

#include "base/markup.h"

namespace plimsoll {

Svg::Svg(int width, int height, double left, std::string_view title, std::string_view style,
         std::string_view dark_style)
    : out_(fmt::format(
          "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
          "role=\"img\">\n<title>{2}</title>\n"
          "<style>text{{font:12px sans-serif;fill:#24292f}}.title{{font-weight:bold;font-size:14px}}"
          ".page{{fill:#fff}}{3}@media(prefers-color-scheme:dark){{text{{fill:#e6edf3}}{4}}}</style>\n"
          "<rect class=\"page\" width=\"{0}\" height=\"{1}\"/>\n",
          width, height, escaped_markup(title), style, dark_style)) {
  text(left, 24, "start", title, "title");
}

void Svg::text(double x, double y, std::string_view anchor, std::string_view what, std::string_view style) {
  out_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n", x, y, anchor,
                      style.empty() ? "" : fmt::format(" class=\"{}\"", style), escaped_markup(what));
}

void Svg::vertical_text(double x, double y, std::string_view what) {
  out_ += fmt::format(
      "<text transform=\"translate({:.0f} {:.0f}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n", x, y,
      escaped_markup(what));
}

void Svg::line(double x1, double y1, double x2, double y2, std::string_view style) {
  out_ += fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" class=\"{}\"/>\n", x1,
                      y1, x2, y2, style);
}

void Svg::circle(double x, double y, double radius, std::string_view style) {
  out_ += fmt::format("<circle class=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\"/>\n", style, x, y, radius);
}

std::string Svg::finish() { return std::move(out_) + "</svg>\n"; }

}  // namespace plimsoll
