// Finds positions where a text can be cut without changing the token ids. A cut has to be safe
// for each stage of encoding, whatever lies around it:
//
//   added tokens     none lies across it, touches it or strips spaces over it
//   normalizer       no character joins the one before
//   pre-tokenizer    a word ends there in any case, or is only cut in two
//   model            no merge joins the two characters at the cut
//
// Between a word and the space behind it nearly every tokenizer agrees.
#include <algorithm>

#include "tokenizers/bert_classes.h"
#include "tokenizers/bpe_model.h"
#include "tokenizers/byte_alphabet.h"
#include "tokenizers/parts.h"
#include "tokenizers/tokenizer.h"
#include "tokenizers/unicode.h"

namespace plimsoll::tokenizers {
namespace {

uint32_t class_bit(uint32_t code_point) { return 1u << (properties()[code_point] & kClassBits); }

/// `text` is one character, that one.
bool is_char(std::string_view text, uint32_t code_point) {
  const CodePoint c = decode(text.data());
  return c.value == code_point && static_cast<size_t>(c.length) == text.size();
}

}  // namespace

bool Normalizer::parts_before(const Step& how, uint32_t code_point) {
  switch (how.kind) {
    case Kind::kNfc:
    case Kind::kNfd:
      return !(properties()[code_point] & kComposesBit);
    case Kind::kNfkc:
    case Kind::kNfkd:
      return code_point < 0x80;
    case Kind::kBert:
      return BertNormalizer::parts_before(code_point);
    case Kind::kPrecompiled:
      return how.charsmap->parts_before(code_point);
    default:
      return true;
  }
}

bool Normalizer::parts_before(uint32_t code_point) const {
  return std::all_of(steps_.begin(), steps_.end(),
                     [code_point](const Step& how) { return parts_before(how, code_point); });
}

bool Normalizer::apply_apart(std::string& left, std::string& right) const {
  std::string out;
  bool first = false;
  for (const Step& how : steps_) {
    if (how.kind == Kind::kPrepend) continue;
    if (!parts_before(how, decode(right.data()).value)) return false;
    const bool blank_left = is_space(decode_before(left.data() + left.size()));
    if (how.kind == Kind::kStrip) {
      // What is stripped lies at the ends of the whole text, not at those of the stretches.
      if ((how.right && blank_left) || (how.left && is_space(decode(right.data())))) return false;
      continue;
    }
    // A run of blanks is seen whole, or not at all.
    if (how.kind == Kind::kReplaceBlanks &&
        (blank_left || how.content.empty() || right.find_first_not_of(' ') == std::string::npos))
      return false;
    if (how.kind == Kind::kReplace &&
        (how.content.empty() || !is_char(how.pattern, decode(how.pattern.data()).value)))
      return false;
    for (std::string* const part : {&left, &right}) {
      if (step(how, *part, out, first)) std::swap(*part, out);
      if (part->empty()) return false;
    }
  }
  return true;
}

/// Words end before a space that stands behind anything else, and between letters, digits and what follows
/// them. An apostrophe may begin a contraction and stay with the word, a mark may belong to it.
CutEffect PreTokenizer::rule_effect(SplitRule rule, const Cut& cut) {
  using namespace split_detail;
  const uint32_t left = class_bit(cut.left);
  const uint32_t right = class_bit(cut.right);
  if (!(left & kSpaces) && cut.right == ' ') return CutEffect::kApart;
  if (!(left & (kLetters | kNumbers)) || (right & kMarks) || cut.right == '\'') return CutEffect::kUnsure;
  const bool letters = (left & kLetters) != 0;
  if (!(right & (letters ? kLetters : kNumbers))) return CutEffect::kApart;
  if (letters)
    return rule == SplitRule::kGpt4o || rule == SplitRule::kTekken || cut.near_apostrophe
               ? CutEffect::kUnsure
               : CutEffect::kWithin;
  if (rule == SplitRule::kQwen2 || rule == SplitRule::kQwenMarks || rule == SplitRule::kTekken)
    return CutEffect::kApart;  // a word each
  return rule == SplitRule::kGpt2 || rule == SplitRule::kLongDigits ? CutEffect::kWithin : CutEffect::kUnsure;
}

CutEffect PreTokenizer::literal_effect(const Stage& how, const Cut& cut) {
  if (!is_char(how.literal, decode(how.literal.data()).value)) {
    std::string left, right;
    append_utf8(cut.left, left);
    append_utf8(cut.right, right);
    const bool apart =
        how.literal.find(left) == std::string::npos && how.literal.find(right) == std::string::npos;
    return apart ? CutEffect::kWithin : CutEffect::kUnsure;
  }
  if (!is_char(how.literal, cut.left) && !is_char(how.literal, cut.right)) return CutEffect::kWithin;
  const bool alone = how.behavior == SplitBehavior::kIsolated || how.behavior == SplitBehavior::kRemoved;
  return alone ? CutEffect::kApart : CutEffect::kUnsure;
}

CutEffect PreTokenizer::metaspace_effect(const Stage& how, Cut& cut) {
  const uint32_t mark = decode(how.literal.data()).value;
  if (cut.left == ' ') cut.left = mark;
  if (cut.right == ' ') cut.right = mark;
  if (cut.right == mark) return how.split ? CutEffect::kApart : CutEffect::kWithin;
  return how.prepend == Prepend::kAlways ? CutEffect::kUnsure : CutEffect::kWithin;
}

CutEffect PreTokenizer::stage_effect(const Stage& how, Cut& cut) {
  switch (how.kind) {
    case Kind::kRule:
      return rule_effect(how.rule, cut);
    case Kind::kLiteral:
      return literal_effect(how, cut);
    case Kind::kMetaspace:
      return metaspace_effect(how, cut);
    case Kind::kDigits: {
      const bool left = (properties()[cut.left] & kNumericBit) != 0;
      const bool right = (properties()[cut.right] & kNumericBit) != 0;
      const bool apart = left != right || (left && how.behavior == SplitBehavior::kIsolated);
      return apart ? CutEffect::kApart : CutEffect::kWithin;
    }
    case Kind::kPrefixSpace:
      return cut.right == ' ' ? CutEffect::kWithin : CutEffect::kUnsure;
    case Kind::kSpaces:
    case Kind::kBert: {
      const unsigned classes = how.kind == Kind::kBert ? kBertSpace | kBertPunctuation : kBertSpace;
      const unsigned both = bert_classes()[cut.left] | bert_classes()[cut.right];
      return both & classes ? CutEffect::kApart : CutEffect::kWithin;
    }
  }
  return CutEffect::kUnsure;
}

CutEffect PreTokenizer::cut_effect(std::string_view left, std::string_view right, uint32_t& left_char,
                                   uint32_t& right_char) const {
  constexpr size_t kContraction = 3;  // bytes behind the apostrophe, less the one behind the cut
  Cut cut{
      decode_before(left.data() + left.size()).value, decode(right.data()).value,
      left.substr(left.size() - std::min(left.size(), kContraction)).find('\'') != std::string_view::npos};
  CutEffect effect = CutEffect::kWithin;
  for (size_t i = 0; i < stages_.size() && effect == CutEffect::kWithin; ++i)
    effect = stage_effect(stages_[i], cut);
  left_char = cut.left;
  right_char = cut.right;
  return effect;
}

bool BpeModel::parts_between(uint32_t left, uint32_t right) const {
  if (ignore_merges_) return false;  // a whole word may have a token of its own
  if (byte_level_) {
    std::string bytes;
    append_utf8(left, bytes);
    left = kByteChars[static_cast<unsigned char>(bytes.back())];
    bytes.clear();
    append_utf8(right, bytes);
    right = kByteChars[static_cast<unsigned char>(bytes.front())];
  }
  const Unit before = unit(left);
  const Unit behind = unit(right);
  if (before > Unit::kBytes || behind > Unit::kBytes) return false;
  if (before == Unit::kKnown && behind == Unit::kKnown) return !junctions_.has(left, right);
  // An unknown token may be waiting behind bytes, unless every character has bytes.
  const auto all_bytes = [this] {
    return std::none_of(fallback_ids_.begin(), fallback_ids_.end(), [](int32_t id) { return id < 0; });
  };
  return !bytes_merge_ && (before == Unit::kKnown || all_bytes());
}

namespace {

bool starts_char(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }

class CutFinder {
 public:
  CutFinder(const TokenizerParts& parts, std::string_view text)
      : parts_(parts), text_(text), reach_(64 + 4 * parts.added.max_bytes()) {}

