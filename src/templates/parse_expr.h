// The expressions of a template: Jinja2's grammar, by recursive descent.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "templates/lexer.h"
#include "templates/program.h"

namespace plimsoll::templates {

/// Reads expressions from the tokens into the program. What fails returns null and keeps the first failure.
class ExprParser {
 public:
  ExprParser(const std::vector<Token>& tokens, Program& program) : tokens_(tokens), program_(program) {}

  [[nodiscard]] const Token& now() const { return tokens_[at_]; }
  [[nodiscard]] const Token& next() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  const Token& take() { return tokens_[at_ + 1 < tokens_.size() ? at_++ : at_]; }
  bool take_op(std::string_view op);
  bool take_name(std::string_view name);
  bool expect_op(std::string_view op);
  bool expect_identifier(std::string_view& name);
  bool expect(TokenKind kind, std::string_view what);

  /// One expression; `conditional` allows "x if y else z".
  Expr* expression(bool conditional = true);
  /// One expression, or several with commas as a tuple.
  Expr* tuple(bool conditional, bool parenthesised = false);
  /// name(...)|other, what {% filter %} is given.
  Expr* filters_from_name();
  /// "(…)" applied to `callee`, or to the filter or test that it is.
  bool call_arguments(Expr& callee);
  /// What {% set %} assigns to: a name, or a namespace's.
  bool set_target(Target& out);
  /// What {% for %} assigns to: names.
  bool loop_target(Target& out);

  /// Whether targets stand in a loop, where `loop` is taken.
  void set_in_loop(bool value) { in_loop_ = value; }
  Expr* make(ExprKind kind, int line);
  /// Sets the height from the children; false where it is too much.
  bool finish(Expr& expr);
  bool fail(std::string why, int line = 0);
  [[nodiscard]] bool failed() const { return !why_.empty(); }
  [[nodiscard]] Error error() const { return template_error(why_, why_line_); }

 private:
  /// One level of brackets or operands more, while it lives.
  class Deeper {
   public:
    explicit Deeper(int& depth) : depth_(depth) { ++depth_; }
    ~Deeper() { --depth_; }
    Deeper(const Deeper&) = delete;
    Deeper& operator=(const Deeper&) = delete;
    [[nodiscard]] bool ok() const { return depth_ <= 100; }

   private:
    int& depth_;
  };

  Expr* condition();
  Expr* any();
  Expr* all();
  Expr* negation();
  Expr* comparison();
  Expr* sum();
  Expr* concatenation();
  Expr* product();
  Expr* unary(bool with_filters);
  Expr* primary();
  Expr* constant(const Value& value, int line);
  Expr* postfix(Expr* expr);
  Expr* call(Expr* callee);
  Expr* filters_and_tests(Expr* expr);
  Expr* test(Expr* value);
  Expr* filter(Expr* value);
  Expr* filters(Expr* value);
  Expr* list();
  Expr* dict();
  Expr* subscript(Expr* owner);
  Expr* subscript_or_slice();
  Expr* binary(Op op, Expr* a, Expr* b, int line);
  Expr* pair(ExprKind kind, Expr* a, Expr* b, int line);
  Expr* concat_texts(int line);
  bool target_name(Expr*& out);
  bool refuse(std::string_view what);
  [[nodiscard]] std::string describe() const;

  const std::vector<Token>& tokens_;
  Program& program_;
  size_t at_ = 0;
  int depth_ = 0;
  bool in_loop_ = false;
  std::string why_ = {};
  int why_line_ = 0;
};

}  // namespace plimsoll::templates
