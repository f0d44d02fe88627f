// Parses arguments of calls, filters and tests, and assignment targets.
#include <fmt/format.h>

#include <utility>

#include "templates/parse_expr.h"
#include "templates/refused.h"
#include "templates/rules.h"

namespace plimsoll::templates {

bool ExprParser::call_arguments(Expr& callee) {
  if (!expect_op("(")) return false;
  bool first = true;
  while (!now().is(")")) {
    if (!first && !expect_op(",")) return false;
    if (now().is(")")) break;
    first = false;
    const int line = now().line;
    if (now().is("*") || now().is("**"))
      return fail("f(*list) and f(**dict) are not supported: templates of public models do without them",
                  line);
    NamedArgument argument;
    if (now().kind == TokenKind::kName && next().is("=")) {
      argument.name = take().text;
      take();
    } else if (!callee.named.empty()) {
      return fail("a positional argument after others", line);
    }
    argument.value = expression();
    if (argument.value == nullptr) return false;
    if (argument.name.empty())
      callee.items.push_back(argument.value);
    else
      callee.named.push_back(argument);
  }
  return expect_op(")");
}

Expr* ExprParser::call(Expr* callee) {
  Expr* expr = make(ExprKind::kCall, now().line);
  expr->a = callee;
  return call_arguments(*expr) && finish(*expr) ? expr : nullptr;
}

Expr* ExprParser::filters_and_tests(Expr* expr) {
  while (expr != nullptr) {
    if (now().is("|")) {
      expr = filters(expr);
    } else if (now().is_name("is")) {
      expr = test(expr);
    } else if (now().is("(")) {
      expr = call(expr);
    } else {
      break;
    }
  }
  return expr;
}

Expr* ExprParser::filter(Expr* value) {
  Expr* expr = make(ExprKind::kFilter, now().line);
  expr->a = value;
  if (!expect_identifier(expr->name)) return nullptr;
  expr->filter = find_filter(expr->name);
  if (expr->filter == nullptr) return fail(no_construct(Construct::kFilter, expr->name), expr->line), nullptr;
  if (now().is("(") && !call_arguments(*expr)) return nullptr;
  return finish(*expr) ? expr : nullptr;
}

Expr* ExprParser::filters(Expr* value) {
  while (take_op("|")) {
    value = filter(value);
    if (value == nullptr) return nullptr;
  }
  return value;
}

Expr* ExprParser::filters_from_name() {
  Expr* first = filter(nullptr);
  return first == nullptr ? nullptr : filters(first);
}

Expr* ExprParser::test(Expr* value) {
  Expr* expr = make(ExprKind::kTest, take().line);
  expr->a = value;
  const bool negated = take_name("not");
  if (!expect_identifier(expr->name)) return nullptr;
  expr->test = find_test(expr->name);
  if (expr->test == nullptr) return fail(no_construct(Construct::kTest, expr->name), expr->line), nullptr;
  const TokenKind kind = now().kind;
  const bool is_operand = kind == TokenKind::kString || kind == TokenKind::kInteger || now().is("[") ||
                          now().is("{") || now().is("(");
  if (is_operand && !expr->test->parameters.empty()) return refuse("a test with an argument"), nullptr;
  if (!finish(*expr)) return nullptr;
  return negated ? pair(ExprKind::kNot, expr, nullptr, expr->line) : expr;
}

bool ExprParser::target_name(Expr*& out) {
  const Token& token = now();
  std::string_view name;
  if (!expect_identifier(name)) return false;
  for (const std::string_view constant : {"true", "false", "none", "True", "False", "None"})
    if (name == constant) return fail(fmt::format("'{}' cannot be assigned to", name));
  if (name == "loop" && in_loop_) return fail("'loop' cannot be assigned to in a loop");
  out = make(ExprKind::kName, token.line);
  out->name = name;
  return true;
}

bool ExprParser::set_target(Target& out) {
  if (!target_name(out.name)) return false;
  if (now().is(","))
    return fail("{% set %} of several names is not supported: templates of public models do without it");
  if (!take_op(".")) return true;
  out.ns = std::exchange(out.name, nullptr);
  return expect_identifier(out.attribute);
}

bool ExprParser::loop_target(Target& out) {
  if (!target_name(out.name)) return false;
  if (!now().is(",")) return true;
  out.parts.push_back(std::exchange(out.name, nullptr));
  while (take_op(",") && !now().is_name("in"))
    if (!target_name(out.parts.emplace_back())) return false;
  return true;
}

}  // namespace plimsoll::templates
