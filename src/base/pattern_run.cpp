// The machine that a pattern's program runs on.
#include <map>
#include <utility>

#include "base/pattern.h"

namespace plimsoll {
namespace {

constexpr int64_t kMaxSteps = 10'000'000;

}  // namespace

/// Each pair of instruction and place is tried once: without captures it comes out the same each time.
class PatternRun {
 public:
  PatternRun(const Pattern& pattern, std::string_view text) : p_(pattern), text_(text) {}

  /// Whether the program from `pc` on matches the text from `at` on; all of it where `whole`.
  bool operator()(int32_t pc, size_t at, bool whole) {
    std::vector<bool> seen(p_.program_.size() * (text_.size() + 1));
    std::vector<std::pair<int32_t, size_t>> stack = {{pc, at}};
    while (!stack.empty() && steps_ < kMaxSteps) {
      const auto [i, place] = stack.back();
      stack.pop_back();
      const size_t key = static_cast<size_t>(i) * (text_.size() + 1) + place;
      if (seen[key]) continue;
      seen[key] = true;
      ++steps_;
      if (step(i, place, whole, stack)) return true;
    }
    return false;
  }

 private:
  using Kind = Pattern::Kind;

  bool step(int32_t i, size_t at, bool whole, std::vector<std::pair<int32_t, size_t>>& stack) {
    const Pattern::Instruction& in = p_.program_[static_cast<size_t>(i)];
    switch (in.kind) {
      case Kind::kMatch:
        return !whole || at == text_.size();
      case Kind::kSet:
        if (at < text_.size() &&
            p_.sets_[static_cast<size_t>(in.x)].has(static_cast<unsigned char>(text_[at])))
          stack.emplace_back(i + 1, at + 1);
        return false;
      case Kind::kSplit:
        stack.emplace_back(in.y, at);
        stack.emplace_back(in.x, at);
        return false;
      case Kind::kJump:
        stack.emplace_back(in.x, at);
        return false;
      case Kind::kAhead:
      case Kind::kNotAhead:
        if (ahead(in.x, at) == (in.kind == Kind::kAhead)) stack.emplace_back(in.y, at);
        return false;
      default:
        if (holds(in.kind, at)) stack.emplace_back(i + 1, at);
        return false;
    }
  }

  [[nodiscard]] bool holds(Kind kind, size_t at) const {
    if (kind == Kind::kBegin) return at == 0;
    if (kind == Kind::kEnd) return at == text_.size();
    const auto word = [&](size_t i) {
      return i < text_.size() && Pattern::is_word(static_cast<unsigned char>(text_[i]));
    };
    return ((at > 0 && word(at - 1)) != word(at)) == (kind == Kind::kWord);
  }

  bool ahead(int32_t pc, size_t at) {
    const auto [known, is_new] = ahead_.try_emplace({pc, at}, false);
    if (is_new) {
      steps_ += static_cast<int64_t>(p_.program_.size() * (text_.size() + 1) / 64);  // what `seen` costs
      known->second = steps_ < kMaxSteps && (*this)(pc, at, /*whole=*/false);
    }
    return known->second;
  }

  const Pattern& p_;
  std::string_view text_;
  int64_t steps_ = 0;
  std::map<std::pair<int32_t, size_t>, bool> ahead_;
};

bool Pattern::matches(std::string_view text) const { return PatternRun(*this, text)(0, 0, /*whole=*/true); }

}  // namespace plimsoll
