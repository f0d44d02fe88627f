// Compiles a regular expression to a program.
#include "base/pattern.h"

#include <fmt/format.h>

#include <cctype>
#include <optional>
#include <utility>

namespace plimsoll {
namespace {

constexpr size_t kMaxText = 2000, kMaxProgram = 20000, kMaxDepth = 100;
constexpr int64_t kMaxRepeat = 1000;

}  // namespace

/// Recursive descent; each rule appends to the program what matches it.
class PatternParser {
 public:
  explicit PatternParser(std::string_view text) : text_(text) {}

  Result<Pattern> operator()() {
    if (text_.size() > kMaxText) return error("it is longer than 2,000 characters");
    PLIMSOLL_TRY(alternatives(0));
    if (at_ < text_.size()) return error("')' without '('");
    emit(Kind::kMatch);
    return std::move(pattern_);
  }

 private:
  using Kind = Pattern::Kind;
  using Set = Pattern::Set;

  [[nodiscard]] Error error(std::string_view what) const {
    return {ErrorCode::kInvalidArgument, fmt::format("{} (at character {})", what, at_ + 1), {}, ""};
  }
  [[nodiscard]] bool more() const { return at_ < text_.size(); }
  [[nodiscard]] bool next_is(std::string_view s) const { return text_.substr(at_).starts_with(s); }
  bool take(std::string_view s) {
    if (!next_is(s)) return false;
    at_ += s.size();
    return true;
  }
  int32_t here() const { return static_cast<int32_t>(pattern_.program_.size()); }
  int32_t emit(Kind kind, int32_t x = 0, int32_t y = 0) {
    pattern_.program_.push_back({kind, x, y});
    return here() - 1;
  }
  Pattern::Instruction& at(int32_t i) { return pattern_.program_[static_cast<size_t>(i)]; }
  void emit(const Set& set) {
    pattern_.sets_.push_back(set);
    emit(Kind::kSet, static_cast<int32_t>(pattern_.sets_.size()) - 1);
  }

  Status alternatives(size_t depth) {
    if (depth > kMaxDepth) return error("groups are nested too deeply");
    std::vector<int32_t> jumps;
    for (;;) {
      const int32_t split = emit(Kind::kSplit);
      PLIMSOLL_TRY(sequence(depth));
      const bool again = take("|");
      at(split) = again ? Pattern::Instruction{Kind::kSplit, split + 1, here() + 1}
                        : Pattern::Instruction{Kind::kJump, split + 1, 0};
      if (!again) break;
      jumps.push_back(emit(Kind::kJump));
    }
    for (const int32_t jump : jumps) at(jump).x = here();
    return Ok{};
  }

  Status sequence(size_t depth) {
    while (more() && !next_is("|") && !next_is(")")) {
      const int32_t begin = here();
      PLIMSOLL_TRY(item(depth));
      PLIMSOLL_TRY(repeated(begin));
      if (pattern_.program_.size() > kMaxProgram) return error("it unrolls to too much");
    }
    return Ok{};
  }

  Status item(size_t depth) {
    if (take("(")) return group(depth);
    if (next_is("*") || next_is("+") || next_is("?")) return error("nothing to repeat");
    if (take("^")) return emit(Kind::kBegin), Ok{};
    if (take("$")) return emit(Kind::kEnd), Ok{};
    if (take("[")) return set_of_brackets();
    if (take("\\")) return escaped();
    Set set;
    if (take(".")) {
      for (int c = 0; c < 256; ++c)
        if (c != '\n') set.add(static_cast<unsigned char>(c));
    } else {
      set.add(static_cast<unsigned char>(text_[at_++]));
    }
    emit(set);
    return Ok{};
  }

  Status group(size_t depth) {
    std::optional<int32_t> look;
    if (take("?=") || next_is("?!")) {
      look = emit(take("?!") ? Kind::kNotAhead : Kind::kAhead);
    } else if (take("?P<") || (next_is("?<") && !next_is("?<=") && !next_is("?<!") && take("?<"))) {
      while (more() && Pattern::is_word(static_cast<unsigned char>(text_[at_]))) ++at_;
      if (!take(">")) return error("a name that does not end");
    } else if (!take("?:") && next_is("?")) {
      return error("a group that is not available: look-behind, flags, conditions");
    }
    PLIMSOLL_TRY(alternatives(depth + 1));
    if (!take(")")) return error("'(' without ')'");
    if (!look) return Ok{};
    emit(Kind::kMatch);
    at(*look).x = *look + 1;
    at(*look).y = here();
    return Ok{};
  }

  std::optional<int64_t> number() {
    const size_t begin = at_;
    int64_t value = 0;
    for (; more() && std::isdigit(static_cast<unsigned char>(text_[at_])) != 0; ++at_)
      value = std::min<int64_t>(kMaxRepeat + 1, value * 10 + (text_[at_] - '0'));
    return at_ == begin ? std::nullopt : std::optional(value);
  }

