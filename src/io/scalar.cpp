// Scalars of YAML's core schema: the regular expressions of its section 10.3.2, by hand.
#include "io/scalar.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <string_view>

namespace plimsoll::io {
namespace {

/// [-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )?   `integer` tells whether it has
/// neither . nor e.
bool is_number(std::string_view text, bool& integer) {
  size_t i = 0;
  const auto digits = [&] {
    const size_t start = i;
    while (i < text.size() && is_digit(text[i])) ++i;
    return i - start;
  };
  if (i < text.size() && (text[i] == '-' || text[i] == '+')) ++i;
  const size_t whole = digits();
  integer = true;
  if (i < text.size() && text[i] == '.') {
    integer = false;
    ++i;
    if (digits() + whole == 0) return false;
  } else if (whole == 0) {
    return false;
  }
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    integer = false;
    ++i;
    if (i < text.size() && (text[i] == '-' || text[i] == '+')) ++i;
    if (digits() == 0) return false;
  }
  return i == text.size();
}

double to_double(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc::result_out_of_range) return value;
  // from_chars leaves the value alone out of range; the exponent's sign tells 0 from infinity.
  const size_t e = text.find_first_of("eE");
  const bool tiny = e != std::string_view::npos && e + 1 < text.size() && text[e + 1] == '-';
  const double magnitude = tiny ? 0.0 : std::numeric_limits<double>::infinity();
  return text.starts_with('-') ? -magnitude : magnitude;
}

bool parse_integer(std::string_view text, int base, int64_t& value) {
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

Tree resolve_plain_scalar(std::string text) {
  Tree tree;
  const std::string_view t = text;
  if (t.empty() || t == "~" || t == "null" || t == "Null" || t == "NULL") {
    tree.kind = Tree::Kind::kNull;
  } else if (t == "true" || t == "True" || t == "TRUE" || t == "false" || t == "False" || t == "FALSE") {
    tree.kind = Tree::Kind::kBool;
    tree.boolean = t[0] == 't' || t[0] == 'T';
  } else if (t == ".nan" || t == ".NaN" || t == ".NAN") {
    tree.kind = Tree::Kind::kNumber;
    tree.number = std::numeric_limits<double>::quiet_NaN();
  } else if (const auto body = t.substr(t[0] == '-' || t[0] == '+' ? 1 : 0);
             body == ".inf" || body == ".Inf" || body == ".INF") {
    tree.kind = Tree::Kind::kNumber;
    tree.number =
        t[0] == '-' ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
  } else if (bool integer = false; is_number(t, integer)) {
    tree.kind = integer && parse_integer(t, 10, tree.integer) ? Tree::Kind::kInteger : Tree::Kind::kNumber;
    tree.number = tree.kind == Tree::Kind::kInteger ? static_cast<double>(tree.integer) : to_double(t);
    if (tree.kind == Tree::Kind::kNumber) tree.integer = 0;
  } else if (t.size() > 2 && t[0] == '0' && (t[1] == 'x' || t[1] == 'o') && t[2] != '-' &&
             parse_integer(t.substr(2), t[1] == 'x' ? 16 : 8, tree.integer)) {
    tree.kind = Tree::Kind::kInteger;
    tree.number = static_cast<double>(tree.integer);
  } else {
    tree.kind = Tree::Kind::kString;
    tree.integer = 0;
  }
  tree.text = std::move(text);
  return tree;
}

}  // namespace plimsoll::io
