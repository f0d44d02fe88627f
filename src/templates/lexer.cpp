// Outside of tags the text is cut at "{%", "{{" and "{#"; inside, tokens follow each other until the tag's
// end, which counts only where all brackets are closed.
#include "templates/lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "templates/refused.h"
#include "templates/text.h"
#include "tokenizers/unicode.h"

namespace plimsoll::templates {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

class Lexer {
 public:
  Lexer(std::string_view source, std::deque<std::string>& texts) : source_(source), texts_(texts) {}
  Result<std::vector<Token>> run() {
    while (at_ < source_.size() && !failed_) text_until_tag();
    if (failed_) return template_error(std::move(why_), why_line_);
    add(TokenKind::kEnd, {});
    return std::move(tokens_);
  }

 private:
  [[nodiscard]] std::string_view rest() const { return source_.substr(at_); }
  [[nodiscard]] bool next_is(std::string_view text) const { return rest().starts_with(text); }
  void fail(std::string why) {
    if (failed_) return;
    failed_ = true;
    why_ = std::move(why);
    why_line_ = line_;
  }
  void move(size_t bytes) {
    const std::string_view passed = source_.substr(at_, bytes);
    line_ += static_cast<int>(std::count(passed.begin(), passed.end(), '\n'));
    at_ += bytes;
  }
  void add(TokenKind kind, std::string_view text) {
    tokens_.push_back({.kind = kind, .line = line_, .text = text});
  }
  void add_data(std::string_view text) {
    if (!text.empty()) add(TokenKind::kData, text);
  }

  void text_until_tag();
  void comment();
  void tag(TokenKind begin);
  bool tag_end(TokenKind begin);
  void token();
  void number();
  void string();
  void op();
  std::string_view before_tag(std::string_view text, char sign, bool is_print) const;
  /// Behind "%}" and "#}": '+' keeps, '-' strips all blanks, else one line end goes. Returns the bytes of the
  /// end, 0 where none is there.
  [[nodiscard]] size_t end_length(std::string_view text, std::string_view end, bool trims) const;
  bool unescape(std::string_view text, std::string& out);
  bool escape(std::string_view text, size_t& at, std::string& out);

