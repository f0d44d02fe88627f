// One function per level of precedence, loosest first: if-else, or, and, not, comparisons, + -, ~, * %, the
// sign, then what follows an operand: attributes, items, calls, filters, tests.
#include "templates/parse_expr.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace plimsoll::templates {
namespace {

constexpr int kMaxHeight = 400;  // of a tree, which chains such as a + b + c also grow

}  // namespace

bool ExprParser::fail(std::string why, int line) {
  if (!failed()) {
    why_ = std::move(why);
    why_line_ = line != 0 ? line : now().line;
  }
  return false;
}

bool ExprParser::refuse(std::string_view what) {
  return fail(fmt::format("{} is not supported: templates of public models do without it", what));
}

std::string ExprParser::describe() const {
  switch (now().kind) {
    case TokenKind::kEnd:
      return "the template's end";
    case TokenKind::kBlockEnd:
      return "'%}'";
    case TokenKind::kPrintEnd:
      return "'}}'";
    default:
      return fmt::format("'{}'", now().text.substr(0, 40));
  }
}

bool ExprParser::take_op(std::string_view op) { return now().is(op) ? (take(), true) : false; }
bool ExprParser::take_name(std::string_view name) { return now().is_name(name) ? (take(), true) : false; }
bool ExprParser::expect_op(std::string_view op) {
  return take_op(op) || fail(fmt::format("expected '{}', found {}", op, describe()));
}
bool ExprParser::expect_identifier(std::string_view& name) {
  if (now().kind != TokenKind::kName) return fail(fmt::format("expected a name, found {}", describe()));
  name = take().text;
  return true;
}
bool ExprParser::expect(TokenKind kind, std::string_view what) {
  if (now().kind != kind) return fail(fmt::format("expected {}, found {}", what, describe()));
  take();
  return true;
}

Expr* ExprParser::make(ExprKind kind, int line) {
  Expr& expr = program_.exprs.emplace_back();
  expr.kind = kind;
  expr.line = line;
  return &expr;
}

bool ExprParser::finish(Expr& expr) {
  int below = 0;
  const auto see = [&below](const Expr* child) {
    if (child != nullptr) below = std::max(below, child->height);
  };
  for (const Expr* child : {expr.a, expr.b, expr.c}) see(child);
  for (const Expr* child : expr.items) see(child);
  for (const NamedArgument& argument : expr.named) see(argument.value);
  expr.height = below + 1;
  return expr.height <= kMaxHeight || fail("an expression nested too deep", expr.line);
}

Expr* ExprParser::pair(ExprKind kind, Expr* a, Expr* b, int line) {
  Expr* expr = make(kind, line);
  expr->a = a;
  expr->b = b;
  return finish(*expr) ? expr : nullptr;
}

Expr* ExprParser::binary(Op op, Expr* a, Expr* b, int line) {
  Expr* expr = pair(ExprKind::kBinary, a, b, line);
  if (expr != nullptr) expr->op = op;
  return expr;
}

Expr* ExprParser::constant(const Value& value, int line) {
  Expr* expr = make(ExprKind::kConstant, line);
  expr->value = value;
  return expr;
}

Expr* ExprParser::expression(bool conditional) {
  const Deeper deeper(depth_);
  if (!deeper.ok()) return fail("an expression nested too deep"), nullptr;
  return conditional ? condition() : any();
}

Expr* ExprParser::condition() {
  Expr* value = any();
  while (value != nullptr && now().is_name("if")) {
    Expr* expr = make(ExprKind::kCondition, now().line);
    take();
    expr->b = value;
    expr->a = any();
    if (expr->a == nullptr) return nullptr;
    if (take_name("else") && (expr->c = expression()) == nullptr) return nullptr;
    value = finish(*expr) ? expr : nullptr;
  }
  return value;
}

Expr* ExprParser::any() {
  Expr* left = all();
  while (left != nullptr && now().is_name("or")) {
    const int line = take().line;
    Expr* right = all();
    left = right == nullptr ? nullptr : pair(ExprKind::kOr, left, right, line);
  }
  return left;
}

