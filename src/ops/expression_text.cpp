// Texts of expressions, read and written.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/numbers.h"
#include "ops/expression.h"

namespace plimsoll::ops {
namespace {

constexpr size_t kMaxText = 1 << 16;
constexpr int kMaxDepth = 64;

/// Reads one text from its begin.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<Expression> run() {
    if (text_.size() > kMaxText) return fail("is too long");
    for (;;) {
      PLIMSOLL_ASSIGN(const std::string_view name, word_of_statement());
      const bool is_named = !name.empty();
      PLIMSOLL_ASSIGN(const int node, operand(0));
      if (!is_named) {
        if (place_ != text_.size()) return fail("goes on behind its result");
        expression_.finish(node);
        if (!expression_.is_complete()) return too_large();
        return expression_;
      }
      if (num_named_ == Expression::kMaxNodes) return too_large();
      named_[static_cast<size_t>(num_named_++)] = {name, node};
      if (!take(';')) return fail("wants ; behind a named part");
    }
  }

 private:
  struct Named {
    std::string_view name;
    int node = 0;
  };

  [[nodiscard]] Error fail(std::string_view what) const {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("\"{}\" {} (at character {})", text_.substr(0, 80), what, place_ + 1)};
  }
  [[nodiscard]] Error too_large() const {
    return fail(fmt::format("has more than {} parts", Expression::kMaxNodes));
  }
  void skip_spaces() {
    while (place_ < text_.size() && text_[place_] == ' ') ++place_;
  }
  bool take(char c) {
    skip_spaces();
    const bool is_there = place_ < text_.size() && text_[place_] == c;
    if (is_there) ++place_;
    skip_spaces();
    return is_there;
  }
  static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || c == '_'; }
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }

  std::string_view word() {
    skip_spaces();
    const size_t begin = place_;
    while (place_ < text_.size() && (is_letter(text_[place_]) || (place_ > begin && is_digit(text_[place_]))))
      ++place_;
    return text_.substr(begin, place_ - begin);
  }

  /// The name that the next statement gives its value; empty where it gives the result.
  Result<std::string_view> word_of_statement() {
    const size_t begin = place_;
    const std::string_view name = word();
    if (name.empty() || !take('=')) {
      place_ = begin;
      return std::string_view();
    }
    if (name[0] != 't' || !number_of<int>(name.substr(1)))
      return fail("names a part otherwise than t0, t1, ...");
    return name;
  }

  Result<int> number() {
    size_t end = place_;
    while (end < text_.size() &&
           (is_digit(text_[end]) || is_letter(text_[end]) || text_[end] == '.' ||
            ((text_[end] == '-' || text_[end] == '+') && (end == place_ || text_[end - 1] == 'e'))))
      ++end;
    const auto value = number_of<double>(text_.substr(place_, end - place_));
    if (!value) return fail("has a number that is none");
    place_ = end;
    return expression_.number(*value);
  }

  Result<int> operand(int depth) {
    if (depth > kMaxDepth) return fail("is nested too deeply");
    skip_spaces();
    if (place_ >= text_.size()) return fail("ends too early");
    const char first = text_[place_];
    if (is_digit(first) || first == '-' || first == '.') return number();
    const size_t begin = place_;
    const std::string_view name = word();
    if (name == "inf" || name == "nan") {
      place_ = begin;
      return number();
    }
    if (name.empty()) return fail("wants an operand");
    if (take('(')) return call(name, depth);
    if (name[0] == 'x') {
      const auto which = number_of<int>(name.substr(1));
      if (which && *which >= 0 && *which < Expression::kMaxInputs) return expression_.input(*which);
    }
    for (int i = 0; i < num_named_; ++i)
      if (named_[static_cast<size_t>(i)].name == name) return named_[static_cast<size_t>(i)].node;
    return fail(fmt::format("has an operand {} that is none", name));
  }

  Result<int> call(std::string_view name, int depth) {
    const int arity = function_arity(name);
    if (arity == 0) return fail(fmt::format("has a function {} that is none", name));
    std::array<int, 3> args = {Expression::kNone, Expression::kNone, Expression::kNone};
    for (int i = 0; i < arity; ++i) {
      if (i > 0 && !take(',')) return fail(fmt::format("wants {} operands of {}", arity, name));
      PLIMSOLL_ASSIGN(args[static_cast<size_t>(i)], operand(depth + 1));
    }
    if (!take(')')) return fail(fmt::format("wants ) behind {} operands of {}", arity, name));
    return expression_.apply(function_of(name), args[0], args[1], args[2]);
  }

  static Function function_of(std::string_view name) {
    auto function = Function::kNeg;
    while (info(function).name != name) function = static_cast<Function>(static_cast<int>(function) + 1);
    return function;
  }

  std::string_view text_;
  size_t place_ = 0;
  Expression expression_;
  std::array<Named, Expression::kMaxNodes> named_{};
  int num_named_ = 0;
};

}  // namespace

Result<Expression> Expression::parse(std::string_view text) { return Parser(text).run(); }

std::string Expression::text() const {
  std::array<int, kMaxNodes> uses{};
  for (const Node& node : nodes())
    for (int arg = 0; arg < info(node.function).arity; ++arg)
      ++uses[static_cast<size_t>(node.args[static_cast<size_t>(arg)])];
  std::array<std::string, kMaxNodes> texts;
  std::array<int, kMaxNodes> depths{};  // of their texts
  std::string text;
  int named = 0;
  for (int i = 0; i < size_; ++i) {
    const Node& node = at(i);
    const auto place = static_cast<size_t>(i);
    if (node.function == Function::kInput) {
      texts[place] = fmt::format("x{}", node.args[0]);
    } else if (node.function == Function::kNumber) {
      texts[place] = fmt::format("{}", node.number);
    } else {
      texts[place] = fmt::format("{}(", info(node.function).name);
      for (int arg = 0; arg < info(node.function).arity; ++arg) {
        const auto operand = static_cast<size_t>(node.args[static_cast<size_t>(arg)]);
        texts[place] += (arg > 0 ? "," : "") + texts[operand];
        depths[place] = std::max(depths[place], depths[operand] + 1);
      }
      texts[place] += ")";
      if (uses[place] > 1 || depths[place] == kMaxDepth) {  // deeper the parser would not read it
        text += fmt::format("t{}={};", named, texts[place]);
        texts[place] = fmt::format("t{}", named++);
        depths[place] = 0;
      }
    }
  }
  return size_ == 0 ? "derivative_too_large()" : text + texts[static_cast<size_t>(result())];
}

}  // namespace plimsoll::ops
