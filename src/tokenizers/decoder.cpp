// Each step maps a list of strings to a list of strings, as in the package; what is left is joined.
#include "tokenizers/decoder.h"

#include <fmt/format.h>

#include <optional>

#include "tokenizers/byte_alphabet.h"
#include "tokenizers/unicode.h"

namespace plimsoll::tokenizers {
namespace {

bool is_one_character(std::string_view text) {
  return !text.empty() && static_cast<size_t>(decode(text.data()).length) == text.size();
}

std::string replaced(std::string_view text, std::string_view pattern, std::string_view content) {
  std::string out;
  size_t done = 0;
  for (size_t found = text.find(pattern); found != std::string_view::npos; found = text.find(pattern, done)) {
    out.append(text.substr(done, found - done)).append(content);
    done = found + pattern.size();
  }
  return out.append(text.substr(done));
}

/// The bytes that a token spells in the alphabet of bytes; the token itself where it has another character.
void append_spelled_bytes(std::string_view token, std::string& out) {
  const size_t size = out.size();
  for (const char* p = token.data(); p < token.data() + token.size();) {
    const CodePoint c = decode(p);
    p += c.length;
    const int byte = c.value < kCharBytes.size() ? kCharBytes[c.value] : -1;
    if (byte < 0) {
      out.resize(size);
      out.append(token);
      return;
    }
    out.push_back(static_cast<char>(static_cast<unsigned char>(byte)));
  }
}

void join_bytes(std::vector<std::string>& tokens) {
  std::string bytes;
  for (const std::string& token : tokens) append_spelled_bytes(token, bytes);
  std::string text;
  append_repaired(bytes, text);
  tokens.clear();
  tokens.push_back(std::move(text));
}

/// 0x41 for "<0x41>".
std::optional<char> byte_token(std::string_view token) {
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
  };
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return std::nullopt;
  // Rust's from_str_radix takes a sign too.
  const int high = token[3] == '+' ? 0 : digit(token[3]);
  const int low = digit(token[4]);
  if (high < 0 || low < 0) return std::nullopt;
  return static_cast<char>(static_cast<unsigned char>(high << 4 | low));
}

/// Runs of byte tokens become characters; a run that is no UTF-8 becomes one U+FFFD per byte.
void join_byte_tokens(std::vector<std::string>& tokens) {
  std::vector<std::string> out;
  std::string bytes;
  const auto flush = [&] {
    if (bytes.empty()) return;
    if (valid_utf8_prefix(bytes) == bytes.size())
      out.push_back(bytes);
    else
      out.insert(out.end(), bytes.size(), "\xEF\xBF\xBD");
    bytes.clear();
  };
  for (std::string& token : tokens) {
    if (const auto byte = byte_token(token)) {
      bytes.push_back(*byte);
      continue;
    }
    flush();
    out.push_back(std::move(token));
  }
  flush();
  tokens = std::move(out);
}

void strip(std::string& token, std::string_view character, int64_t start, int64_t stop) {
  size_t begin = 0;
  size_t end = token.size();
  while (start-- > 0 && std::string_view(token).substr(begin).starts_with(character))
    begin += character.size();
  while (stop-- > 0 && end >= begin + character.size() &&
         std::string_view(token).substr(0, end).ends_with(character))
    end -= character.size();
  token = token.substr(begin, end - begin);
}

/// A token that continues a word loses its prefix, another one gets a space before it.
void join_word_piece(bool is_first, std::string_view prefix, bool cleans_up, std::string& token) {
  constexpr std::pair<std::string_view, std::string_view> kCleaned[] = {
      {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
      {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  if (!is_first) {
    if (token.starts_with(prefix))
      token.erase(0, prefix.size());
    else
      token.insert(0, 1, ' ');
  }
  if (!cleans_up) return;
  for (const auto& [from, to] : kCleaned)
    if (token.find(from) != token.npos) token = replaced(token, from, to);
}

}  // namespace

Result<Decoder> Decoder::build(const Field& field) {
  Decoder result;
  if (field.absent())
    result.joins_with_space_ = true;
  else
    PLIMSOLL_TRY(result.add(field, 0));
  return result;
}

Status Decoder::add(const Field& field, int depth) {
  PLIMSOLL_ASSIGN(const std::string type, field.type());
  if (type == "Sequence") {
    if (depth > 8 || steps_.size() > 64) return field.error("is too long or nested too deep");
    const Field list = field.member("decoders");
    PLIMSOLL_TRY(list.check_list());
    for (size_t i = 0; i < list.num_items(); ++i) PLIMSOLL_TRY(add(list.item(i), depth + 1));
    return Ok{};
  }
  if (type == "Metaspace") return add_metaspace(field);
  if (type == "Strip") return add_strip(field);
  if (type == "WordPiece") {
    Step step{.kind = Kind::kWordPiece};
    PLIMSOLL_ASSIGN(step.pattern, field.member("prefix").string());
    PLIMSOLL_ASSIGN(step.cleans_up, field.member("cleanup").boolean());
    return steps_.push_back(std::move(step)), Ok{};
  }
  if (type == "Replace") {
    Step step{.kind = Kind::kReplace};
    const Field pattern = field.member("pattern");
    PLIMSOLL_TRY(pattern.check_map());
    if (pattern.member("Regex").tree)
      return pattern.error("is a regular expression, which is not supported here");
    PLIMSOLL_ASSIGN(step.pattern, pattern.member("String").string());
    if (step.pattern.empty()) return pattern.member("String").error("is empty");
    PLIMSOLL_ASSIGN(step.content, field.member("content").string());
    return steps_.push_back(std::move(step)), Ok{};
  }
  if (type == "ByteLevel") return steps_.push_back({.kind = Kind::kByteLevel}), Ok{};
  if (type == "ByteFallback") return steps_.push_back({.kind = Kind::kByteFallback}), Ok{};
  if (type == "Fuse") return steps_.push_back({.kind = Kind::kFuse}), Ok{};
  return field.member("type").error(fmt::format(
      "is '{}'; supported decoders are ByteLevel, Metaspace, Replace, ByteFallback, Fuse, Strip, WordPiece "
      "and Sequence",
      type.substr(0, 60)));
}

Status Decoder::add_metaspace(const Field& field) {
  Step step{.kind = Kind::kMetaspace, .drops_first = true};
  PLIMSOLL_ASSIGN(step.pattern, field.member("replacement").string());
  if (!is_one_character(step.pattern)) return field.member("replacement").expected("one character");
  if (const Field scheme = field.member("prepend_scheme"); !scheme.absent()) {
    PLIMSOLL_ASSIGN(const std::string name, scheme.string());
    if (name != "first" && name != "never" && name != "always")
      return scheme.expected("first, never or always");
    step.drops_first = name != "never";
  }
  PLIMSOLL_ASSIGN(const bool prefix_space, field.member("add_prefix_space").boolean_or(true));
  if (!prefix_space) step.drops_first = false;
  return steps_.push_back(std::move(step)), Ok{};
}

Status Decoder::add_strip(const Field& field) {
  Step step{.kind = Kind::kStrip};
  PLIMSOLL_ASSIGN(step.pattern, field.member("content").string());
  if (!is_one_character(step.pattern)) return field.member("content").expected("one character");
  PLIMSOLL_ASSIGN(step.start, field.member("start").integer(0, INT32_MAX));
  PLIMSOLL_ASSIGN(step.stop, field.member("stop").integer(0, INT32_MAX));
  return steps_.push_back(std::move(step)), Ok{};
}

void Decoder::step(const Step& how, std::vector<std::string>& tokens) {
  switch (how.kind) {
    case Kind::kByteLevel:
      return join_bytes(tokens);
    case Kind::kByteFallback:
      return join_byte_tokens(tokens);
    case Kind::kReplace:
      for (std::string& token : tokens) token = replaced(token, how.pattern, how.content);
      return;
    case Kind::kMetaspace:
      for (size_t i = 0; i < tokens.size(); ++i)
        tokens[i] = replaced(tokens[i], how.pattern, i == 0 && how.drops_first ? "" : " ");
      return;
    case Kind::kStrip:
      for (std::string& token : tokens) strip(token, how.pattern, how.start, how.stop);
      return;
    case Kind::kWordPiece:
      for (size_t i = 0; i < tokens.size(); ++i)
        join_word_piece(i == 0, how.pattern, how.cleans_up, tokens[i]);
      return;
    case Kind::kFuse: {
      std::string all;
      for (const std::string& token : tokens) all += token;
      tokens.clear();
      tokens.push_back(std::move(all));
      return;
    }
  }
}

std::string Decoder::decode(std::vector<std::string> tokens) const {
  for (const Step& how : steps_) step(how, tokens);
  std::string text;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (i > 0 && joins_with_space_) text += ' ';
    text += tokens[i];
  }
  return text;
}

}  // namespace plimsoll::tokenizers
