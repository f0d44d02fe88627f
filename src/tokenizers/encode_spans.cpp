// Encoding that tells where each token lies in the text. It takes the path of every encode, word by word, and
// finds each word again in the text that it was cut from:
//
//   text ─repair─► valid text ─► section ─normalizer─► normalized ─pre-tokenizer─► word ─model─► tokens
//        ◄──────────────────────────────── begin and end of a token ───────────────────────────────
#include <algorithm>
#include <functional>

#include "tokenizers/parts.h"
#include "tokenizers/tokenizer.h"
#include "tokenizers/unicode.h"

namespace plimsoll::tokenizers {
namespace {

/// For each byte of the repaired text, where its character lies in the text.
std::vector<Span> repair_with_spans(std::string_view text, std::string& repaired) {
  std::vector<Span> spans;
  repaired.clear();
  for (size_t at = 0; at < text.size();) {
    const size_t invalid = invalid_utf8_prefix(text.substr(at));
    const size_t size = invalid != 0 ? invalid : static_cast<size_t>(decode(text.data() + at).length);
    append_repaired(text.substr(at, size), repaired);
    spans.resize(repaired.size(), {at, at + size});
    at += size;
  }
  return spans;
}

/// The stretch that one of a changed text was made from; `spans`: by byte, empty where nothing changed.
Span through(const std::vector<Span>& spans, Span span) {
  if (spans.empty() || span.end == 0) return span;
  const size_t last = span.end - 1;
  return {spans[std::min(span.begin, last)].begin, spans[last].end};
}

/// Takes the words of one section and puts down where their tokens lie in the original text.
class SpansSink final : public WordSink {
 public:
  SpansSink(const TokenizerParts& parts, ModelState& state, std::vector<int32_t>& ids,
            std::vector<Span>& spans)
      : parts_(parts),
        state_(state),
        ids_(ids),
        spans_(spans),
        mark_(parts.pre_tokenizer.space_mark()),
        drops_(parts.pre_tokenizer.drops()) {}

  /// The text that the next words come from, and a function from its stretches to the original's.
  void start(std::string_view text, std::function<Span(Span)> original) {
    text_ = text;
    at_ = 0;
    original_ = std::move(original);
  }
  void word(std::string_view word, const char* readable_end) override {
    const size_t before = ids_.size();
    parts_.model->encode_word(word, readable_end, parts_.vocabulary, state_, ids_);
    parts_.model->finish(parts_.vocabulary, state_, ids_);
    in_word_.clear();
    parts_.model->append_ends(word, std::span(ids_).subspan(before), parts_.vocabulary, in_word_);
    if (drops_ == PreTokenizer::Dropped::kSpaces)
      while (at_ < text_.size() && is_space(decode(text_.data() + at_))) at_ += char_at(text_, at_).size();
    if (drops_ == PreTokenizer::Dropped::kOther) find(word);
    follow(word);
  }

 private:
  /// How much of the text the character of a word is; 0 where it was put there.
  [[nodiscard]] size_t match(std::string_view c, size_t at) const {
    if (text_.substr(at, c.size()) == c) return c.size();
    const bool may_be_blank = drops_ != PreTokenizer::Dropped::kSpaces && at < text_.size();
    return may_be_blank && text_[at] == ' ' && c == mark_ ? 1 : 0;
  }
  [[nodiscard]] static std::string_view char_at(std::string_view text, size_t at) {
    return text.substr(at, static_cast<size_t>(decode(text.data() + at).length));
  }
  /// Passes over what the pre-tokenizer dropped before the word.
  void find(std::string_view word) {
    for (size_t begin = at_; begin < text_.size(); begin += char_at(text_, begin).size()) {
      size_t at = begin;
      bool same = true;
      for (size_t i = 0; same && i < word.size();) {
        const std::string_view c = char_at(word, i);
        const size_t size = match(c, at);
        same = size != 0;
        at += size;
        i += c.size();
      }
      if (!same) continue;
      at_ = begin;
      return;
    }
  }
  void follow(std::string_view word) {
    size_t token = 0;
    size_t begin = at_;  // of the next token
    for (size_t i = 0; i < word.size();) {
      const std::string_view c = char_at(word, i);
      const size_t size = match(c, at_);
      const size_t start = at_;
      at_ += size;
      i += c.size();
      // What was put before the text belongs to the character behind it.
      const size_t end = size != 0 || at_ == text_.size() ? at_ : at_ + char_at(text_, at_).size();
      for (; token < in_word_.size() && in_word_[token] <= i; ++token) {
        spans_.push_back(original_({begin, end}));
        begin = in_word_[token] == i ? at_ : start;  // else it ends inside of this character
      }
    }
  }