  /// What stands behind an item, whose instructions begin at `begin`: nothing, or how often it is repeated.
  Status repeated(int32_t begin) {
    int64_t least = 1, most = 1;
    const size_t start = at_;
    if (take("*")) {
      least = 0, most = -1;
    } else if (take("+")) {
      most = -1;
    } else if (take("?")) {
      least = 0;
    } else if (take("{")) {
      const auto from = number();
      const bool comma = take(",");
      const auto to = number();
      if (!take("}") || (!from && !to)) return at_ = start, Ok{};  // a brace that stands for itself
      least = from.value_or(0);
      most = comma ? to.value_or(-1) : least;
      if (least > kMaxRepeat || most > kMaxRepeat || (most >= 0 && most < least))
        return error("a repetition that is none");
    } else {
      return Ok{};
    }
    if (!take("?")) take("+");
    if (next_is("*") || next_is("+") || next_is("?")) return error("repeats a repetition");
    return unroll(begin, least, most);
  }

  Status unroll(int32_t begin, int64_t least, int64_t most) {
    const std::vector<Pattern::Instruction> body(pattern_.program_.begin() + begin, pattern_.program_.end());
    const auto copies = static_cast<size_t>(std::max<int64_t>(least, most < 0 ? least + 1 : most));
    if (body.size() * copies + pattern_.program_.size() > kMaxProgram) return error("it unrolls to too much");
    pattern_.program_.resize(static_cast<size_t>(begin));
    const auto put = [&] {
      const int32_t shift = here() - begin;
      for (Pattern::Instruction i : body) {
        if (i.kind != Kind::kSet) i.x += shift;
        i.y += shift;
        pattern_.program_.push_back(i);
      }
    };
    for (int64_t i = 0; i < least; ++i) put();
    if (most < 0) {
      const int32_t split = emit(Kind::kSplit);
      put();
      emit(Kind::kJump, split);
      at(split) = {Kind::kSplit, split + 1, here()};
      return Ok{};
    }
    std::vector<int32_t> splits;
    for (int64_t i = least; i < most; ++i) {
      splits.push_back(emit(Kind::kSplit));
      put();
    }
    for (const int32_t split : splits) at(split) = {Kind::kSplit, split + 1, here()};
    return Ok{};
  }

  /// Adds \d and its kin; false for what is no class.
  static bool add_class(char letter, Set& set) {
    const char lower = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    if (lower != 'd' && lower != 'w' && lower != 's') return false;
    for (int c = 0; c < 256; ++c) {
      const auto byte = static_cast<unsigned char>(c);
      const bool in = lower == 'd'   ? c >= '0' && c <= '9'
                      : lower == 'w' ? Pattern::is_word(byte)
                                     : c == ' ' || (c >= 9 && c <= 13);
      if (in == (letter == lower)) set.add(byte);
    }
    return true;
  }

  /// The character behind a backslash; nothing for letters and digits that mean something else.
  static std::optional<unsigned char> literal(char c) {
    constexpr std::string_view kNames = "tnrfv", kCodes = "\t\n\r\f\v";
    if (const size_t i = kNames.find(c); i != std::string_view::npos)
      return static_cast<unsigned char>(kCodes[i]);
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) return std::nullopt;
    return static_cast<unsigned char>(c);
  }

  Status escaped() {
    if (!more()) return error("a backslash at the end");
    const char c = text_[at_++];
    if (c == 'b') return emit(Kind::kWord), Ok{};
    if (c == 'B') return emit(Kind::kNoWord), Ok{};
    if (c == 'A') return emit(Kind::kBegin), Ok{};
    if (c == 'Z') return emit(Kind::kEnd), Ok{};
    Set set;
    if (!add_class(c, set)) {
      const auto code = literal(c);
      if (!code) return error(std::string("\\") + c + " is not available");
      set.add(*code);
    }
    emit(set);
    return Ok{};
  }

  /// One member of [...]: a character, or a class, which is added to `set`.
  Result<std::optional<unsigned char>> member(Set& set) {
    if (!more()) return error("'[' without ']'");
    const char c = text_[at_++];
    if (c != '\\') return std::optional(static_cast<unsigned char>(c));
    if (!more()) return error("a backslash at the end");
    const char letter = text_[at_++];
    if (add_class(letter, set)) return std::optional<unsigned char>();
    const auto code = literal(letter);
    if (!code) return error(std::string("\\") + letter + " is not available");
    return code;
  }

  Status set_of_brackets() {
    Set set;
    const bool negated = take("^");
    for (bool first = true; first || !next_is("]"); first = false) {
      PLIMSOLL_ASSIGN(const auto from, member(set));
      if (from && next_is("-") && !text_.substr(at_).starts_with("-]")) {
        take("-");
        PLIMSOLL_ASSIGN(const auto to, member(set));
        if (!to || *to < *from) return error("a range that is none");
        for (int c = *from; c <= *to; ++c) set.add(static_cast<unsigned char>(c));
      } else if (from) {
        set.add(*from);
      }
    }
    take("]");
    for (uint64_t& bits : set.bits) bits = negated ? ~bits : bits;
    emit(set);
    return Ok{};
  }

  std::string_view text_;
  size_t at_ = 0;
  Pattern pattern_;
};

Result<Pattern> Pattern::parse(std::string_view text) { return PatternParser(text)(); }

}  // namespace plimsoll
