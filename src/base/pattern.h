// Regular expressions of whole texts, in time that their text and their pattern bound: a pattern may come
// from a file that someone else wrote. What Python's re and ECMAScript mean by them; no captures, hence
// neither back references nor what a group held.
#pragma once

#include <cctype>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace plimsoll {

/// Characters, ".", [classes], \d \w \s \D \W \S \b \B, (groups), (?:…), (?P<name>…), (?=…), (?!…), |, * + ?
/// {m,n} also lazy, ^ and $, escapes. Bytes, no Unicode classes. A program for a machine that remembers where
/// it has been: Thompson 1968 as in R. Cox, "Regular Expression Matching: the Virtual Machine Approach"
/// (2009).
class Pattern {
 public:
  /// Errors: kInvalidArgument saying what is wrong and where: a text that is none, a back reference or
  /// look-behind, one that is longer than 2,000 characters or unrolls to more than 20,000 instructions.
  static Result<Pattern> parse(std::string_view text);

  /// Whether all of `text` matches. After 10 million instructions: false.
  [[nodiscard]] bool matches(std::string_view text) const;

 private:
  friend class PatternParser;
  friend class PatternRun;
  enum class Kind : uint8_t { kSet, kSplit, kJump, kBegin, kEnd, kWord, kNoWord, kAhead, kNotAhead, kMatch };
  struct Instruction {
    Kind kind = Kind::kMatch;
    int32_t x = 0, y = 0;  ///< kSet: the set; else where it goes on: both, the one, behind what is looked at
  };
  struct Set {
    uint64_t bits[4] = {};
    void add(unsigned char c) { bits[c >> 6] |= uint64_t{1} << (c & 63U); }
    [[nodiscard]] bool has(unsigned char c) const { return (bits[c >> 6] >> (c & 63U) & 1U) != 0; }
  };
  [[nodiscard]] static bool is_word(unsigned char c) { return std::isalnum(c) != 0 || c == '_'; }

  std::vector<Instruction> program_;
  std::vector<Set> sets_;
};

}  // namespace plimsoll
