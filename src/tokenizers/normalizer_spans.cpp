// Normalization that remembers which characters of the text each byte was made from. Each step is applied as
// always and then followed through the two texts.
#include <algorithm>

#include "base/check.h"
#include "tokenizers/nmt.h"
#include "tokenizers/normalizer.h"
#include "tokenizers/unicode.h"
#include "tokenizers/unicode_forms.h"

namespace plimsoll::tokenizers {
namespace {

/// Calls take(begin, end) for each character.
template <typename Take>
void each_char(std::string_view text, const Take& take) {
  for (size_t at = 0; at < text.size();) {
    const size_t end = at + static_cast<size_t>(decode(text.data() + at).length);
    take(at, end);
    at = end;
  }
}

void append_chars(std::string_view text, size_t begin, size_t end, std::vector<Span>& spans) {
  each_char(text.substr(begin, end - begin), [&](size_t from, size_t to) {
    spans.insert(spans.end(), to - from, {begin + from, begin + to});
  });
}

void align_replaced(std::string_view text, std::string_view pattern, size_t content_size,
                    std::vector<Span>& spans) {
  size_t done = 0;
  for (size_t found; (found = text.find(pattern, done)) != std::string_view::npos;) {
    append_chars(text, done, found, spans);
    done = found + pattern.size();
    spans.insert(spans.end(), content_size, {found, done});
  }
  append_chars(text, done, text.size(), spans);
}

void align_replaced_blanks(std::string_view text, size_t content_size, std::vector<Span>& spans) {
  size_t done = 0;
  for (size_t found; (found = text.find("  ", done)) != std::string_view::npos;) {
    append_chars(text, done, found, spans);
    done = std::min(text.find_first_not_of(' ', found), text.size());
    spans.insert(spans.end(), content_size, {found, done});
  }
  append_chars(text, done, text.size(), spans);
}

/// Stretch by stretch, cut before characters that the form neither changes nor joins to the one before.
/// False where that is not what became of the text as a whole.
bool align_form(UnicodeForm form, std::string_view text, std::string_view changed, std::vector<Span>& spans) {
  const uint8_t* const table = properties();
  const bool canonical = form == UnicodeForm::kNfc || form == UnicodeForm::kNfd;
  std::string out;
  size_t begin = 0;
  const auto close = [&](size_t end) {
    if (begin == end) return true;
    const std::string_view stretch = text.substr(begin, end - begin);
    const bool same = !to_unicode_form(form, stretch, out);
    const std::string_view now = same ? stretch : std::string_view(out);
    if (changed.substr(std::min(spans.size(), changed.size()), now.size()) != now) return false;
    if (now == stretch)
      append_chars(text, begin, end, spans);
    else
      spans.insert(spans.end(), now.size(), {begin, end});
    begin = end;
    return true;
  };
  bool fits = true;
  each_char(text, [&](size_t at, size_t) {
    const CodePoint c = decode(text.data() + at);
    const bool alone = c.value < 0x80 || (canonical && !(table[c.value] & kComposesBit));
    if (fits && alone) fits = close(at);
  });
  return fits && close(text.size()) && spans.size() == changed.size();
}

}  // namespace

void Normalizer::align(const Step& how, std::string_view text, std::string_view changed,
                       std::vector<Span>& spans) {
  switch (how.kind) {
    case Kind::kNfc:
    case Kind::kNfd:
    case Kind::kNfkc:
    case Kind::kNfkd: {
      const UnicodeForm form = how.kind == Kind::kNfc    ? UnicodeForm::kNfc
                               : how.kind == Kind::kNfd  ? UnicodeForm::kNfd
                               : how.kind == Kind::kNfkc ? UnicodeForm::kNfkc
                                                         : UnicodeForm::kNfkd;
      // What cannot be followed was made from all of the text.
      if (!align_form(form, text, changed, spans)) spans.assign(changed.size(), {0, text.size()});
      break;
    }
    case Kind::kLowercase:
      each_char(text, [&](size_t begin, size_t end) {
        std::string lower;
        append_lowercase(decode(text.data() + begin).value, lower);
        spans.insert(spans.end(), lower.size(), {begin, end});
      });
      break;
    case Kind::kNmt:
      each_char(text, [&](size_t begin, size_t end) {
        std::string made;
        if (const auto with = nmt_character(decode(text.data() + begin).value)) append_utf8(*with, made);
        spans.insert(spans.end(), made.size(), {begin, end});
      });
      break;
    case Kind::kStripAccents:
      each_char(text, [&](size_t begin, size_t end) {
        if (!(properties()[decode(text.data() + begin).value] & kAccentBit))
          spans.insert(spans.end(), end - begin, {begin, end});
      });
      break;
    case Kind::kStrip: {
      size_t begin = 0;
      if (how.left)
        while (begin < text.size() &&
               (properties()[decode(text.data() + begin).value] & kClassBits) == kSpace)
          begin += static_cast<size_t>(decode(text.data() + begin).length);
      append_chars(text, begin, begin + changed.size(), spans);
      break;
    }
    case Kind::kReplace:
      align_replaced(text, how.pattern, how.content.size(), spans);
      break;
    case Kind::kReplaceBlanks:
      align_replaced_blanks(text, how.content.size(), spans);
      break;
    case Kind::kPrecompiled:
      how.charsmap->align(text, spans);
      break;
    case Kind::kPrepend:
      spans.assign(how.content.size(), {0, static_cast<size_t>(decode(text.data()).length)});
      append_chars(text, 0, text.size(), spans);
      break;
    case Kind::kBert:
      each_char(text, [&](size_t begin, size_t end) {
        std::string made;
        how.bert.append(decode(text.data() + begin).value, made);
        spans.insert(spans.end(), made.size(), {begin, end});
      });
      break;
  }
  PLIMSOLL_CHECK(spans.size() == changed.size(), "alignment");
}

std::string_view Normalizer::apply_aligned(std::string_view text, std::string& out, bool& first,
                                           std::vector<Span>& spans) const {
  spans.clear();
  std::string scratch;
  std::vector<Span> of_step;
  for (const Step& how : steps_) {
    if (!step(how, text, scratch, first)) continue;
    of_step.clear();
    align(how, text, scratch, of_step);
    if (!spans.empty())
      for (Span& span : of_step)
        span = span.end == 0 ? Span{} : Span{spans[span.begin].begin, spans[span.end - 1].end};
    std::swap(spans, of_step);
    std::swap(out, scratch);
    text = out;
  }
  return text;
}

}  // namespace plimsoll::tokenizers