  [[nodiscard]] size_t last() {
    // Text that is asked about again has grown; what lies further back has been searched then.
    constexpr size_t kMostTried = size_t{1} << 20;
    const size_t least = text_.size() - std::min(text_.size(), kMostTried);
    for (size_t at = text_.size(); at > least + 1;)
      if (starts_char(text_[--at]) && is_safe(at)) return at;
    return 0;
  }

 private:
  /// Whether what lies before `at` and behind it can be told apart by the surrounding bytes alone.
  bool is_safe(size_t at) {
    if (!quick_look(at) || !take_stretches(at)) return false;
    if (touches(false) || !parts_.normalizer.apply_apart(left_, right_) || touches(true)) return false;
    uint32_t left_char = 0;
    uint32_t right_char = 0;
    const CutEffect effect = parts_.pre_tokenizer.cut_effect(left_, right_, left_char, right_char);
    return effect == CutEffect::kApart ||
           (effect == CutEffect::kWithin && parts_.model->parts_between(left_char, right_char));
  }

  /// Whether the text as it is might be cut here: a long run that no cut can part is passed over quickly.
  [[nodiscard]] bool quick_look(size_t at) const {
    size_t begin = at - 1;
    while (begin > 0 && at - begin < 4 && !starts_char(text_[begin])) --begin;
    const std::string_view left = char_of(text_.substr(begin, at - begin));
    const std::string_view right = char_of(text_.substr(at, 4));
    uint32_t left_char = 0;
    uint32_t right_char = 0;
    return parts_.pre_tokenizer.cut_effect(left, right, left_char, right_char) != CutEffect::kUnsure;
  }
  /// The character that the bytes start with; U+FFFD where it is broken.
  [[nodiscard]] static std::string_view char_of(std::string_view bytes) {
    if (tokenizers::invalid_utf8_prefix(bytes) != 0) return "\xEF\xBF\xBD";
    return bytes.substr(0, static_cast<size_t>(tokenizers::decode(bytes.data()).length));
  }

