// Pre-tokenizers: what cuts a text into the words that the model encodes. A list of stages, each of which
// cuts the pieces of the one before.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "data/tokenizer/document.h"
#include "data/tokenizer/split_rules.h"

namespace plimsoll::tokenizer {

/// What becomes of the matches of a pattern and of what lies between them.
enum class SplitBehavior : uint8_t { kIsolated, kRemoved, kContiguous, kMergedWithPrevious, kMergedWithNext };

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
  /// Cuts `text`, valid UTF-8. `first`: the text starts where the user's text starts.
  void run(std::string_view text, bool first, WordSink& sink) const;

 private:
  enum class Kind : uint8_t { kRule, kLiteral, kDigits, kMetaspace, kPrefixSpace };
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

  Status add(const Field& field, int depth);
  Status add_split(const Field& field);
  Status add_metaspace(const Field& field);
  void pass(size_t stage, const Piece& piece, WordSink& sink) const;
  template <SplitRule R>
  void cut_by_rule(size_t stage, const Piece& piece, WordSink& sink) const;
  void cut_by_rule(size_t stage, const Piece& piece, WordSink& sink) const;
  void cut_digits(size_t stage, const Piece& piece, WordSink& sink) const;
  void cut_spans(size_t stage, const Piece& piece, WordSink& sink) const;
  void cut_metaspace(size_t stage, const Piece& piece, WordSink& sink) const;

  std::vector<Stage> stages_;
  bool byte_level_ = false;
};

}  // namespace plimsoll::tokenizer
