// The regular expressions of public tokenizers, recognised by their text, each as an automaton written by
// hand. They cover every character, so a text falls into pieces without gaps.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "tokenizers/unicode.h"

namespace plimsoll::tokenizers {

enum class SplitRule : uint8_t {
  kGpt2,        ///< 's|'t|… | ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
  kLlama3,      ///< (?i:'s|…)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|
                ///< ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
  kQwen2,       ///< the same with \p{N}
  kLongDigits,  ///< the same with \p{N}+
  kQwenMarks,   ///< as kQwen2, marks counted as letters
  kGpt4o,       ///< words end where lower case turns upper, contractions stay with their word
  kTekken,      ///< the same with \p{N} and without contractions (Mistral's since Nemo)
};

/// The rule that a pattern spells, if it is one of those.
std::optional<SplitRule> recognise_split_rule(std::string_view pattern);
/// A pattern that spells the rule.
std::string_view pattern_of(SplitRule rule);

namespace split_detail {

constexpr uint32_t bit(CharClass c) { return 1u << c; }
constexpr uint32_t kLetters = bit(kUpper) | bit(kLower) | bit(kLetter);
constexpr uint32_t kNumbers = bit(kNumber);
constexpr uint32_t kSpaces = bit(kSpace);
constexpr uint32_t kMarks = bit(kMark);
constexpr uint32_t kOthers = bit(kOther) | kMarks;  // [^\s\p{L}\p{N}]
constexpr uint32_t kUpperSet = bit(kUpper) | bit(kLetter) | kMarks;
constexpr uint32_t kLowerSet = bit(kLower) | bit(kLetter) | kMarks;

struct Char {
  uint32_t classes;  // one bit
  int length;
};
inline Char char_at(const char* p, const uint8_t* properties) {
  const CodePoint c = decode(p);
  return {1u << (properties[c.value] & kClassBits), c.length};
}
/// The end of the run of characters in `classes` that starts at p.
inline const char* run(const char* p, const char* end, uint32_t classes, const uint8_t* properties) {
  while (p < end) {
    const Char c = char_at(p, properties);
    if (!(c.classes & classes)) break;
    p += c.length;
  }
  return p;
}
inline const char* newlines(const char* p, const char* end, bool slashes = false) {
  while (p < end && (*p == '\r' || *p == '\n' || (slashes && *p == '/'))) ++p;
  return p;
}
/// \s+(?!\S)|\s+ at p: all of a run at the end of the text, else all but its last character unless it is the
/// only one.
inline const char* spaces(const char* p, const char* run_end, const char* end) {
  if (run_end == end) return end;
  const char* const last = run_end - decode_before(run_end).length;
  return last == p ? run_end : last;
}
/// 's 't 'm 'd 're 've 'll at p, which points at the apostrophe; p where there is none.
inline const char* contraction(const char* p, const char* end, bool any_case) {
  const auto letter = [&](int i) -> char {
    if (end - p <= i) return 0;
    const char c = p[i];
    return any_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  };
  const char first = letter(1);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return p + 2;
  const char second = letter(2);
  if ((first == 'r' && second == 'e') || (first == 'v' && second == 'e') || (first == 'l' && second == 'l'))
    return p + 3;
  // U+017F, the long s, is an s to a regular expression that ignores case.
  if (any_case && end - p >= 3 && p[1] == '\xC5' && p[2] == '\xBF') return p + 3;
  return p;
}

inline const char* gpt2_piece(const char* p, const char* end, const uint8_t* properties) {
  if (*p == '\'')
    if (const char* after = contraction(p, end, false); after != p) return after;
  const char* const word = p + (*p == ' ' && p + 1 < end ? 1 : 0);
  const Char c = char_at(word, properties);
  for (const uint32_t classes : {kLetters, kNumbers, kOthers})
    if (c.classes & classes) return run(word + c.length, end, classes, properties);
  return spaces(p, run(word, end, kSpaces, properties), end);
}

template <SplitRule R>
const char* llama3_piece(const char* p, const char* end, const uint8_t* properties) {
  constexpr uint32_t kWord = R == SplitRule::kQwenMarks ? kLetters | kMarks : kLetters;
  constexpr uint32_t kPunctuation = R == SplitRule::kQwenMarks ? kOthers & ~kMarks : kOthers;
  if (*p == '\'')
    if (const char* after = contraction(p, end, true); after != p) return after;
  const Char c = char_at(p, properties);
  const char* const second = p + c.length;
  if (c.classes & kWord) return run(second, end, kWord, properties);
  if (c.classes & kNumbers) {
    if constexpr (R == SplitRule::kLongDigits) return run(second, end, kNumbers, properties);
    constexpr int kMost = R == SplitRule::kLlama3 ? 3 : 1;
    const char* q = second;
    for (int digits = 1; digits < kMost && q < end; ++digits) {
      const Char digit = char_at(q, properties);
      if (!(digit.classes & kNumbers)) break;
      q += digit.length;
    }
    return q;
  }
  const Char next = second < end ? char_at(second, properties) : Char{0, 0};
  if ((next.classes & kWord) && *p != '\r' && *p != '\n')
    return run(second + next.length, end, kWord, properties);
  if (c.classes & kPunctuation) return newlines(run(second, end, kPunctuation, properties), end);
  if (*p == ' ' && (next.classes & kPunctuation))
    return newlines(run(second + next.length, end, kPunctuation, properties), end);
  const char* const run_end = run(second, end, kSpaces, properties);
  for (const char* q = run_end; q > p; --q)
    if (q[-1] == '\n' || q[-1] == '\r') return q;
  return spaces(p, run_end, end);
}

const char* gpt4o_piece(const char* p, const char* end, const uint8_t* properties);
const char* tekken_piece(const char* p, const char* end, const uint8_t* properties);

}  // namespace split_detail

/// The end of the piece that starts at p, p < end, in valid UTF-8.
template <SplitRule R>
inline const char* piece_end(const char* p, const char* end, const uint8_t* properties) {
  if constexpr (R == SplitRule::kGpt2) return split_detail::gpt2_piece(p, end, properties);
  if constexpr (R == SplitRule::kGpt4o) return split_detail::gpt4o_piece(p, end, properties);
  if constexpr (R == SplitRule::kTekken) return split_detail::tekken_piece(p, end, properties);
  return split_detail::llama3_piece<R>(p, end, properties);
}

}  // namespace plimsoll::tokenizers
