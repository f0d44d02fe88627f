// utf8proc decomposes and composes; the text is cut where the forms cannot reach across, so NFC of a text
// that is in NFC already, nearly every text, is one look at each character.
#include "tokenizers/unicode_forms.h"

#include <utf8proc.h>

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "tokenizers/unicode.h"

namespace plimsoll::tokenizers {
namespace {

utf8proc_option_t options_of(UnicodeForm form) {
  const int decompose = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE;
  const int compose = UTF8PROC_STABLE | UTF8PROC_COMPOSE;
  switch (form) {
    case UnicodeForm::kNfc:
      return static_cast<utf8proc_option_t>(compose);
    case UnicodeForm::kNfd:
      return static_cast<utf8proc_option_t>(decompose);
    case UnicodeForm::kNfkc:
      return static_cast<utf8proc_option_t>(compose | UTF8PROC_COMPAT);
    case UnicodeForm::kNfkd:
      return static_cast<utf8proc_option_t>(decompose | UTF8PROC_COMPAT);
  }
  PLIMSOLL_FAIL("a form that is none");
}

/// Marks by their combining class, stable. utf8proc's own ordering is quadratic in the length of a run of
/// marks.
void order_marks(std::vector<utf8proc_int32_t>& points) {
  const auto rank = [](utf8proc_int32_t c) { return utf8proc_get_property(c)->combining_class; };
  for (auto at = points.begin(); at != points.end(); ++at) {
    if (rank(*at) == 0) continue;
    const auto run_end = std::find_if(at, points.end(), [&](utf8proc_int32_t c) { return rank(c) == 0; });
    std::stable_sort(at, run_end, [&](utf8proc_int32_t a, utf8proc_int32_t b) { return rank(a) < rank(b); });
    at = run_end - 1;
  }
}

/// Appends the form of a piece that holds no younger character.
void append_form(std::string_view piece, utf8proc_option_t options, std::vector<utf8proc_int32_t>& points,
                 std::string& out) {
  constexpr int kLongest = 18;  // of one character's decomposition, U+FDFA's
  const auto is_ascii = [](char byte) { return static_cast<unsigned char>(byte) < 0x80; };
  if (std::all_of(piece.begin(), piece.end(), is_ascii)) {
    out.append(piece);
    return;
  }
  const auto decomposing = static_cast<utf8proc_option_t>((options & ~UTF8PROC_COMPOSE) | UTF8PROC_DECOMPOSE);
  points.clear();
  for (const char* p = piece.data(); p < piece.data() + piece.size();) {
    const CodePoint c = decode(p);
    p += c.length;
    const size_t size = points.size();
    points.resize(size + kLongest);
    int boundary = 0;
    const utf8proc_ssize_t count = utf8proc_decompose_char(
        static_cast<utf8proc_int32_t>(c.value), points.data() + size, kLongest, decomposing, &boundary);
    PLIMSOLL_CHECK(count >= 0 && count <= kLongest, "utf8proc");
    points.resize(size + static_cast<size_t>(count));
  }
  order_marks(points);
  const utf8proc_ssize_t count =
      utf8proc_normalize_utf32(points.data(), static_cast<utf8proc_ssize_t>(points.size()), options);
  PLIMSOLL_CHECK(count >= 0, utf8proc_errmsg(count));
  for (utf8proc_ssize_t i = 0; i < count; ++i)
    append_utf8(static_cast<uint32_t>(points[static_cast<size_t>(i)]), out);
}

/// The first character from p on that NFC may change or join to the one before.
const char* next_composing(const char* p, const char* end) {
  const uint8_t* const table = properties();
  while (p < end) {
    if (static_cast<unsigned char>(*p) < 0x80) {
      ++p;
      continue;
    }
    const CodePoint c = decode(p);
    if (table[c.value] & kComposesBit) break;
    p += c.length;
  }
  return p;
}

bool to_nfc(std::string_view text, std::string& out) {
  const uint8_t* const table = properties();
  const char* done = text.data();
  const char* const end = done + text.size();
  const char* p = next_composing(done, end);
  if (p == end) return false;
  out.clear();
  std::vector<utf8proc_int32_t> points;
  const utf8proc_option_t options = options_of(UnicodeForm::kNfc);
  while (p < end) {
    // From the character before, which may take it up (but no younger one), to the next that stands alone.
    const char* start = p;
    if (start > done) {
      const CodePoint before = decode_before(start);
      if (!(table[before.value] & kNewerBit)) start -= before.length;
    }
    while (p < end && (table[decode(p).value] & kComposesBit)) p += decode(p).length;
    out.append(done, start);
    append_form({start, p}, options, points, out);
    done = p;
    p = next_composing(p, end);
  }
  out.append(done, end);
  return true;
}

bool to_other_form(UnicodeForm form, std::string_view text, std::string& out) {
  const uint8_t* const table = properties();
  const char* p = text.data();
  const char* const end = p + text.size();
  while (p < end && static_cast<unsigned char>(*p) < 0x80) ++p;
  if (p == end) return false;
  out.clear();
  std::vector<utf8proc_int32_t> points;
  const utf8proc_option_t options = options_of(form);
  const char* done = text.data();
  while (p < end) {
    const CodePoint c = decode(p);
    p += c.length;
    // A line is a boundary of every form and keeps the buffer small.
    if (!(table[c.value] & kNewerBit) && c.value != '\n') continue;
    append_form({done, p - c.length}, options, points, out);
    append_utf8(c.value, out);
    done = p;
  }
  append_form({done, end}, options, points, out);
  return true;
}

}  // namespace

bool to_unicode_form(UnicodeForm form, std::string_view text, std::string& out) {
  return form == UnicodeForm::kNfc ? to_nfc(text, out) : to_other_form(form, text, out);
}

size_t canonical_parts(uint32_t code_point, uint32_t (&parts)[kMostCanonicalParts]) {
  utf8proc_int32_t points[kMostCanonicalParts] = {};
  int boundary = 0;
  const utf8proc_ssize_t count =
      properties()[code_point] & kNewerBit
          ? 0
          : utf8proc_decompose_char(static_cast<utf8proc_int32_t>(code_point), points, kMostCanonicalParts,
                                    options_of(UnicodeForm::kNfd), &boundary);
  PLIMSOLL_CHECK(count >= 0 && count <= static_cast<utf8proc_ssize_t>(kMostCanonicalParts), "utf8proc");
  parts[0] = code_point;
  for (utf8proc_ssize_t i = 0; i < count; ++i) parts[i] = static_cast<uint32_t>(points[i]);
  return count == 0 ? 1 : static_cast<size_t>(count);
}

void append_lowercase(uint32_t c, std::string& out) {
  struct Range {
    uint32_t first, last, lower;
  };
  // Capital letters that utf8proc's Unicode 15 lacks or has not yet paired.
  static constexpr Range kYounger[] = {
      {0x1C89, 0x1C89, 0x1C8A},    {0xA7CB, 0xA7CB, 0x0264}, {0xA7CC, 0xA7CC, 0xA7CD},
      {0xA7CE, 0xA7CE, 0xA7CF},    {0xA7D2, 0xA7D2, 0xA7D3}, {0xA7D4, 0xA7D4, 0xA7D5},
      {0xA7DA, 0xA7DA, 0xA7DB},    {0xA7DC, 0xA7DC, 0x019B}, {0x10D50, 0x10D65, 0x10D70},
      {0x16EA0, 0x16EB8, 0x16EBB},
  };
  if (c == 0x130) return static_cast<void>(out.append("i\xCC\x87"));
  for (const Range& range : kYounger)
    if (c >= range.first && c <= range.last) return append_utf8(range.lower + (c - range.first), out);
  append_utf8(static_cast<uint32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))), out);
}

}  // namespace plimsoll::tokenizers