  /// Stretches on both sides whose ends stay what they are whatever lies beyond; false where there are none.
  bool take_stretches(size_t at) {
    const auto stands = [this](size_t i) {
      if (!starts_char(text_[i])) return false;
      const std::string_view rest = text_.substr(i, 4);
      if (tokenizers::invalid_utf8_prefix(rest) != 0) return rest.size() == 4;  // else it may go on
      return parts_.normalizer.parts_before(tokenizers::decode(rest.data()).value);
    };
    size_t begin = at - std::min(at, reach_);
    while (begin > 0 && begin < at && !stands(begin)) ++begin;
    size_t end = std::min(text_.size() - 1, at + reach_);
    while (end > at && !stands(end)) --end;
    if (begin == at || end == at) return false;
    left_.clear();
    right_.clear();
    tokenizers::append_repaired(text_.substr(begin, at - begin), left_);
    append_repaired(text_.substr(at, end - at), right_);
    from_start_ = begin == 0;
    return true;
  }

  bool touches(bool normalized) {
    if (!from_start_ && left_.size() < parts_.added.max_bytes()) return true;
    both_.assign(left_).append(right_);
    return parts_.added.touches(both_, left_.size(), normalized);
  }

  const TokenizerParts& parts_;
  std::string_view text_;
  size_t reach_;
  bool from_start_ = false;
  std::string left_;
  std::string right_;
  std::string both_;
};

}  // namespace

size_t Tokenizer::last_safe_cut(std::string_view text) const { return CutFinder(*parts_, text).last(); }

}  // namespace plimsoll::tokenizers