Expr* ExprParser::all() {
  Expr* left = negation();
  while (left != nullptr && now().is_name("and")) {
    const int line = take().line;
    Expr* right = negation();
    left = right == nullptr ? nullptr : pair(ExprKind::kAnd, left, right, line);
  }
  return left;
}

Expr* ExprParser::negation() {
  if (!now().is_name("not")) return comparison();
  const int line = take().line;
  const Deeper deeper(depth_);
  if (!deeper.ok()) return fail("an expression nested too deep"), nullptr;
  Expr* operand = negation();
  return operand == nullptr ? nullptr : pair(ExprKind::kNot, operand, nullptr, line);
}

Expr* ExprParser::comparison() {
  constexpr std::pair<std::string_view, Op> kOps[] = {{"==", Op::kEq}, {"!=", Op::kNe}, {"<", Op::kLt},
                                                      {"<=", Op::kLe}, {">", Op::kGt},  {">=", Op::kGe}};
  const auto next_op = [&]() -> std::optional<Op> {
    for (const auto& [text, op] : kOps)
      if (now().is(text)) return op;
    if (now().is_name("in")) return Op::kIn;
    return now().is_name("not") && next().is_name("in") ? std::optional(Op::kNotIn) : std::nullopt;
  };
  const int line = now().line;
  Expr* left = sum();
  const std::optional<Op> op = left == nullptr ? std::nullopt : next_op();
  if (!op) return left;
  take();
  if (*op == Op::kNotIn) take();
  Expr* right = sum();
  if (right == nullptr) return nullptr;
  if (next_op()) return refuse("a comparison of a comparison (a < b < c)"), nullptr;
  Expr* compare = pair(ExprKind::kCompare, left, right, line);
  if (compare != nullptr) compare->op = *op;
  return compare;
}

Expr* ExprParser::sum() {
  Expr* left = concatenation();
  while (left != nullptr && (now().is("+") || now().is("-"))) {
    const Token& op = take();
    Expr* right = concatenation();
    left = right == nullptr ? nullptr : binary(op.text == "+" ? Op::kAdd : Op::kSub, left, right, op.line);
  }
  return left;
}

Expr* ExprParser::concatenation() {
  const int line = now().line;
  Expr* first = product();
  if (first == nullptr || !now().is("~")) return first;
  Expr* expr = make(ExprKind::kConcat, line);
  expr->items.push_back(first);
  while (take_op("~")) {
    Expr* operand = product();
    if (operand == nullptr) return nullptr;
    expr->items.push_back(operand);
  }
  return finish(*expr) ? expr : nullptr;
}

Expr* ExprParser::product() {
  Expr* left = unary(true);
  while (left != nullptr) {
    for (const std::string_view op : {"/", "//", "**"})
      if (now().is(op)) return refuse(fmt::format("'{}'", op)), nullptr;
    if (!now().is("*") && !now().is("%")) break;
    const Token& op = take();
    Expr* right = unary(true);
    left = right == nullptr ? nullptr : binary(op.text == "*" ? Op::kMul : Op::kMod, left, right, op.line);
  }
  return left;
}

Expr* ExprParser::unary(bool with_filters) {
  const Deeper deeper(depth_);
  if (!deeper.ok()) return fail("an expression nested too deep"), nullptr;
  Expr* expr = nullptr;
  if (now().is("+")) return refuse("the sign '+'"), nullptr;
  if (now().is("-")) {
    const int line = take().line;
    Expr* operand = unary(false);
    if (operand == nullptr) return nullptr;
    expr = pair(ExprKind::kNegative, operand, nullptr, line);
  } else {
    expr = primary();
  }
  if (expr != nullptr) expr = postfix(expr);
  if (expr != nullptr && with_filters) expr = filters_and_tests(expr);
  return expr;
}

Expr* ExprParser::concat_texts(int line) {
  std::string_view text = take().text;
  if (now().kind == TokenKind::kString) {
    std::string joined(text);
    while (now().kind == TokenKind::kString) joined += take().text;
    text = program_.texts.emplace_back(std::move(joined));
  }
  return constant(Value::of(text), line);
}

