// The rules GB3 to GB999 in their order; what three of them look back for is kept while walking forward.
#include "tokenizers/graphemes.h"

#include <cstring>
#include <memory>

namespace plimsoll::tokenizers {
namespace {

std::unique_ptr<uint8_t[]> spread_grapheme_runs() {
  constexpr uint32_t kCodePoints = 0x110000, kFirstSyllable = 0xAC00, kLastSyllable = 0xD7A3,
                     kSyllablesWithOneStart = 28;
  auto table = std::make_unique<uint8_t[]>(kCodePoints);
  const std::span<const uint32_t> runs = grapheme_runs();
  for (size_t i = 0; i < runs.size(); ++i) {
    const uint32_t start = runs[i] >> 8;
    const uint32_t end = i + 1 < runs.size() ? runs[i + 1] >> 8 : kCodePoints;
    std::memset(table.get() + start, static_cast<int>(runs[i] & 0xFF), end - start);
  }
  for (uint32_t c = kFirstSyllable; c <= kLastSyllable; ++c)
    if ((c - kFirstSyllable) % kSyllablesWithOneStart != 0)
      table[c] = static_cast<uint8_t>(GraphemeClass::kClosedSyllable);
  return table;
}

}  // namespace

const uint8_t* grapheme_classes() {
  static const std::unique_ptr<uint8_t[]> table = spread_grapheme_runs();
  return table.get();
}

bool begins_grapheme(uint32_t code_point) {
  const auto kind = static_cast<GraphemeClass>(grapheme_classes()[code_point] & kGraphemeClassBits);
  return kind == GraphemeClass::kAny || kind == GraphemeClass::kCarriageReturn ||
         kind == GraphemeClass::kControl;
}

bool GraphemeBreaks::breaks(GraphemeClass after) const {
  using enum GraphemeClass;
  const auto ends = [](GraphemeClass one) {
    return one == kCarriageReturn || one == kLineFeed || one == kControl;
  };
  if (before_ == kCarriageReturn && after == kLineFeed) return false;
  if (ends(before_) || ends(after)) return true;
  if (after == kExtend || after == kJoiner || after == kSpacingMark || before_ == kPrepend) return false;
  switch (after) {
    case kLeading:
    case kSyllable:
    case kClosedSyllable:
      return before_ != kLeading;
    case kVowel:
      return before_ != kLeading && before_ != kVowel && before_ != kSyllable;
    case kTrailing:
      return before_ != kVowel && before_ != kSyllable && before_ != kTrailing && before_ != kClosedSyllable;
    case kConsonant:
      return indic_ != 2;
    case kPictograph:
      return pictograph_ != 2;
    case kRegional:
      return before_ != kRegional || !odd_regional_;
    default:
      return true;
  }
}

bool GraphemeBreaks::next_class(uint8_t bits) {
  using enum GraphemeClass;
  const auto after = static_cast<GraphemeClass>(bits & kGraphemeClassBits);
  const bool result = breaks(after);
  if (after == kPictograph)
    pictograph_ = 1;
  else if (after != kExtend)
    pictograph_ = after == kJoiner && pictograph_ == 1 ? 2 : 0;
  else if (pictograph_ == 2)
    pictograph_ = 0;
  if (after == kConsonant)
    indic_ = 1;
  else if (!(bits & (kIndicLinkerBit | kIndicExtendBit)))
    indic_ = 0;
  else if (indic_ != 0 && (bits & kIndicLinkerBit))
    indic_ = 2;
  odd_regional_ = after == kRegional && !odd_regional_;
  before_ = after;
  return result;
}

}  // namespace plimsoll::tokenizers
