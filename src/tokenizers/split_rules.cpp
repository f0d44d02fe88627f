// Patterns by their text, and the rule with the most backtracking.
#include "tokenizers/split_rules.h"

#include <algorithm>
#include <array>

namespace plimsoll::tokenizers {
namespace {

struct Known {
  std::string_view pattern;
  SplitRule rule;
};

#define PLIMSOLL_CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define PLIMSOLL_TAIL R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"
#define PLIMSOLL_UPPER R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])"
#define PLIMSOLL_LOWER R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])"

constexpr std::array kKnown = {
    Known{R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", SplitRule::kGpt2},
    Known{R"('(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", SplitRule::kGpt2},
    Known{PLIMSOLL_CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3})" PLIMSOLL_TAIL, SplitRule::kLlama3},
    Known{PLIMSOLL_CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N})" PLIMSOLL_TAIL, SplitRule::kQwen2},
    Known{PLIMSOLL_CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+)" PLIMSOLL_TAIL, SplitRule::kLongDigits},
    // The possessive spelling of GPT-4's; what they keep from backtracking into never matters.
    Known{
        R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|)"
        R"(\s+(?!\S)|\s+)",
        SplitRule::kLlama3},
    Known{PLIMSOLL_CONTRACTIONS
          R"(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|)"
          R"(\s+(?!\S)|\s+)",
          SplitRule::kQwenMarks},
    Known{R"([^\r\n\p{L}\p{N}]?)" PLIMSOLL_UPPER "*" PLIMSOLL_LOWER "+" PLIMSOLL_CONTRACTIONS
          R"(?|[^\r\n\p{L}\p{N}]?)" PLIMSOLL_UPPER "+" PLIMSOLL_LOWER "*" PLIMSOLL_CONTRACTIONS
          R"(?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
          SplitRule::kGpt4o},
    Known{R"([^\r\n\p{L}\p{N}]?)" PLIMSOLL_UPPER "*" PLIMSOLL_LOWER R"(+|[^\r\n\p{L}\p{N}]?)" PLIMSOLL_UPPER
          "+" PLIMSOLL_LOWER R"(*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
          SplitRule::kTekken},
};

}  // namespace

std::optional<SplitRule> recognise_split_rule(std::string_view pattern) {
  for (const Known& known : kKnown)
    if (known.pattern == pattern) return known.rule;
  return std::nullopt;
}

std::string_view pattern_of(SplitRule rule) {
  return std::find_if(kKnown.begin(), kKnown.end(), [rule](const Known& known) { return known.rule == rule; })
      ->pattern;
}

namespace split_detail {
namespace {

/// UPPER*LOWER+ from p, as a backtracking matcher finds it; null where it does not match. Letters without
/// case and marks are in both sets.
const char* upper_then_lower(const char* p, const char* end, const uint8_t* properties) {
  const char* const upper_end = run(p, end, kUpperSet, properties);
  const char* const lower_end = run(upper_end, end, kLowerSet, properties);
  if (lower_end != upper_end) return lower_end;
  // Give back upper-case letters until one stands at the end that is in the lower set too.
  for (const char* q = upper_end; q > p;) {
    const CodePoint last = decode_before(q);
    if ((1u << (properties[last.value] & kClassBits)) & kLowerSet) return q;
    q -= last.length;
  }
  return nullptr;
}

const char* upper_only(const char* p, const char* end, const uint8_t* properties) {
  const char* const upper_end = run(p, end, kUpperSet, properties);
  return upper_end == p ? nullptr : run(upper_end, end, kLowerSet, properties);
}

/// Words with at most one turn from upper to lower case, with a contraction at their end where those count;
/// numbers of up to so many digits.
const char* cased_piece(const char* p, const char* end, const uint8_t* properties, bool contractions,
                        int most_digits) {
  const Char c = char_at(p, properties);
  const char* const second = p + c.length;
  const bool may_lead = !(c.classes & (kLetters | kNumbers)) && *p != '\r' && *p != '\n';
  for (const auto& word : {upper_then_lower, upper_only}) {
    const char* after = may_lead ? word(second, end, properties) : nullptr;
    if (!after) after = word(p, end, properties);
    if (after) return contractions && after < end && *after == '\'' ? contraction(after, end, true) : after;
  }
  if (c.classes & kNumbers) {
    const char* q = second;
    for (int digits = 1; digits < most_digits && q < end && (char_at(q, properties).classes & kNumbers);
         ++digits)
      q += char_at(q, properties).length;
    return q;
  }
  if (c.classes & kOthers) return newlines(run(second, end, kOthers, properties), end, true);
  if (*p == ' ' && second < end && (char_at(second, properties).classes & kOthers))
    return newlines(run(second, end, kOthers, properties), end, true);
  const char* const run_end = run(second, end, kSpaces, properties);
  for (const char* q = run_end; q > p; --q)
    if (q[-1] == '\n' || q[-1] == '\r') return q;
  return spaces(p, run_end, end);
}

}  // namespace

const char* gpt4o_piece(const char* p, const char* end, const uint8_t* properties) {
  return cased_piece(p, end, properties, /*contractions=*/true, /*most_digits=*/3);
}

const char* tekken_piece(const char* p, const char* end, const uint8_t* properties) {
  return cased_piece(p, end, properties, /*contractions=*/false, /*most_digits=*/1);
}

}  // namespace split_detail

}  // namespace plimsoll::tokenizers