Expr* ExprParser::primary() {
  const Token& token = now();
  switch (token.kind) {
    case TokenKind::kName: {
      take();
      if (token.text == "true" || token.text == "True") return constant(Value::of(true), token.line);
      if (token.text == "false" || token.text == "False") return constant(Value::of(false), token.line);
      if (token.text == "none" || token.text == "None") return constant(Value::none(), token.line);
      Expr* name = make(ExprKind::kName, token.line);
      name->name = token.text;
      return name;
    }
    case TokenKind::kString:
      return concat_texts(token.line);
    case TokenKind::kInteger:
      take();
      return constant(Value::of(token.integer), token.line);
    default:
      break;
  }
  if (take_op("(")) {
    Expr* inner = tuple(true, true);
    return inner != nullptr && expect_op(")") ? inner : nullptr;
  }
  if (token.is("[")) return list();
  if (token.is("{")) return dict();
  fail(fmt::format("expected an expression, found {}", describe()));
  return nullptr;
}

Expr* ExprParser::tuple(bool conditional, bool parenthesised) {
  const int line = now().line;
  std::vector<Expr*> items;
  bool is_tuple = false;
  while (true) {
    if (!items.empty() && !expect_op(",")) return nullptr;
    if (now().kind == TokenKind::kBlockEnd || now().kind == TokenKind::kPrintEnd || now().is(")")) break;
    if (!conditional && now().is_name("recursive")) break;
    Expr* item = expression(conditional);
    if (item == nullptr) return nullptr;
    items.push_back(item);
    if (!now().is(",")) break;
    is_tuple = true;
  }
  if (!is_tuple && !items.empty()) return items[0];
  if (items.empty() && !parenthesised) {
    fail(fmt::format("expected an expression, found {}", describe()));
    return nullptr;
  }
  Expr* expr = make(ExprKind::kTuple, line);
  expr->items = std::move(items);
  return finish(*expr) ? expr : nullptr;
}

Expr* ExprParser::list() {
  Expr* expr = make(ExprKind::kList, take().line);
  while (!now().is("]")) {
    if (!expr->items.empty() && !expect_op(",")) return nullptr;
    if (now().is("]")) break;
    Expr* item = expression();
    if (item == nullptr) return nullptr;
    expr->items.push_back(item);
  }
  return expect_op("]") && finish(*expr) ? expr : nullptr;
}

Expr* ExprParser::dict() {
  Expr* expr = make(ExprKind::kDict, take().line);
  while (!now().is("}")) {
    if (!expr->items.empty() && !expect_op(",")) return nullptr;
    if (now().is("}")) break;
    Expr* key = expression();
    if (key == nullptr || !expect_op(":")) return nullptr;
    Expr* value = expression();
    if (value == nullptr) return nullptr;
    expr->items.push_back(key);
    expr->items.push_back(value);
  }
  return expect_op("}") && finish(*expr) ? expr : nullptr;
}

Expr* ExprParser::postfix(Expr* expr) {
  while (expr != nullptr) {
    if (now().is(".") || now().is("[")) {
      expr = subscript(expr);
    } else if (now().is("(")) {
      expr = call(expr);
    } else {
      break;
    }
  }
  return expr;
}

Expr* ExprParser::subscript(Expr* owner) {
  const Token& token = take();
  if (token.text == ".") {
    if (now().kind == TokenKind::kInteger) return refuse("an item as '.0'"), nullptr;
    Expr* expr = pair(ExprKind::kAttribute, owner, nullptr, token.line);
    return expr != nullptr && expect_identifier(expr->name) ? expr : nullptr;
  }
  Expr* index = subscript_or_slice();
  if (index != nullptr && now().is(",")) return refuse("an item of several indices"), nullptr;
  return index != nullptr && expect_op("]") ? pair(ExprKind::kItem, owner, index, token.line) : nullptr;
}

Expr* ExprParser::subscript_or_slice() {
  Expr* begin = nullptr;
  if (!now().is(":")) {
    begin = expression();
    if (begin == nullptr || !now().is(":")) return begin;
  }
  Expr* slice = make(ExprKind::kSlice, take().line);
  slice->a = begin;
  if (!now().is(":") && !now().is("]") && (slice->b = expression()) == nullptr) return nullptr;
  if (take_op(":") && !now().is("]") && (slice->c = expression()) == nullptr) return nullptr;
  return finish(*slice) ? slice : nullptr;
}

}  // namespace plimsoll::templates
