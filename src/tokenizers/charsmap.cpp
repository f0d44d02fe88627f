#include "tokenizers/charsmap.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tokenizers/graphemes.h"
#include "tokenizers/unicode.h"

namespace plimsoll::tokenizers {
namespace {

constexpr uint32_t kValueBit = uint32_t{1} << 31;
constexpr size_t kCharsOfSmallClusters = 6;  // bytes; clusters below are looked up whole

uint32_t label_of(uint32_t unit) { return unit & (kValueBit | 0xFF); }
bool is_entry(uint32_t unit) { return (unit >> 8 & 1) != 0; }
uint32_t offset_of(uint32_t unit) { return (unit >> 10) << ((unit & (1u << 9)) >> 6); }

int digit_of(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

}  // namespace

std::optional<std::string> decode_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  const size_t padding = text.ends_with("==") ? 2 : text.ends_with("=") ? 1 : 0;
  text.remove_suffix(padding);
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3 + 3);
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const int digit = digit_of(c);
    if (digit < 0) return std::nullopt;
    bits = bits << 6 | static_cast<uint32_t>(digit);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes.push_back(static_cast<char>(static_cast<unsigned char>(bits >> count & 0xFF)));
  }
  if ((bits & ((1u << count) - 1)) != 0) return std::nullopt;  // bits that are no byte's
  return bytes;
}

std::string encode_base64(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t at = 0; at < bytes.size(); at += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - at);
    uint32_t bits = 0;
    for (size_t i = 0; i < 3; ++i)
      bits = bits << 8 | (i < count ? static_cast<unsigned char>(bytes[at + i]) : 0u);
    for (size_t i = 0; i < 4; ++i) text += i <= count ? kDigits[bits >> (18 - 6 * i) & 63] : '=';
  }
  return text;
}

Result<Charsmap> Charsmap::read(const Field& field) {
  PLIMSOLL_ASSIGN(const std::string text, field.string());
  const auto bytes = decode_base64(text);
  if (!bytes) return field.error("is no base64");
  return parse(*bytes, field);
}

Result<Charsmap> Charsmap::parse(std::string_view bytes, const Field& field) {
  const auto number = [bytes](size_t at) {
    uint32_t value = 0;
    for (size_t i = 0; i < 4; ++i)
      value |= static_cast<uint32_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
    return value;
  };
  if (bytes.size() < 4) return field.error(fmt::format("has {} bytes, too few for a table", bytes.size()));
  const size_t size = number(0);
  if (size > bytes.size() - 4)
    return field.error(
        fmt::format("has {} bytes, but its trie alone should have {}", bytes.size(), size + 4));
  if (size % 4 != 0 || size == 0) return field.error(fmt::format("has a trie of {} bytes", size));
  Charsmap result;
  result.units_.resize(size / 4);
  for (size_t i = 0; i < result.units_.size(); ++i) result.units_[i] = number(4 + 4 * i);
  result.strings_ = std::string(bytes.substr(4 + size));
  if (valid_utf8_prefix(result.strings_) != result.strings_.size())
    return field.error("has replacements that are no UTF-8");
  PLIMSOLL_TRY(result.check(field));
  result.index();
  return result;
}

