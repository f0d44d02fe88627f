// Pre-tokenizers: what cuts a text into the words that the model encodes. A list of stages, each of which
// cuts the pieces of the one before.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tokenizers/document.h"
#include "tokenizers/split_rules.h"

namespace plimsoll::tokenizers {

/// What becomes of the matches of a pattern and of what lies between them.
enum class SplitBehavior : uint8_t { kIsolated, kRemoved, kContiguous, kMergedWithPrevious, kMergedWithNext };

/// What a cut between two characters is to the words: between two of them for certain; perhaps within one,
/// changing no other; neither for certain.
enum class CutEffect : uint8_t { kApart, kWithin, kUnsure };

/// Takes the words. They lie in memory that is readable up to `readable_end`, and only for the duration of
/// the call.
class WordSink {
 public:
  virtual ~WordSink() = default;
  virtual void word(std::string_view word, const char* readable_end) = 0;
};

class PreTokenizer {
 public:
  /// `field` may be absent or null: the text is one word.
  /// Errors: kBadData for a kind or a pattern that is not supported, by its name.
  static Result<PreTokenizer> build(const Field& field);

  /// Whether the model gets bytes in place of characters (ByteLevel stands last).
  [[nodiscard]] bool byte_level() const { return byte_level_; }
  /// What stands for a space in the words, where it is not a space itself.
  [[nodiscard]] std::string_view space_mark() const;
  /// What may lie between two words and is in neither of them; where it is spaces, no word has one, nor a
  /// mark that stands for one.
  enum class Dropped : uint8_t { kNothing, kSpaces, kOther };
  [[nodiscard]] Dropped drops() const;
  /// For a cut before `right`, where `left` ends (valid UTF-8, neither is empty), behind the text's start,
  /// whatever lies around. The two characters at the cut as words have them are written to `left_char`,
  /// `right_char`.
  CutEffect cut_effect(std::string_view left, std::string_view right, uint32_t& left_char,
                       uint32_t& right_char) const;
  /// Cuts `text`, valid UTF-8. `first`: the text starts where the user's text starts.
  void run(std::string_view text, bool first, WordSink& sink) const;

 private:
  enum class Kind : uint8_t { kRule, kLiteral, kDigits, kMetaspace, kPrefixSpace, kBert, kSpaces };
  enum class Prepend : uint8_t { kFirst, kNever, kAlways };
  struct Stage {
    Kind kind = Kind::kRule;
    SplitBehavior behavior = SplitBehavior::kIsolated;
    bool invert = false;
    SplitRule rule = SplitRule::kGpt2;
    std::string literal = {};  // kLiteral: the pattern; kMetaspace: the replacement
    Prepend prepend = Prepend::kAlways;
    bool split = true;
  };
  struct Piece {
    std::string_view text;
    bool first;
    const char* readable_end;
  };
  struct Span {
    size_t begin;
    size_t end;
    bool match;
  };

  struct Cut {
    uint32_t left;
    uint32_t right;
    bool near_apostrophe;  // before it, as near as a contraction reaches
  };

  Status add(const Field& field, int depth);
  static CutEffect stage_effect(const Stage& how, Cut& cut);
  static CutEffect rule_effect(SplitRule rule, const Cut& cut);
  static CutEffect literal_effect(const Stage& how, const Cut& cut);
  static CutEffect metaspace_effect(const Stage& how, Cut& cut);
  Status add_split(const Field& field);
  Status add_metaspace(const Field& field);
  void pass(size_t stage, const Piece& piece, WordSink& sink) const;
  template <SplitRule R>
  void cut_by_rule(size_t stage, const Piece& piece, WordSink& sink) const;
  void cut_by_rule(size_t stage, const Piece& piece, WordSink& sink) const;
  void cut_digits(size_t stage, const Piece& piece, WordSink& sink) const;
  void cut_spans(size_t stage, const Piece& piece, WordSink& sink) const;
  void cut_metaspace(size_t stage, const Piece& piece, WordSink& sink) const;
  void cut_words(size_t stage, const Piece& piece, WordSink& sink) const;

  std::vector<Stage> stages_;
  bool byte_level_ = false;
};

}  // namespace plimsoll::tokenizers
