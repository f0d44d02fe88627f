// Pieces of a page from text that may be anybody's.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace plimsoll::reports {

/// As an element's text or an attribute's value: bytes that are no UTF-8 as "?", controls spelled out.
std::string html_text(std::string_view text);
/// A string of JSON that may stand within a script element: no "<" in it.
std::string script_string(std::string_view text);
/// A number of JSON with nine digits, whole ones with all; null where it is not finite.
std::string script_number(double value);

/// Bytes as a data URL has them.
std::string base64(std::string_view bytes);

/// A table as rows of cells. Cells are markup.
class HtmlTable {
 public:
  /// `titles` may be empty; columns from `first_right` on stand at the right.
  explicit HtmlTable(std::vector<std::string> titles, size_t first_right = 1)
      : titles_(std::move(titles)), first_right_(first_right) {}
  void add(std::vector<std::string> cells, std::string_view css_class = {});
  [[nodiscard]] bool empty() const { return rows_.empty(); }
  /// In an element that scrolls by itself where the page is narrow.
  [[nodiscard]] std::string text(std::string_view id = {}) const;

 private:
  std::vector<std::string> titles_;
  size_t first_right_;
  std::string rows_;
};

}  // namespace plimsoll::reports