/// Follows every path of the trie, each node once: children of a base lie at it ^ their byte, so a unit knows
/// whose child it is.
Status Charsmap::check(const Field& field) const {
  const auto size = static_cast<uint32_t>(units_.size());
  const uint32_t num_bases = (size | 0xFF) + 1;
  std::vector<uint32_t> starts(num_bases + 1), children(size);
  const auto each_child = [&](const auto& take) {
    for (uint32_t i = 1; i < size; ++i)
      if (const uint32_t label = label_of(units_[i]); label > 0 && label < 256) take(i ^ label, i);
  };
  each_child([&](uint32_t base, uint32_t) { ++starts[base + 1]; });
  for (uint32_t base = 0; base < num_bases; ++base) starts[base + 1] += starts[base];
  std::vector<uint32_t> next(starts.begin(), starts.end() - 1);
  each_child([&](uint32_t base, uint32_t child) { children[next[base]++] = child; });

  std::vector<bool> seen(num_bases);
  std::vector<uint32_t> open;
  const auto reach = [&](uint32_t from) -> Status {
    const uint32_t base = from ^ offset_of(units_[from]);
    if (base >= size)
      return field.error(fmt::format("has a trie of {} units, and unit {} points outside", size, from));
    if (from != 0 && is_entry(units_[from])) PLIMSOLL_TRY(check_entry(base, field));
    if (!seen[base]) open.push_back(base);
    seen[base] = true;
    return Ok{};
  };
  PLIMSOLL_TRY(reach(0));
  while (!open.empty()) {
    const uint32_t base = open.back();
    open.pop_back();
    for (uint32_t i = starts[base]; i < starts[base + 1]; ++i) PLIMSOLL_TRY(reach(children[i]));
  }
  return Ok{};
}

Status Charsmap::check_entry(uint32_t value_at, const Field& field) const {
  const size_t start = units_[value_at] & ~kValueBit;
  const bool inside =
      start <= strings_.size() &&
      (start == strings_.size() || (static_cast<unsigned char>(strings_[start]) & 0xC0) != 0x80);
  if (!inside)
    return field.error(fmt::format("has a replacement that starts at byte {} of {}", start, strings_.size()));
  if (string_at(value_at).size() > kMostReplacement)
    return field.error(fmt::format("has a replacement of more than {} bytes", kMostReplacement));
  return Ok{};
}

std::string_view Charsmap::string_at(uint32_t value_at) const {
  const std::string_view rest =
      std::string_view(strings_).substr(units_[value_at] & ~kValueBit, kMostReplacement + 1);
  return rest.substr(0, rest.find('\0'));
}

/// What the shortest entry that the text starts with says.
std::optional<std::string_view> Charsmap::find(std::string_view text) const {
  uint32_t base = offset_of(units_[0]);
  for (const char c : text) {
    const uint32_t byte = static_cast<unsigned char>(c);
    const uint32_t at = base ^ byte;
    if (byte == 0 || at >= units_.size()) return std::nullopt;
    const uint32_t unit = units_[at];
    if (label_of(unit) != byte) return std::nullopt;
    base = at ^ offset_of(unit);
    if (is_entry(unit)) return string_at(base);
  }
  return std::nullopt;
}

/// Whether an entry starts with the text.
bool Charsmap::has_prefix(std::string_view text) const {
  uint32_t base = offset_of(units_[0]);
  for (const char c : text) {
    const uint32_t byte = static_cast<unsigned char>(c);
    const uint32_t at = base ^ byte;
    if (byte == 0 || at >= units_.size() || label_of(units_[at]) != byte) return false;
    base = at ^ offset_of(units_[at]);
  }
  return true;
}

void Charsmap::index() {
  for (unsigned byte = 0; byte < 0x80; ++byte) {
    const char c = static_cast<char>(byte);
    const auto with = find({&c, 1});
    if (with)
      ascii_[byte] = {true, static_cast<uint16_t>(with->size()),
                      static_cast<size_t>(with->data() - strings_.data())};
  }
  const uint8_t* const classes = grapheme_classes();
  for (const uint32_t run : grapheme_runs()) {
    if (static_cast<GraphemeClass>(run & kGraphemeClassBits) != GraphemeClass::kPrepend) continue;
    for (uint32_t c = run >> 8; classes[c] == (run & 0xFF); ++c) {
      std::string text;
      append_utf8(c, text);
      changes_behind_ |= has_prefix(text);
    }
  }
}

bool Charsmap::parts_before(uint32_t code_point) const {
  return !changes_behind_ && begins_grapheme(code_point);
}

