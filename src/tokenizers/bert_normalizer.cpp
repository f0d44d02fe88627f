// One pass over the characters: nearly all of them are copied, or become another one by themselves. Only
// marks that stay and whose order NFD decides need the whole text; they are rare, and such a text takes the
// rules one after the other.
#include "tokenizers/bert_normalizer.h"

#include <cstring>
#include <memory>

#include "tokenizers/bert_classes.h"
#include "tokenizers/unicode.h"
#include "tokenizers/unicode_forms.h"

namespace plimsoll::tokenizers {
namespace {

std::unique_ptr<uint8_t[]> spread_bert_runs() {
  constexpr uint32_t kCodePoints = 0x110000;
  auto table = std::make_unique<uint8_t[]>(kCodePoints);
  const std::span<const uint32_t> runs = bert_runs();
  for (size_t i = 0; i < runs.size(); ++i) {
    const uint32_t start = runs[i] >> 8;
    const uint32_t end = i + 1 < runs.size() ? runs[i + 1] >> 8 : kCodePoints;
    std::memset(table.get() + start, static_cast<int>(runs[i] & 0xFF), end - start);
  }
  return table;
}

}  // namespace

const uint8_t* bert_classes() {
  static const std::unique_ptr<uint8_t[]> table = spread_bert_runs();
  return table.get();
}

Result<BertNormalizer> BertNormalizer::build(const Field& field) {
  BertNormalizer result;
  PLIMSOLL_ASSIGN(const bool cleans, field.member("clean_text").boolean());
  PLIMSOLL_ASSIGN(const bool spaces_han, field.member("handle_chinese_chars").boolean());
  PLIMSOLL_ASSIGN(result.lowercases_, field.member("lowercase").boolean());
  PLIMSOLL_ASSIGN(result.strips_accents_, field.member("strip_accents").boolean_or(result.lowercases_));
  if (cleans) result.mask_ |= kBertControl | kBertSpace;
  if (spaces_han) result.mask_ |= kBertHan;
  if (result.strips_accents_) result.mask_ |= kBertMark | kBertDecomposes | kBertOrdered;
  if (result.lowercases_) result.mask_ |= kBertUpper;
  result.index();
  return result;
}

void BertNormalizer::index() {
  for (uint32_t c = 0; c < 128; ++c) {
    std::string one;
    append(c, one);
    ascii_[c] = one.empty() ? kRemoved : one[0];
  }
}

bool BertNormalizer::parts_before(uint32_t code_point) {
  return !(bert_classes()[code_point] & (kBertControl | kBertMark | kBertOrdered));
}

void BertNormalizer::append_cased(uint32_t code_point, std::string& out) const {
  if (lowercases_)
    append_lowercase(code_point, out);
  else
    append_utf8(code_point, out);
}

void BertNormalizer::append_stripped(uint32_t code_point, std::string& out) const {
  uint32_t parts[kMostCanonicalParts];
  const size_t count = canonical_parts(code_point, parts);
  for (size_t i = 0; i < count; ++i)
    if (!(bert_classes()[parts[i]] & kBertMark)) append_cased(parts[i], out);
}

void BertNormalizer::append(uint32_t code_point, std::string& out) const {
  const auto classes = static_cast<uint8_t>(bert_classes()[code_point] & mask_);
  if (classes & kBertControl) return;
  if (classes & kBertSpace) return out.push_back(' ');
  if (classes & kBertMark) return;
  if (classes & kBertHan) out.push_back(' ');
  if (classes & kBertDecomposes)
    append_stripped(code_point, out);
  else
    append_cased(code_point, out);
  if (classes & kBertHan) out.push_back(' ');
}

/// False at a mark whose order NFD may change.
bool BertNormalizer::append_run(std::string_view text, std::string& out) const {
  const uint8_t* const table = bert_classes();
  const char* p = text.data();
  const char* const end = p + text.size();
  while (p < end) {
    if (static_cast<unsigned char>(*p) < 0x80) {
      // Room for a run of ASCII, which never grows.
      const char* run = p;
      while (run < end && static_cast<unsigned char>(*run) < 0x80) ++run;
      const size_t size = out.size();
      out.resize(size + static_cast<size_t>(run - p));
      char* to = out.data() + size;
      for (; p < run; ++p) {
        const char c = ascii_[static_cast<unsigned char>(*p)];
        *to = c;
        to += c != kRemoved;
      }
      out.resize(static_cast<size_t>(to - out.data()));
      continue;
    }
    const CodePoint c = decode(p);
    const auto classes = static_cast<uint8_t>(table[c.value] & mask_);
    if (classes & kBertOrdered) return false;
    if (classes)
      append(c.value, out);
    else
      out.append(p, static_cast<size_t>(c.length));
    p += c.length;
  }
  return true;
}

void BertNormalizer::apply_in_order(std::string_view text, std::string& out) const {
  const uint8_t* const table = bert_classes();
  std::string cleaned, form;
  for (const char* p = text.data(); p < text.data() + text.size();) {
    const CodePoint c = decode(p);
    const auto classes = static_cast<uint8_t>(table[c.value] & mask_);
    if (classes & kBertHan) cleaned.push_back(' ');
    if (!(classes & (kBertSpace | kBertControl)))
      cleaned.append(p, static_cast<size_t>(c.length));
    else if (!(classes & kBertControl))
      cleaned.push_back(' ');
    if (classes & kBertHan) cleaned.push_back(' ');
    p += c.length;
  }
  if (!to_unicode_form(UnicodeForm::kNfd, cleaned, form)) form = std::move(cleaned);
  out.clear();
  for (const char* p = form.data(); p < form.data() + form.size();) {
    const CodePoint c = decode(p);
    if (!(table[c.value] & kBertMark)) append_cased(c.value, out);
    p += c.length;
  }
}

bool BertNormalizer::apply(std::string_view text, std::string& out) const {
  if (mask_ == 0) return false;
  out.clear();
  out.reserve(text.size() + text.size() / 8);
  if (!append_run(text, out)) apply_in_order(text, out);
  return out != text;
}

}  // namespace plimsoll::tokenizers
