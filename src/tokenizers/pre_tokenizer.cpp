// Stages call each other piece by piece, so no list of pieces is kept and the memory does not depend on the
// text.
#include "tokenizers/pre_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace plimsoll::tokenizers {
namespace {

constexpr std::array<std::pair<std::string_view, SplitBehavior>, 5> kBehaviors = {{
    {"Isolated", SplitBehavior::kIsolated},
    {"Removed", SplitBehavior::kRemoved},
    {"Contiguous", SplitBehavior::kContiguous},
    {"MergedWithPrevious", SplitBehavior::kMergedWithPrevious},
    {"MergedWithNext", SplitBehavior::kMergedWithNext},
}};

Result<SplitBehavior> behavior_of(const Field& field) {
  PLIMSOLL_ASSIGN(const std::string name, field.string());
  for (const auto& [known, behavior] : kBehaviors)
    if (known == name) return behavior;
  return field.expected("Isolated, Removed, Contiguous, MergedWithPrevious or MergedWithNext");
}

Error unknown_rule(const Field& field, std::string_view text) {
  Error error =
      field.error(fmt::format("is no regular expression that is read: '{}'{}; those of GPT-2, GPT-4, GPT-4o, "
                              "Llama 3, Qwen 2 to 3.5 and Mistral's Tekken are",
                              text.substr(0, 300), text.size() > 300 ? " …" : ""));
  error.hint = "tokenize with another program and give the ids: an integer .npy file with one sample per row";
  return error;
}

/// Whether a span goes into the piece before it, by whether each of them is a match.
bool joins(SplitBehavior behavior, bool before, bool span) {
  switch (behavior) {
    case SplitBehavior::kIsolated:
    case SplitBehavior::kRemoved:
      return false;
    case SplitBehavior::kContiguous:
      return span == before;
    case SplitBehavior::kMergedWithPrevious:
      return span && !before;
    case SplitBehavior::kMergedWithNext:
      return before && !span;
  }
  return false;
}

}  // namespace

Result<PreTokenizer> PreTokenizer::build(const Field& field) {
  PreTokenizer result;
  if (!field.absent()) PLIMSOLL_TRY(result.add(field, 0));
  return result;
}

Status PreTokenizer::add(const Field& field, int depth) {
  PLIMSOLL_ASSIGN(const std::string type, field.type());
  if (byte_level_) return field.error("stands after ByteLevel, where nothing is supported");
  if (type == "Sequence") {
    if (depth > 8 || stages_.size() > 64) return field.error("is too long or nested too deep");
    const Field list = field.member("pretokenizers");
    PLIMSOLL_TRY(list.check_list());
    for (size_t i = 0; i < list.num_items(); ++i) PLIMSOLL_TRY(add(list.item(i), depth + 1));
    return Ok{};
  }
  if (type == "Split") return add_split(field);
  if (type == "Metaspace") return add_metaspace(field);
  if (type == "BertPreTokenizer") {
    stages_.push_back({.kind = Kind::kBert});
    return Ok{};
  }
  if (type == "WhitespaceSplit") {
    stages_.push_back({.kind = Kind::kSpaces});
    return Ok{};
  }
  if (type == "Digits") {
    PLIMSOLL_ASSIGN(const bool individual, field.member("individual_digits").boolean());
    stages_.push_back({.kind = Kind::kDigits,
                       .behavior = individual ? SplitBehavior::kIsolated : SplitBehavior::kContiguous});
    return Ok{};
  }
  if (type == "ByteLevel") {
    PLIMSOLL_ASSIGN(const bool prefix_space, field.member("add_prefix_space").boolean());
    PLIMSOLL_ASSIGN(const bool use_regex, field.member("use_regex").boolean_or(true));
    if (prefix_space) stages_.push_back({.kind = Kind::kPrefixSpace});
    if (use_regex) stages_.push_back({.kind = Kind::kRule});
    byte_level_ = true;
    return Ok{};
  }
  return field.member("type").error(
      fmt::format("is '{}'; supported pre-tokenizers are ByteLevel, Split, Digits, Metaspace, "
                  "BertPreTokenizer, WhitespaceSplit and Sequence",
                  type.substr(0, 60)));
}