  std::string_view source_;
  std::deque<std::string>& texts_;
  std::vector<Token> tokens_ = {};
  std::string brackets_ = {};  // the closing ones that are awaited
  size_t at_ = 0;
  int line_ = 1;
  bool line_starts_ = true;  // whether what comes next stands at the start of a line
  bool failed_ = false;
  std::string why_ = {};
  int why_line_ = 0;
};

std::string_view Lexer::before_tag(std::string_view text, char sign, bool is_print) const {
  if (sign == '-') return stripped(text, {.left = false, .right = true});
  if (sign == '+' || is_print) return text;
  const size_t line_begin = text.rfind('\n') + 1;  // npos + 1 is 0
  if (line_begin == 0 && !line_starts_) return text;
  return stripped(text.substr(line_begin)).empty() ? text.substr(0, line_begin) : text;
}

size_t Lexer::end_length(std::string_view text, std::string_view end, bool trims) const {
  if (text.starts_with('+') && text.substr(1).starts_with(end) && trims) return 1 + end.size();
  if (text.starts_with('-') && text.substr(1).starts_with(end))
    return 1 + end.size() + leading_blanks(text.substr(1 + end.size()));
  if (!text.starts_with(end)) return 0;
  return end.size() + (trims && text.substr(end.size()).starts_with('\n') ? 1 : 0);
}

void Lexer::text_until_tag() {
  size_t tag_at = at_;
  for (;; ++tag_at) {
    tag_at = source_.find('{', tag_at);
    if (tag_at == std::string_view::npos || tag_at + 1 == source_.size()) {
      add_data(rest());
      move(source_.size() - at_);
      return;
    }
    const char c = source_[tag_at + 1];
    if (c == '%' || c == '{' || c == '#') break;
  }
  const std::string_view text = source_.substr(at_, tag_at - at_);
  const char kind = source_[tag_at + 1];
  const char sign = tag_at + 2 < source_.size() ? source_[tag_at + 2] : '\0';
  add_data(before_tag(text, sign, kind == '{'));
  move(tag_at - at_ + 2 + (sign == '-' || sign == '+' ? 1 : 0));
  if (kind == '#')
    comment();
  else
    tag(kind == '%' ? TokenKind::kBlockBegin : TokenKind::kPrintBegin);
}

void Lexer::comment() {
  for (size_t i = at_; i < source_.size(); ++i)
    if (const size_t length = end_length(source_.substr(i), "#}", true); length > 0) {
      move(i + length - at_);
      line_starts_ = source_[at_ - 1] == '\n';
      return;
    }
  fail("a comment {# that is not closed by #}");
}

bool Lexer::tag_end(TokenKind begin) {
  if (!brackets_.empty()) return false;
  const bool block = begin == TokenKind::kBlockBegin;
  const size_t length = end_length(rest(), block ? "%}" : "}}", block);
  if (length == 0) return false;
  add(block ? TokenKind::kBlockEnd : TokenKind::kPrintEnd, {});
  move(length);
  line_starts_ = source_[at_ - 1] == '\n';
  return true;
}

void Lexer::tag(TokenKind begin) {
  add(begin, {});
  while (!failed_) {
    if (tag_end(begin)) return;
    if (const size_t blanks = leading_blanks(rest()); blanks > 0) {
      move(blanks);
      continue;
    }
    if (at_ >= source_.size()) return fail("the template ends inside of a tag");
    token();
  }
}

void Lexer::token() {
  const char c = source_[at_];
  if (is_digit(c)) return number();
  if (c == '\'' || c == '"') return string();
  if (!is_letter(c)) return op();
  size_t end = at_;
  while (end < source_.size() && (is_letter(source_[end]) || is_digit(source_[end]))) ++end;
  const bool is_tag = tokens_.back().kind == TokenKind::kBlockBegin;
  add(TokenKind::kName, source_.substr(at_, end - at_));
  // Nothing behind it is to be read as tags.
  if (is_tag && tokens_.back().text == "raw") return fail(no_construct(Construct::kTag, "raw"));
  move(end - at_);
}

/// Decimal integers.
void Lexer::number() {
  size_t end = at_;
  while (end < source_.size() && is_digit(source_[end])) ++end;
  const std::string_view digits = source_.substr(at_, end - at_);
  const char behind = end < source_.size() ? source_[end] : ' ';
  const bool is_float = behind == '.' && end + 1 < source_.size() && is_digit(source_[end + 1]);
  if (is_float || is_letter(behind))
    return fail("only whole decimal numbers are supported: templates of public models do without others");
  if (digits.size() > 1 && digits[0] == '0') return fail("a number that starts with 0");
  Token token{.kind = TokenKind::kInteger, .line = line_, .text = digits};
  if (std::from_chars(digits.data(), digits.data() + digits.size(), token.integer).ec != std::errc())
    return fail("an integer beyond 64 bits");
  tokens_.push_back(token);
  move(end - at_);
}

void Lexer::string() {
  const char quote = source_[at_];
  size_t end = at_ + 1;
  while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
  if (end >= source_.size()) return fail("a text that is not closed by its quote");
  const std::string_view inner = source_.substr(at_ + 1, end - at_ - 1);
  if (inner.find('\\') == std::string_view::npos) {
    add(TokenKind::kString, inner);
  } else {
    std::string text;
    if (!unescape(inner, text))
      return fail("an escape that is no character: " + std::string(inner.substr(0, 60)));
    add(TokenKind::kString, texts_.emplace_back(std::move(text)));
  }
  move(end + 1 - at_);
}

bool Lexer::unescape(std::string_view text, std::string& out) {
  for (size_t at = 0; at < text.size();) {
    if (text[at] != '\\') {
      out.push_back(text[at++]);
      continue;
    }
    ++at;
    if (!escape(text, at, out)) return false;
  }
  return true;
}

/// Python's escapes; `at` is behind the backslash. Unknown ones stay as they are.
bool Lexer::escape(std::string_view text, size_t& at, std::string& out) {
  constexpr std::string_view kNamed = "\\\\''\"\"a\ab\bf\fn\nr\rt\tv\v";
  const char c = text[at++];
  for (size_t i = 0; i < kNamed.size(); i += 2)
    if (kNamed[i] == c) return out.push_back(kNamed[i + 1]), true;
  if (c == '\n') return true;
  const auto code = [&](size_t begin, size_t digits, int base) {
    uint32_t value = 0;
    const std::string_view spelled = text.substr(std::min(begin, text.size()), digits);
    const auto read = std::from_chars(spelled.data(), spelled.data() + spelled.size(), value, base);
    if (base == 16 && (spelled.size() != digits || read.ptr != spelled.data() + digits)) return false;
    if (value > 0x10FFFF || (value >= 0xD800 && value < 0xE000)) return false;
    at = static_cast<size_t>(read.ptr - text.data());
    tokenizers::append_utf8(value, out);
    return true;
  };
  if (c >= '0' && c <= '7') return code(at - 1, 3, 8);
  if (c == 'x') return code(at, 2, 16);
  if (c == 'u') return code(at, 4, 16);
  if (c == 'U') return code(at, 8, 16);
  if (c == 'N') return false;
  out.append(1, '\\').push_back(c);
  return true;
}

void Lexer::op() {
  constexpr std::string_view kLong[] = {"//", "**", "==", "!=", ">=", "<="};
  std::string_view found;
  for (const std::string_view candidate : kLong)
    if (next_is(candidate)) found = source_.substr(at_, 2);
  if (found.empty() && std::string_view("+-/*%~[](){}><=.:|,;").find(source_[at_]) != std::string_view::npos)
    found = source_.substr(at_, 1);
  if (found.empty()) {
    const auto length = static_cast<size_t>(tokenizers::decode(source_.data() + at_).length);
    return fail(fmt::format("unexpected character '{}'", source_.substr(at_, length)));
  }
  const char c = found[0];
  if (c == '(' || c == '[' || c == '{') {
    brackets_.push_back(c == '(' ? ')' : c == '[' ? ']' : '}');
  } else if (c == ')' || c == ']' || c == '}') {
    if (brackets_.empty()) return fail(fmt::format("unexpected '{}'", c));
    if (brackets_.back() != c)
      return fail(fmt::format("unexpected '{}', expected '{}'", c, brackets_.back()));
    brackets_.pop_back();
  }
  add(TokenKind::kOperator, found);
  move(found.size());
}

}  // namespace

Error template_error(std::string what, int line) {
  return {ErrorCode::kBadData, std::move(what), fmt::format("line {}", line)};
}

std::string normalized_source(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\r') {
      out.push_back(text[i]);
      continue;
    }
    out.push_back('\n');
    if (i + 1 < text.size() && text[i + 1] == '\n') ++i;
  }
  if (out.ends_with('\n')) out.pop_back();
  return out;
}

Result<std::vector<Token>> tokenize(std::string_view source, std::deque<std::string>& texts) {
  return Lexer(source, texts).run();
}

}  // namespace plimsoll::templates
