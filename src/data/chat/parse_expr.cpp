// One function per level of precedence, loosest first: if-else, or, and, not, comparisons, + -, ~, * / // %,
// **, signs, then what follows an operand: attributes, items, calls, filters, tests.
#include "data/chat/parse_expr.h"

#include <fmt/format.h>

#include <algorithm>

namespace plimsoll::chat {
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
  for (const Expr* child : {expr.a, expr.b, expr.c, expr.star, expr.double_star}) see(child);
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
  const int line = now().line;
  Expr* first = sum();
  Expr* compare = nullptr;
  while (first != nullptr) {
    const auto* op =
        std::find_if(std::begin(kOps), std::end(kOps), [this](const auto& o) { return now().is(o.first); });
    Op which = Op::kIn;
    if (op != std::end(kOps))
      which = op->second;
    else if (now().is_name("not") && next().is_name("in"))
      which = Op::kNotIn;
    else if (!now().is_name("in"))
      break;
    take();
    if (which == Op::kNotIn) take();
    if (compare == nullptr) {
      compare = make(ExprKind::kCompare, line);
      compare->items.push_back(first);
    }
    Expr* operand = sum();
    if (operand == nullptr) return nullptr;
    compare->items.push_back(operand);
    compare->ops.push_back(which);
  }
  if (compare == nullptr) return first;
  return finish(*compare) ? compare : nullptr;
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
  constexpr std::pair<std::string_view, Op> kOps[] = {
      {"*", Op::kMul}, {"/", Op::kDiv}, {"//", Op::kFloorDiv}, {"%", Op::kMod}};
  Expr* left = power();
  while (left != nullptr) {
    const auto* op =
        std::find_if(std::begin(kOps), std::end(kOps), [this](const auto& o) { return now().is(o.first); });
    if (op == std::end(kOps)) break;
    const int line = take().line;
    Expr* right = power();
    left = right == nullptr ? nullptr : binary(op->second, left, right, line);
  }
  return left;
}

Expr* ExprParser::power() {
  Expr* left = unary(true);
  while (left != nullptr && now().is("**")) {
    const int line = take().line;
    Expr* right = unary(true);
    left = right == nullptr ? nullptr : binary(Op::kPow, left, right, line);
  }
  return left;
}

Expr* ExprParser::unary(bool with_filters) {
  const Deeper deeper(depth_);
  if (!deeper.ok()) return fail("an expression nested too deep"), nullptr;
  Expr* expr = nullptr;
  if (now().is("-") || now().is("+")) {
    const Token& sign = take();
    Expr* operand = unary(false);
    if (operand == nullptr) return nullptr;
    expr = pair(sign.text == "-" ? ExprKind::kNegative : ExprKind::kPositive, operand, nullptr, sign.line);
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
    case TokenKind::kFloat:
      take();
      return constant(Value::of(token.number), token.line);
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
    if (now().kind == TokenKind::kInteger) {
      const Token& index = take();
      return pair(ExprKind::kItem, owner, constant(Value::of(index.integer), index.line), token.line);
    }
    Expr* expr = pair(ExprKind::kAttribute, owner, nullptr, token.line);
    return expr != nullptr && expect_identifier(expr->name) ? expr : nullptr;
  }
  std::vector<Expr*> indices;
  while (!now().is("]")) {
    if (!indices.empty() && !expect_op(",")) return nullptr;
    Expr* index = subscript_or_slice();
    if (index == nullptr) return nullptr;
    indices.push_back(index);
  }
  if (!expect_op("]")) return nullptr;
  if (indices.size() == 1) return pair(ExprKind::kItem, owner, indices[0], token.line);
  if (std::any_of(indices.begin(), indices.end(), [](const Expr* e) { return e->kind == ExprKind::kSlice; }))
    return fail("a slice among several indices", token.line), nullptr;
  Expr* several = make(ExprKind::kTuple, token.line);
  several->items = std::move(indices);
  return finish(*several) ? pair(ExprKind::kItem, owner, several, token.line) : nullptr;
}

Expr* ExprParser::subscript_or_slice() {
  Expr* begin = nullptr;
  if (!now().is(":")) {
    begin = expression();
    if (begin == nullptr || !now().is(":")) return begin;
  }
  Expr* slice = make(ExprKind::kSlice, take().line);
  slice->a = begin;
  const auto ends = [this] { return now().is("]") || now().is(","); };
  if (!now().is(":") && !ends() && (slice->b = expression()) == nullptr) return nullptr;
  if (take_op(":") && !ends() && (slice->c = expression()) == nullptr) return nullptr;
  return finish(*slice) ? slice : nullptr;
}

}  // namespace plimsoll::chat