template <typename Keep, typename Replace>
void Charsmap::each_part_of_cluster(std::string_view text, Span cluster, const Keep& keep,
                                    const Replace& replace) const {
  if (cluster.end - cluster.begin < kCharsOfSmallClusters) {
    if (const auto with = find(text.substr(cluster.begin, cluster.end - cluster.begin)))
      return replace(cluster, *with);
    const size_t first = static_cast<size_t>(decode(text.data() + cluster.begin).length);
    if (cluster.begin + first == cluster.end) return keep(cluster);
  }
  for (size_t at = cluster.begin; at < cluster.end;) {
    const size_t end = at + static_cast<size_t>(decode(text.data() + at).length);
    if (const auto with = find(text.substr(at, end - at)))
      replace(Span{at, end}, *with);
    else
      keep(Span{at, end});
    at = end;
  }
}

/// From `at` on, where a cluster begins, ASCII characters as long as each is a cluster by itself; returns
/// where that ends.
template <typename Keep, typename Replace>
size_t Charsmap::each_ascii(std::string_view text, size_t at, const Keep& keep,
                            const Replace& replace) const {
  const auto is_ascii = [&](size_t i) { return static_cast<unsigned char>(text[i]) < 0x80; };
  size_t kept = at;  // since there
  for (; at < text.size() && is_ascii(at); ++at) {
    const bool is_last = at + 1 == text.size();
    if (!is_last && (!is_ascii(at + 1) || (text[at] == '\r' && text[at + 1] == '\n'))) break;
    const Ascii& entry = ascii_[static_cast<unsigned char>(text[at])];
    if (!entry.changes) continue;
    if (kept < at) keep(Span{kept, at});
    replace(Span{at, at + 1}, std::string_view(strings_).substr(entry.start, entry.size));
    kept = at + 1;
  }
  if (kept < at) keep(Span{kept, at});
  return at;
}

/// Calls keep(span) for what stays and replace(span, with) for a character or a cluster that does not.
template <typename Keep, typename Replace>
void Charsmap::each_part(std::string_view text, const Keep& keep, const Replace& replace) const {
  GraphemeBreaks breaks;
  size_t begin = 0;  // of the cluster
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = decode(text.data() + at);
    if (breaks.next(c.value) && begin < at) {
      each_part_of_cluster(text, {begin, at}, keep, replace);
      begin = at;
    }
    const size_t behind = begin == at && c.value < 0x80 ? each_ascii(text, at, keep, replace) : at;
    if (behind == at) {
      at += static_cast<size_t>(c.length);
      continue;
    }
    breaks = GraphemeBreaks();
    breaks.next(static_cast<unsigned char>(text[behind - 1]));
    begin = at = behind;
  }
  if (begin < text.size()) each_part_of_cluster(text, {begin, text.size()}, keep, replace);
}

bool Charsmap::apply(std::string_view text, std::string& out) const {
  bool changed = false;
  out.clear();
  out.reserve(text.size() + text.size() / 8);
  each_part(
      text, [&](Span kept) { out.append(text.substr(kept.begin, kept.end - kept.begin)); },
      [&](Span, std::string_view with) {
        changed = true;
        out.append(with);
      });
  return changed;
}

void Charsmap::align(std::string_view text, std::vector<Span>& spans) const {
  const auto char_span = [](std::string_view from, size_t at) {
    return Span{at, at + static_cast<size_t>(decode(from.data() + at).length)};
  };
  each_part(
      text,
      [&](Span kept) {
        for (Span c{kept.begin, kept.begin}; c.end < kept.end;) {
          c = char_span(text, c.end);
          spans.insert(spans.end(), c.end - c.begin, c);
        }
      },
      [&](Span replaced, std::string_view with) {
        Span from{replaced.begin, replaced.begin};
        for (Span c{0, 0}; c.end < with.size();) {
          c = char_span(with, c.end);
          if (from.end < replaced.end) from = char_span(text, from.end);
          const bool is_last = c.end == with.size();
          spans.insert(spans.end(), c.end - c.begin, {from.begin, is_last ? replaced.end : from.end});
        }
      });
}

}  // namespace plimsoll::tokenizers
