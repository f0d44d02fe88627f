// Grapheme clusters (Unicode Standard Annex 29, extended), with the classes of the `tokenizers` package
// (grapheme_tables.cpp).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "tokenizers/unicode.h"

namespace plimsoll::tokenizers {

/// The low four bits of a code point's class.
enum class GraphemeClass : uint8_t {
  kAny,
  kCarriageReturn,
  kLineFeed,
  kControl,
  kLeading,  // consonants and vowels of Hangul, and its syllables
  kVowel,
  kTrailing,
  kSyllable,
  kClosedSyllable,
  kExtend,
  kJoiner,
  kSpacingMark,
  kPrepend,
  kConsonant,  // of an Indic script
  kPictograph,
  kRegional
};
constexpr uint8_t kGraphemeClassBits = 0x0F;
constexpr uint8_t kIndicLinkerBit = 0x10;
constexpr uint8_t kIndicExtendBit = 0x20;

/// start << 8 | class, ascending by start; the generated table. Hangul's syllables are all kSyllable in it.
std::span<const uint32_t> grapheme_runs();
/// One class for each code point, spread out at the first call.
const uint8_t* grapheme_classes();

/// Whether a cluster begins before the character, whatever precedes it but characters that prepend
/// (kPrepend).
bool begins_grapheme(uint32_t code_point);

/// Walks over a text character by character, from its start.
class GraphemeBreaks {
 public:
  /// Whether a cluster begins before the character that comes next.
  bool next(uint32_t code_point) { return next_class(classes_[code_point]); }

 private:
  bool next_class(uint8_t bits);
  [[nodiscard]] bool breaks(GraphemeClass after) const;

  const uint8_t* classes_ = grapheme_classes();
  GraphemeClass before_ = GraphemeClass::kControl;
  uint8_t pictograph_ = 0;  // 1: one and marks precede, 2: and a joiner last
  uint8_t indic_ = 0;       // 1: a consonant and marks precede, 2: a linker among them
  bool odd_regional_ = false;
};

}  // namespace plimsoll::tokenizers