Status PreTokenizer::add_split(const Field& field) {
  Stage stage;
  PLIMSOLL_ASSIGN(stage.behavior, behavior_of(field.member("behavior")));
  PLIMSOLL_ASSIGN(stage.invert, field.member("invert").boolean());
  const Field pattern = field.member("pattern");
  PLIMSOLL_TRY(pattern.check_map());
  if (const Field literal = pattern.member("String"); literal.tree) {
    stage.kind = Kind::kLiteral;
    PLIMSOLL_ASSIGN(stage.literal, literal.string());
    if (stage.literal.empty()) return literal.error("is empty");
  } else {
    const Field regex = pattern.member("Regex");
    PLIMSOLL_ASSIGN(const std::string text, regex.string());
    const auto rule = recognise_split_rule(text);
    if (!rule) return unknown_rule(regex, text);
    stage.rule = *rule;
    // The rules leave no gaps, so a match is a piece either way; the other behaviors would join or drop them
    // all.
    const bool pieces =
        stage.invert ? stage.behavior == SplitBehavior::kRemoved : stage.behavior == SplitBehavior::kIsolated;
    if (!pieces && !(stage.invert && stage.behavior == SplitBehavior::kIsolated))
      return field.member("behavior")
          .expected("Isolated, or Removed with invert, where the pattern is a regular expression");
  }
  stages_.push_back(std::move(stage));
  return Ok{};
}

// The older spelling has add_prefix_space in place of prepend_scheme; where both stand they have to agree.
Status PreTokenizer::add_metaspace(const Field& field) {
  Stage stage{.kind = Kind::kMetaspace};
  const Field replacement = field.member("replacement");
  PLIMSOLL_ASSIGN(stage.literal, replacement.string());
  if (stage.literal.empty() || decode(stage.literal.data()).length != static_cast<int>(stage.literal.size()))
    return replacement.expected("one character");
  PLIMSOLL_ASSIGN(stage.split, field.member("split").boolean_or(true));
  const Field scheme = field.member("prepend_scheme");
  if (!scheme.absent()) {
    PLIMSOLL_ASSIGN(const std::string name, scheme.string());
    if (name != "first" && name != "never" && name != "always")
      return scheme.expected("first, never or always");
    stage.prepend = name == "first" ? Prepend::kFirst : name == "never" ? Prepend::kNever : Prepend::kAlways;
  }
  const Field legacy = field.member("add_prefix_space");
  PLIMSOLL_ASSIGN(const bool prefix_space, legacy.boolean_or(true));
  if (!prefix_space) {
    if (!scheme.absent() && stage.prepend != Prepend::kNever)
      return legacy.error("contradicts prepend_scheme");
    stage.prepend = Prepend::kNever;
  }
  stages_.push_back(std::move(stage));
  return Ok{};
}

std::string_view PreTokenizer::space_mark() const {
  for (const Stage& stage : stages_)
    if (stage.kind == Kind::kMetaspace) return stage.literal;
  return {};
}

PreTokenizer::Dropped PreTokenizer::drops() const {
  bool marks = false;
  Dropped dropped = Dropped::kNothing;
  for (const Stage& stage : stages_) {
    marks |= stage.kind == Kind::kMetaspace || stage.kind == Kind::kPrefixSpace;
    if (stage.kind == Kind::kLiteral && stage.behavior == SplitBehavior::kRemoved) return Dropped::kOther;
    if (stage.kind != Kind::kBert && stage.kind != Kind::kSpaces) continue;
    if (marks) return Dropped::kOther;
    dropped = Dropped::kSpaces;
  }
  return dropped;
}

void PreTokenizer::run(std::string_view text, bool first, WordSink& sink) const {
  if (!text.empty()) pass(0, {text, first, text.data() + text.size()}, sink);
}

void PreTokenizer::pass(size_t stage, const Piece& piece, WordSink& sink) const {
  if (stage == stages_.size()) return sink.word(piece.text, piece.readable_end);
  switch (stages_[stage].kind) {
    case Kind::kRule:
      return cut_by_rule(stage, piece, sink);
    case Kind::kDigits:
      return cut_digits(stage, piece, sink);
    case Kind::kLiteral:
      return cut_spans(stage, piece, sink);
    case Kind::kMetaspace:
      return cut_metaspace(stage, piece, sink);
    case Kind::kBert:
    case Kind::kSpaces:
      return cut_words(stage, piece, sink);
    case Kind::kPrefixSpace: {
      if (piece.text.front() == ' ') return pass(stage + 1, piece, sink);
      std::string spaced;
      spaced.reserve(piece.text.size() + 1);
      spaced.append(" ").append(piece.text);
      return pass(stage + 1, {spaced, piece.first, spaced.data() + spaced.size()}, sink);
    }
  }
}

template <SplitRule R>
void PreTokenizer::cut_by_rule(size_t stage, const Piece& piece, WordSink& sink) const {
  const uint8_t* const table = properties();
  const char* p = piece.text.data();
  const char* const end = p + piece.text.size();
  const bool last_stage = stage + 1 == stages_.size();
  bool first = piece.first;
  while (p < end) {
    const char* const after = piece_end<R>(p, end, table);
    const std::string_view text(p, static_cast<size_t>(after - p));
    if (last_stage)
      sink.word(text, piece.readable_end);
    else
      pass(stage + 1, {text, first, piece.readable_end}, sink);
    first = false;
    p = after;
  }
}

