// Expressions.
#include <fmt/format.h>

#include <algorithm>

#include "templates/object.h"
#include "templates/print.h"
#include "templates/renderer.h"

namespace plimsoll::templates {
namespace {

/// Of expressions and statements inside of each other, through macros that call each other as well; Python's
/// own limit is near.
constexpr int kMaxCalls = 900;
/// Frames differ much between builds (sanitizers); a thread's stack is usually 8 MiB.
constexpr uintptr_t kMaxStackBytes = uintptr_t{4} << 20;

}  // namespace

bool Renderer::descend(int line) {
  const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  const uintptr_t used = std::max(here, stack_start_) - std::min(here, stack_start_);
  if (depth_ >= kMaxCalls || used > kMaxStackBytes)
    return fail("nested too deep: do macros call each other without end?", line);
  ++depth_;
  return true;
}

bool Renderer::eval(const Expr& expr, Env& env, Value& out) {
  if (expr.kind == ExprKind::kConstant) {
    out = expr.value;
    return true;
  }
  if (!descend(expr.line)) return false;
  const bool ok = heap_.charge(1) && eval_kind(expr, env, out);
  --depth_;
  return ok || fail({}, expr.line);
}

bool Renderer::eval_kind(const Expr& expr, Env& env, Value& out) {
  Value a;
  switch (expr.kind) {
    case ExprKind::kConstant:
      out = expr.value;
      return true;
    case ExprKind::kName:
      out = expr.hops < 0 ? outside_[static_cast<size_t>(expr.slot)] : slot(expr, env);
      return true;
    case ExprKind::kTuple:
      return eval_items(expr, env, out, Kind::kTuple);
    case ExprKind::kList:
      return eval_items(expr, env, out, Kind::kList);
    case ExprKind::kDict:
      return eval_dict(expr, env, out);
    case ExprKind::kCondition:
      return eval_condition(expr, env, out);
    case ExprKind::kOr:
    case ExprKind::kAnd:
      return eval(*expr.a, env, out) &&
             (truth(out) == (expr.kind == ExprKind::kOr) || eval(*expr.b, env, out));
    case ExprKind::kNot:
      if (!eval(*expr.a, env, a)) return false;
      out = Value::of(!truth(a));
      return true;
    case ExprKind::kCompare:
      return eval_compare(expr, env, out);
    case ExprKind::kBinary:
      return eval_binary(expr, env, out);
    case ExprKind::kConcat:
      return eval_concat(expr, env, out);
    case ExprKind::kNegative:
      return eval(*expr.a, env, a) && negative(heap_, a, out);
    case ExprKind::kAttribute:
      return eval_attribute(expr, env, out);
    case ExprKind::kItem:
      return eval_item(expr, env, out);
    case ExprKind::kSlice:
      return heap_.fail("a slice without its owner");
    case ExprKind::kCall:
      return eval_call(expr, env, out);
    case ExprKind::kFilter:
      return eval_filter(expr, env, out);
    case ExprKind::kTest:
      return eval_test(expr, env, out);
  }
  return false;
}

bool Renderer::eval_items(const Expr& expr, Env& env, Value& out, Kind kind) {
  Value* items = heap_.array<Value>(expr.items.size());
  if (items == nullptr) return false;
  for (size_t i = 0; i < expr.items.size(); ++i)
    if (!eval(*expr.items[i], env, items[i])) return false;
  out = Value::list(items, expr.items.size(), kind);
  return true;
}

bool Renderer::eval_dict(const Expr& expr, Env& env, Value& out) {
  auto* entries = heap_.array<Entry>(expr.items.size() / 2);
  if (entries == nullptr) return false;
  size_t count = 0;
  for (size_t i = 0; i < expr.items.size(); i += 2) {
    Value key, value;
    if (!eval(*expr.items[i], env, key) || !eval(*expr.items[i + 1], env, value) ||
        !set_entry(heap_, entries, count, key, value))
      return false;
  }
  out = Value::dict(entries, count);
  return true;
}

bool Renderer::eval_condition(const Expr& expr, Env& env, Value& out) {
  Value condition;
  if (!eval(*expr.a, env, condition)) return false;
  if (truth(condition)) return eval(*expr.b, env, out);
  if (expr.c != nullptr) return eval(*expr.c, env, out);
  out = Value::undefined_because("an 'if' without 'else' that does not hold");
  return true;
}

bool Renderer::eval_compare(const Expr& expr, Env& env, Value& out) {
  Value left, right;
  bool holds = false;
  if (!eval(*expr.a, env, left) || !eval(*expr.b, env, right)) return false;
  if (expr.op != Op::kIn && expr.op != Op::kNotIn) {
    if (!compare(heap_, expr.op, left, right, holds)) return false;
  } else {
    if (!contains(heap_, right, left, holds)) return false;
    holds = holds == (expr.op == Op::kIn);
  }
  out = Value::of(holds);
  return true;
}

bool Renderer::eval_binary(const Expr& expr, Env& env, Value& out) {
  Value a, b;
  return eval(*expr.a, env, a) && eval(*expr.b, env, b) && binary(heap_, expr.op, a, b, out);
}

bool Renderer::eval_concat(const Expr& expr, Env& env, Value& out) {
  Value joined = Value::of(std::string_view());
  if (!heap_.charge(expr.items.size())) return false;
  std::vector<Value> parts(expr.items.size());
  for (size_t i = 0; i < parts.size(); ++i)
    if (!eval(*expr.items[i], env, parts[i])) return false;
  for (const Value& part : parts) {
    Value text;
    if (!text_of(heap_, part, text)) return false;
    const Value before = joined;
    if (!heap_.concat(before.string(), text.string(), joined)) return false;
  }
  out = joined;
  return true;
}

bool Renderer::eval_attribute(const Expr& expr, Env& env, Value& out) {
  Value owner;
  if (!eval(*expr.a, env, owner)) return false;
  if (owner.is(Kind::kLoop)) return loop_attribute(*owner.loop, expr.name, out);
  return attribute(heap_, owner, expr.name, out);
}

bool Renderer::eval_item(const Expr& expr, Env& env, Value& out) {
  Value owner, key;
  if (!eval(*expr.a, env, owner)) return false;
  if (expr.b->kind == ExprKind::kSlice) {
    Value bounds[3] = {Value::none(), Value::none(), Value::none()};
    const Expr* given[3] = {expr.b->a, expr.b->b, expr.b->c};
    for (size_t i = 0; i < 3; ++i)
      if (given[i] != nullptr && !eval(*given[i], env, bounds[i])) return false;
    return slice(heap_, owner, bounds[0], bounds[1], bounds[2], out);
  }
  if (!eval(*expr.b, env, key)) return false;
  if (owner.is(Kind::kLoop) && key.is_string()) return loop_attribute(*owner.loop, key.string(), out);
  return item(heap_, owner, key, out);
}

bool Renderer::eval_filter(const Expr& expr, Env& env, Value& out) {
  Value value = block_value_;
  CallArguments given;
  if ((expr.a != nullptr && !eval(*expr.a, env, value)) || !arguments(expr, env, given)) return false;
  Arguments call{
      .heap = heap_, .name = expr.name, .positional = given.positional, .keywords = given.keywords};
  return apply_filter(*expr.filter, value, call, out);
}

bool Renderer::eval_test(const Expr& expr, Env& env, Value& out) {
  Value value;
  CallArguments given;
  if (!eval(*expr.a, env, value) || !arguments(expr, env, given)) return false;
  Arguments call{
      .heap = heap_, .name = expr.name, .positional = given.positional, .keywords = given.keywords};
  bool holds = false;
  if (!apply_test(*expr.test, value, call, holds)) return false;
  out = Value::of(holds);
  return true;
}

bool Renderer::arguments(const Expr& expr, Env& env, CallArguments& out) {
  Value* positional = heap_.array<Value>(expr.items.size());
  auto* keywords = heap_.array<Keyword>(expr.named.size());
  if (positional == nullptr || keywords == nullptr) return false;
  for (size_t i = 0; i < expr.items.size(); ++i)
    if (!eval(*expr.items[i], env, positional[i])) return false;
  for (size_t i = 0; i < expr.named.size(); ++i) {
    keywords[i].name = expr.named[i].name;
    if (!eval(*expr.named[i].value, env, keywords[i].value)) return false;
  }
  out.positional = {positional, expr.items.size()};
  out.keywords = {keywords, expr.named.size()};
  return true;
}

bool Renderer::eval_call(const Expr& expr, Env& env, Value& out) {
  Value callee;
  CallArguments given;
  if (expr.a->kind == ExprKind::kAttribute) {  // a method, without making a value of it
    Value owner;
    if (!eval(*expr.a->a, env, owner)) return false;
    if (const MethodRule* rule = find_method(owner.kind, expr.a->name); rule != nullptr)
      return arguments(expr, env, given) && call_method(owner, *rule, given, out);
    if (owner.is(Kind::kLoop) ? !loop_attribute(*owner.loop, expr.a->name, callee)
                              : !attribute(heap_, owner, expr.a->name, callee))
      return false;
  } else if (!eval(*expr.a, env, callee)) {
    return false;
  }
  return arguments(expr, env, given) && call(callee, given, out);
}

}  // namespace plimsoll::templates
