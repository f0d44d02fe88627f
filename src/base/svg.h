// A picture as SVG text, in the light or dark of the page around it.
#pragma once

#include <string>
#include <string_view>

namespace plimsoll {

class Svg {
 public:
  /// `style`: CSS of the picture's own classes, `dark_style` where the page is dark. The title stands at the
  /// top, `left` from the edge. All texts are escaped.
  Svg(int width, int height, double left, std::string_view title, std::string_view style,
      std::string_view dark_style);

  /// `anchor`: start, middle or end; `style`: a class, empty: none.
  void text(double x, double y, std::string_view anchor, std::string_view what, std::string_view style = {});
  /// Upwards along the left edge.
  void vertical_text(double x, double y, std::string_view what);
  void line(double x1, double y1, double x2, double y2, std::string_view style);
  void circle(double x, double y, double radius, std::string_view style);
  /// Elements as they are.
  void add(std::string_view elements) { out_ += elements; }
  /// The whole of it; nothing may be added then.
  std::string finish();

 private:
  std::string out_;
};

}  // namespace plimsoll