  const TokenizerParts& parts_;
  ModelState& state_;
  std::vector<int32_t>& ids_;
  std::vector<Span>& spans_;
  std::string_view mark_;
  PreTokenizer::Dropped drops_;
  std::string_view text_ = {};
  size_t at_ = 0;
  std::function<Span(Span)> original_ = {};
  std::vector<size_t> in_word_ = {};
};

}  // namespace

void TokenizerParts::encode_text_with_spans(std::string_view text, State& state, std::vector<int32_t>& ids,
                                            std::vector<Span>& spans) const {
  std::vector<Span> repair_spans;
  if (valid_utf8_prefix(text) != text.size()) {
    repair_spans = repair_with_spans(text, state.repaired);
    text = state.repaired;
  }
  const auto original = [&](Span span) { return through(repair_spans, span); };
  SpansSink sink(*this, state.model, ids, spans);
  const auto offset_of = [](std::string_view part, std::string_view whole) {
    return static_cast<size_t>(part.data() - whole.data());
  };
  state.sections.clear();
  added.cut(text, false, state.sections);
  std::vector<Span> normal_spans;
  for (const Section& section : state.sections) {
    const size_t base = offset_of(section.text, text);
    if (section.id >= 0) {
      ids.push_back(section.id);
      spans.push_back(original({base, base + section.text.size()}));
      continue;
    }
    bool first = base == 0;
    const std::string_view normalized =
        normalizer.apply_aligned(section.text, state.normalized, first, normal_spans);
    state.inner_sections.clear();
    added.cut(normalized, true, state.inner_sections);
    for (const Section& inner : state.inner_sections) {
      const size_t inner_base = offset_of(inner.text, normalized);
      const auto in_text = [&, base, inner_base](Span span) {
        const Span before = through(normal_spans, {inner_base + span.begin, inner_base + span.end});
        return original({base + before.begin, base + before.end});
      };
      if (inner.id >= 0) {
        ids.push_back(inner.id);
        spans.push_back(in_text({0, inner.text.size()}));
        continue;
      }
      sink.start(inner.text, in_text);
      pre_tokenizer.run(inner.text, first && inner_base == 0, sink);
    }
  }
}

Status Tokenizer::encode_with_spans(std::string_view text, bool add_special_tokens, std::vector<int32_t>& ids,
                                    std::vector<Span>& spans) const {
  std::unique_ptr<TokenizerParts::State> state = parts_->take_state();
  const size_t before = ids.size();
  std::vector<Span> found;
  state->model.unknown_failed = false;
  parts_->around_text(
      true, true, add_special_tokens, [&] { parts_->encode_text_with_spans(text, *state, ids, found); },
      [&](const std::vector<int32_t>& special, bool precedes) {
        ids.insert(ids.end(), special.begin(), special.end());
        const size_t at = precedes ? 0 : text.size();
        found.insert(found.end(), special.size(), {at, at});
      });
  const bool failed = state->model.unknown_failed;
  parts_->give_back(std::move(state));
  if (failed) {
    ids.resize(before);
    return parts_->unknown_error();
  }
  spans.insert(spans.end(), found.begin(), found.end());
  return Ok{};
}

Status Tokenizer::encode_with_ends(std::string_view text, bool add_special_tokens, std::vector<int32_t>& ids,
                                   std::vector<size_t>& ends) const {
  std::vector<Span> spans;
  PLIMSOLL_TRY(encode_with_spans(text, add_special_tokens, ids, spans));
  size_t furthest = 0;
  for (const Span& span : spans) ends.push_back(furthest = std::max(furthest, span.end));
  return Ok{};
}

}  // namespace plimsoll::tokenizers
