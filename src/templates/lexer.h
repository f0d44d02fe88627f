// A template's text into tokens, with Jinja2's whitespace control under trim_blocks and lstrip_blocks.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace plimsoll::templates {

enum class TokenKind : uint8_t {
  kData,  ///< text outside of tags
  kBlockBegin,
  kBlockEnd,
  kPrintBegin,
  kPrintEnd,
  kName,
  kString,  ///< unescaped
  kInteger,
  kOperator,  ///< `text` is its spelling
  kEnd,
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  int line = 1;
  std::string_view text = {};  ///< into the source or into `texts`
  int64_t integer = 0;

  [[nodiscard]] bool is(std::string_view op) const { return kind == TokenKind::kOperator && text == op; }
  [[nodiscard]] bool is_name(std::string_view name) const { return kind == TokenKind::kName && text == name; }
};

/// Line ends become \n, and one at the very end goes.
std::string normalized_source(std::string_view text);

/// The tokens of `source`, ended by kEnd; unescaped strings are kept in `texts`.
/// Errors: kBadData with what and "line N" as where.
Result<std::vector<Token>> tokenize(std::string_view source, std::deque<std::string>& texts);

/// An error of the template itself, at a line.
Error template_error(std::string what, int line);

}  // namespace plimsoll::templates
