// What calls, filters and tests are given, and what is assigned to.
#include <fmt/format.h>

#include "data/chat/parse_expr.h"
#include "data/chat/rules.h"

namespace plimsoll::chat {

bool ExprParser::call_arguments(Expr& callee) {
  if (!expect_op("(")) return false;
  bool first = true;
  while (!now().is(")")) {
    if (!first && !expect_op(",")) return false;
    if (now().is(")")) break;
    first = false;
    const int line = now().line;
    const bool is_named = now().kind == TokenKind::kName && next().is("=");
    const bool is_star = now().is("*");
    const bool is_double = now().is("**");
    if (callee.double_star != nullptr || (callee.star != nullptr && !is_double && !is_named) ||
        (!callee.named.empty() && !is_named && !is_double && !is_star))
      return fail("a positional argument behind others", line);
    NamedArgument argument;
    if (is_named) argument.name = take().text;
    if (is_named || is_star || is_double) take();
    Expr* value = expression();
    if (value == nullptr) return false;
    argument.value = value;
    if (is_named)
      callee.named.push_back(argument);
    else if (is_star || is_double)
      (is_star ? callee.star : callee.double_star) = value;
    else
      callee.items.push_back(value);
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
  if (expr->filter == nullptr)
    return fail(fmt::format("unknown filter '{}'", expr->name), expr->line), nullptr;
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
  if (expr->test == nullptr) return fail(fmt::format("unknown test '{}'", expr->name), expr->line), nullptr;
  const TokenKind kind = now().kind;
  const bool is_operand = kind == TokenKind::kName || kind == TokenKind::kString ||
                          kind == TokenKind::kInteger || kind == TokenKind::kFloat || now().is("[") ||
                          now().is("{");
  if (now().is("(")) {
    if (!call_arguments(*expr)) return nullptr;
  } else if (is_operand && !now().is_name("else") && !now().is_name("or") && !now().is_name("and")) {
    if (now().is_name("is")) return fail("tests with 'is' cannot follow each other"), nullptr;
    Expr* argument = primary();
    if (argument != nullptr) argument = postfix(argument);
    if (argument == nullptr) return nullptr;
    expr->items.push_back(argument);
  }
  if (!finish(*expr)) return nullptr;
  return negated ? pair(ExprKind::kNot, expr, nullptr, expr->line) : expr;
}

bool ExprParser::target_part(bool allow_namespace, Target& out) {
  const Deeper deeper(depth_);
  if (!deeper.ok()) return fail("names nested too deep");
  if (take_op("(")) return target(allow_namespace, out) && expect_op(")");
  const Token& token = now();
  std::string_view name;
  if (!expect_identifier(name)) return false;
  for (const std::string_view constant : {"true", "false", "none", "True", "False", "None"})
    if (name == constant) return fail(fmt::format("'{}' cannot be assigned to", name));
  if (name == "loop" && in_loop_) return fail("'loop' cannot be assigned to in a loop");
  Expr* expr = make(ExprKind::kName, token.line);
  expr->name = name;
  if (!allow_namespace || !take_op(".")) {
    out.name = expr;
    return true;
  }
  out.ns = expr;
  return expect_identifier(out.attribute);
}

bool ExprParser::target(bool allow_namespace, Target& out) {
  do {
    if (now().is(")") || now().is_name("in") || now().is("=") || now().kind == TokenKind::kBlockEnd) break;
    if (!target_part(allow_namespace, out.parts.emplace_back())) return false;
    out.is_tuple = out.is_tuple || now().is(",");
  } while (take_op(","));
  if (out.parts.empty()) return fail(fmt::format("expected a name, found {}", describe()));
  if (!out.is_tuple) {
    Target only = std::move(out.parts[0]);
    out = std::move(only);
  }
  return true;
}

}  // namespace plimsoll::chat