void PreTokenizer::cut_by_rule(size_t stage, const Piece& piece, WordSink& sink) const {
  switch (stages_[stage].rule) {
    case SplitRule::kGpt2:
      return cut_by_rule<SplitRule::kGpt2>(stage, piece, sink);
    case SplitRule::kLlama3:
      return cut_by_rule<SplitRule::kLlama3>(stage, piece, sink);
    case SplitRule::kQwen2:
      return cut_by_rule<SplitRule::kQwen2>(stage, piece, sink);
    case SplitRule::kLongDigits:
      return cut_by_rule<SplitRule::kLongDigits>(stage, piece, sink);
    case SplitRule::kQwenMarks:
      return cut_by_rule<SplitRule::kQwenMarks>(stage, piece, sink);
    case SplitRule::kGpt4o:
      return cut_by_rule<SplitRule::kGpt4o>(stage, piece, sink);
    case SplitRule::kTekken:
      return cut_by_rule<SplitRule::kTekken>(stage, piece, sink);
  }
}

void PreTokenizer::cut_digits(size_t stage, const Piece& piece, WordSink& sink) const {
  const uint8_t* const table = properties();
  const bool single = stages_[stage].behavior == SplitBehavior::kIsolated;
  const char* p = piece.text.data();
  const char* const end = p + piece.text.size();
  bool first = piece.first;
  while (p < end) {
    const char* const start = p;
    const auto numeric = [&](CodePoint c) { return (table[c.value] & kNumericBit) != 0; };
    CodePoint c = decode(p);
    const bool digits = numeric(c);
    do {
      p += c.length;
      if (p == end) break;
      c = decode(p);
    } while (numeric(c) == digits && !(digits && single));
    pass(stage + 1, {{start, static_cast<size_t>(p - start)}, first, piece.readable_end}, sink);
    first = false;
  }
}

void PreTokenizer::cut_spans(size_t stage, const Piece& piece, WordSink& sink) const {
  const Stage& how = stages_[stage];
  // Spans of matches and of what lies between them, in order, joined as they are completed.
  const auto emit = [&](size_t begin, size_t end) {
    if (begin < end)
      pass(stage + 1, {piece.text.substr(begin, end - begin), piece.first && begin == 0, piece.readable_end},
           sink);
  };
  Span open{0, 0, false};
  const auto take = [&](Span span) {
    if (joins(how.behavior, open.match, span.match)) {
      open = {open.begin, span.end, span.match};
      return;
    }
    if (!(how.behavior == SplitBehavior::kRemoved && open.match)) emit(open.begin, open.end);
    open = span;
  };
  size_t at = 0;
  while (at < piece.text.size()) {
    const size_t found = piece.text.find(how.literal, at);
    const size_t match = found == std::string_view::npos ? piece.text.size() : found;
    if (match > at) take({at, match, how.invert});
    if (match == piece.text.size()) break;
    at = match + how.literal.size();
    take({match, at, !how.invert});
  }
  if (!(how.behavior == SplitBehavior::kRemoved && open.match)) emit(open.begin, open.end);
}

void PreTokenizer::cut_metaspace(size_t stage, const Piece& piece, WordSink& sink) const {
  const Stage& how = stages_[stage];
  const bool wants_prefix =
      how.prepend == Prepend::kAlways || (how.prepend == Prepend::kFirst && piece.first);
  const bool gets_prefix = wants_prefix && piece.text.front() != ' ' && !piece.text.starts_with(how.literal);
  // A word behind WhitespaceSplit, by far the most frequent piece, takes no memory of its own.
  char small[128];
  if (how.literal.size() + piece.text.size() <= sizeof small / 2 &&
      piece.text.find(' ') == std::string_view::npos &&
      piece.text.find(how.literal, 1) == std::string_view::npos) {
    std::ranges::fill(small, '\0');
    const size_t prefix = gets_prefix ? how.literal.size() : 0;
    char* const behind = std::copy_n(how.literal.data(), prefix, small);
    std::ranges::copy(piece.text, behind);
    return pass(stage + 1, {{small, prefix + piece.text.size()}, piece.first, small + sizeof small}, sink);
  }
  std::string text;
  text.reserve(piece.text.size() + piece.text.size() / 2 + how.literal.size());
  if (gets_prefix) text = how.literal;
  for (size_t at = 0; at < piece.text.size();) {
    const size_t space = std::min(piece.text.find(' ', at), piece.text.size());
    text.append(piece.text.substr(at, space - at));
    if (space < piece.text.size()) text.append(how.literal);
    at = space + 1;
  }
  const char* const readable_end = text.data() + text.size();
  if (!how.split) return pass(stage + 1, {text, piece.first, readable_end}, sink);
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(how.literal, begin + 1), text.size());
    pass(stage + 1,
         {std::string_view(text).substr(begin, end - begin), piece.first && begin == 0, readable_end}, sink);
    begin = end;
  }
}

}  // namespace plimsoll::tokenizers
