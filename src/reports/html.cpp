#include "reports/html.h"

#include <fmt/format.h>

#include <cmath>

#include "base/markup.h"
#include "base/text_layout.h"
#include "io/json_cursor.h"

namespace plimsoll::reports {
namespace {

std::string valid_utf8(std::string_view text) {
  std::string out(text);
  for (int64_t at; (at = io::utf8_error_at(out)) >= 0;) out[static_cast<size_t>(at)] = '?';
  return out;
}

}  // namespace

std::string html_text(std::string_view text) { return escaped_markup(harmless(valid_utf8(text))); }

std::string script_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : valid_utf8(text)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&')
      out += fmt::format("\\u{:04x}", byte);
    else
      out += c;
  }
  return out + '"';
}

std::string script_number(double value) {
  return std::isfinite(value) ? fmt::format("{:.{}g}", value, value == std::floor(value) ? 17 : 9) : "null";
}

void HtmlTable::add(std::vector<std::string> cells, std::string_view css_class) {
  rows_ += css_class.empty() ? "<tr>" : fmt::format("<tr class=\"{}\">", css_class);
  for (size_t i = 0; i < cells.size(); ++i)
    rows_ += fmt::format("<td{}>{}</td>", i >= first_right_ ? " class=\"n\"" : "", cells[i]);
  rows_ += "</tr>\n";
}

std::string HtmlTable::text(std::string_view id) const {
  std::string head;
  for (size_t i = 0; i < titles_.size(); ++i)
    head += fmt::format("<th{}>{}</th>", i >= first_right_ ? " class=\"n\"" : "", titles_[i]);
  if (!head.empty()) head = "<thead><tr>" + head + "</tr></thead>\n";
  return fmt::format("<div class=\"wide\"><table{}>\n{}<tbody>\n{}</tbody></table></div>\n",
                     id.empty() ? "" : fmt::format(" id=\"{}\"", id), head, rows_);
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    for (size_t k = 0; k < 3; ++k)
      group = group << 8U | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    for (size_t k = 0; k < 4; ++k) out += i + k <= bytes.size() ? kDigits[group >> (18 - 6 * k) & 63U] : '=';
  }
  return out;
}

}  // namespace plimsoll::reports
