// Each step reads one string and writes another, or says that it changes nothing.
#include "tokenizers/normalizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tokenizers/nmt.h"
#include "tokenizers/unicode.h"
#include "tokenizers/unicode_forms.h"

namespace plimsoll::tokenizers {
namespace {

bool replace_all(std::string_view text, std::string_view pattern, std::string_view content, std::string& out,
                 bool& first) {
  size_t found = text.find(pattern);
  if (found == std::string_view::npos) return false;
  // The package dates what it puts in by the last character that it takes out.
  if (found == 0 && (content.empty() || static_cast<size_t>(decode(pattern.data()).length) != pattern.size()))
    first = false;
  out.clear();
  out.reserve(text.size() + text.size() / 2);
  size_t done = 0;
  for (; found != std::string_view::npos; found = text.find(pattern, done)) {
    out.append(text.substr(done, found - done)).append(content);
    done = found + pattern.size();
  }
  out.append(text.substr(done));
  return true;
}

/// Runs of two blanks or more.
bool replace_blanks(std::string_view text, std::string_view content, std::string& out) {
  size_t found = text.find("  ");
  if (found == std::string_view::npos) return false;
  out.clear();
  out.reserve(text.size() + text.size() / 2);
  size_t done = 0;
  for (; found != std::string_view::npos; found = text.find("  ", done)) {
    out.append(text.substr(done, found - done)).append(content);
    done = std::min(text.find_first_not_of(' ', found), text.size());
  }
  out.append(text.substr(done));
  return true;
}

bool strip(std::string_view text, bool left, bool right, std::string& out, bool& first) {
  const char* p = text.data();
  const char* end = p + text.size();
  while (left && p < end && is_space(decode(p))) p += decode(p).length;
  while (right && end > p && is_space(decode_before(end))) end -= decode_before(end).length;
  if (p != text.data()) first = false;
  if (static_cast<size_t>(end - p) == text.size()) return false;
  out.assign(p, end);
  return true;
}

bool strip_accents(std::string_view text, std::string& out, bool& first) {
  const uint8_t* const table = properties();
  out.clear();
  out.reserve(text.size());
  for (const char* p = text.data(); p < text.data() + text.size();) {
    const CodePoint c = decode(p);
    if (!(table[c.value] & kAccentBit))
      out.append(p, static_cast<size_t>(c.length));
    else if (p == text.data())
      first = false;
    p += c.length;
  }
  return out.size() != text.size();
}

bool nmt(std::string_view text, std::string& out, bool& first) {
  out.clear();
  out.reserve(text.size());
  for (const char* p = text.data(); p < text.data() + text.size();) {
    const CodePoint c = decode(p);
    if (const auto with = nmt_character(c.value))
      append_utf8(*with, out);
    else if (p == text.data())
      first = false;
    p += c.length;
  }
  return out != text;
}

bool lowercase(std::string_view text, std::string& out) {
  out.clear();
  out.reserve(text.size() + text.size() / 8);
  for (const char* p = text.data(); p < text.data() + text.size();) {
    const CodePoint c = decode(p);
    if (c.value < 0x80)
      out.push_back(*p >= 'A' && *p <= 'Z' ? static_cast<char>(*p + 32) : *p);
    else
      append_lowercase(c.value, out);
    p += c.length;
  }
  return true;
}

}  // namespace

Result<Normalizer> Normalizer::build(const Field& field) {
  Normalizer result;
  if (!field.absent()) PLIMSOLL_TRY(result.add(field, 0));
  return result;
}

Status Normalizer::add(const Field& field, int depth) {
  PLIMSOLL_ASSIGN(const std::string type, field.type());
  if (type == "Sequence") {
    if (depth > 8 || steps_.size() > 64) return field.error("is too long or nested too deep");
    const Field list = field.member("normalizers");
    PLIMSOLL_TRY(list.check_list());
    for (size_t i = 0; i < list.num_items(); ++i) PLIMSOLL_TRY(add(list.item(i), depth + 1));
    return Ok{};
  }
  if (type == "Replace") return add_replace(field);
  if (type == "BertNormalizer") {
    PLIMSOLL_ASSIGN(auto bert, BertNormalizer::build(field));
    steps_.push_back({.kind = Kind::kBert, .bert = bert});
    return Ok{};
  }
  if (type == "Precompiled") {
    PLIMSOLL_ASSIGN(auto charsmap, Charsmap::read(field.member("precompiled_charsmap")));
    steps_.push_back(
        {.kind = Kind::kPrecompiled, .charsmap = std::make_shared<const Charsmap>(std::move(charsmap))});
    return Ok{};
  }
  if (type == "Prepend") {
    PLIMSOLL_ASSIGN(std::string content, field.member("prepend").string());
    steps_.push_back({.kind = Kind::kPrepend, .content = std::move(content)});
    return Ok{};
  }
  if (type == "Strip") {
    Step step{.kind = Kind::kStrip};
    PLIMSOLL_ASSIGN(step.left, field.member("strip_left").boolean());
    PLIMSOLL_ASSIGN(step.right, field.member("strip_right").boolean());
    steps_.push_back(std::move(step));
    return Ok{};
  }
  constexpr std::pair<std::string_view, Kind> kPlain[] = {{"NFC", Kind::kNfc},
                                                          {"NFD", Kind::kNfd},
                                                          {"NFKC", Kind::kNfkc},
                                                          {"NFKD", Kind::kNfkd},
                                                          {"Lowercase", Kind::kLowercase},
                                                          {"StripAccents", Kind::kStripAccents},
                                                          {"Nmt", Kind::kNmt}};
  for (const auto& [name, kind] : kPlain)
    if (name == type) return steps_.push_back({.kind = kind}), Ok{};
  return field.member("type").error(fmt::format(
      "is '{}'; supported normalizers are NFC, NFD, NFKC, NFKD, Lowercase, Strip, StripAccents, Prepend, "
      "Replace, BertNormalizer, Precompiled, Nmt and Sequence",
      type.substr(0, 60)));
}

Status Normalizer::add_replace(const Field& field) {
  const Field pattern = field.member("pattern");
  PLIMSOLL_TRY(pattern.check_map());
  if (const Field regex = pattern.member("Regex"); regex.tree) {
    if (regex.tree->kind != io::Tree::Kind::kString || regex.tree->text != " {2,}")
      return regex.error(fmt::format("is {}: of regular expressions ' {{2,}}' alone is supported here",
                                     regex.tree->describe()));
    Step blanks{.kind = Kind::kReplaceBlanks};
    PLIMSOLL_ASSIGN(blanks.content, field.member("content").string());
    steps_.push_back(std::move(blanks));
    return Ok{};
  }
  Step step{.kind = Kind::kReplace};
  PLIMSOLL_ASSIGN(step.pattern, pattern.member("String").string());
  if (step.pattern.empty()) return pattern.member("String").error("is empty");
  PLIMSOLL_ASSIGN(step.content, field.member("content").string());
  steps_.push_back(std::move(step));
  return Ok{};
}

bool Normalizer::step(const Step& how, std::string_view text, std::string& out, bool& first) {
  switch (how.kind) {
    case Kind::kNfc:
      return to_unicode_form(UnicodeForm::kNfc, text, out);
    case Kind::kNfd:
      return to_unicode_form(UnicodeForm::kNfd, text, out);
    case Kind::kNfkc:
      return to_unicode_form(UnicodeForm::kNfkc, text, out);
    case Kind::kNfkd:
      return to_unicode_form(UnicodeForm::kNfkd, text, out);
    case Kind::kLowercase:
      return lowercase(text, out);
    case Kind::kStrip:
      return strip(text, how.left, how.right, out, first);
    case Kind::kStripAccents:
      return strip_accents(text, out, first);
    case Kind::kReplace:
      return replace_all(text, how.pattern, how.content, out, first);
    case Kind::kReplaceBlanks:
      return replace_blanks(text, how.content, out);
    case Kind::kBert:
      return how.bert.apply(text, out);
    case Kind::kPrecompiled:
      return how.charsmap->apply(text, out);
    case Kind::kNmt:
      return nmt(text, out, first);
    case Kind::kPrepend:
      if (text.empty()) return false;
      out.clear();
      out.reserve(text.size() + how.content.size());
      out.append(how.content).append(text);
      return true;
  }
  return false;
}

std::string_view Normalizer::apply(std::string_view text, std::string& out, bool& first,
                                   bool continues) const {
  std::string scratch;
  for (const Step& how : steps_) {
    if (continues && how.kind == Kind::kPrepend) continue;
    if (!step(how, text, scratch, first)) continue;
    std::swap(out, scratch);  // `text` may be a view of what is now scratch; it is not read again
    text = out;
  }
  return text;
}

}  // namespace plimsoll::tokenizers
