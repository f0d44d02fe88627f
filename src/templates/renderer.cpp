// Statements, scopes and loops. Macros, {% call %} and {% set %} blocks write to the same output, from which
// their text is then taken back.
#include "templates/renderer.h"

#include <fmt/format.h>

#include <algorithm>

#include "templates/object.h"
#include "templates/print.h"

namespace plimsoll::templates {

bool Renderer::fail(std::string why, int line) {
  if (line_ == 0) line_ = line;
  return heap_.fail(std::move(why));
}

bool Renderer::run(std::string& text, std::vector<TextSpan>& generation) {
  out_ = &text;
  generation_ = &generation;
  stack_start_ = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  Env* root = enter(program_.scope, nullptr);
  return root != nullptr && run(program_.body, *root) != Flow::kFailed;
}

Env* Renderer::enter(const Scope& scope, Env* outer) {
  Env* env = heap_.array<Env>(1);
  Value* slots = heap_.array<Value>(scope.slots.size());
  if (env == nullptr || slots == nullptr) return nullptr;
  *env = {.outer = outer, .slots = slots};
  reset(scope, *env);
  return env;
}

void Renderer::reset(const Scope& scope, Env& env) {
  for (size_t i = 0; i < scope.slots.size(); ++i) {
    const Slot& slot = scope.slots[i];
    Value& value = env.slots[i];
    switch (slot.start) {
      case SlotStart::kOutside:
        value = outside_[static_cast<size_t>(slot.slot)];
        break;
      case SlotStart::kAlias: {
        const Env* from = env.outer;
        for (int hop = 0; hop < slot.hops; ++hop) from = from->outer;
        value = from->slots[slot.slot];
        break;
      }
      default:
        value = Value::undefined(slot.name);
    }
  }
}

Value& Renderer::slot(const Expr& name, Env& env) {
  Env* from = &env;
  for (int hop = 0; hop < name.hops; ++hop) from = from->outer;
  return from->slots[name.slot];
}

Renderer::Flow Renderer::run(const Body& body, Env& env) {
  for (const Stmt* stmt : body)
    if (const Flow flow = run(*stmt, env); flow != Flow::kNext) return flow;
  return Flow::kNext;
}

Renderer::Flow Renderer::run(const Stmt& stmt, Env& env) {
  if (!heap_.charge(1)) return fail({}, stmt.line), Flow::kFailed;
  if (!descend(stmt.line)) return Flow::kFailed;
  const Flow flow = run_kind(stmt, env);
  --depth_;
  return flow;
}

Renderer::Flow Renderer::run_kind(const Stmt& stmt, Env& env) {
  const auto done = [](bool ok) { return ok ? Flow::kNext : Flow::kFailed; };
  Value value;
  switch (stmt.kind) {
    case StmtKind::kText:
      out_->append(stmt.text);
      return done((heap_.charge_bytes(stmt.text.size()) && heap_.room(out_->size())) || fail({}, stmt.line));
    case StmtKind::kPrint:
      return done(eval(*stmt.expr, env, value) && (print(value) || fail({}, stmt.line)));
    case StmtKind::kIf:
      return run_if(stmt, env);
    case StmtKind::kFor:
      return run_for(stmt, env);
    case StmtKind::kSet:
      return done(eval(*stmt.expr, env, value) && (assign(stmt.target, value, env) || fail({}, stmt.line)));
    case StmtKind::kSetBlock:
      return run_set_block(stmt, env);
    case StmtKind::kMacro:
      return done(define_macro(stmt, env));
    case StmtKind::kCallBlock:
      return done(run_call_block(stmt, env) || fail({}, stmt.line));
    case StmtKind::kFilterBlock:
      return run_filter_block(stmt, env);
    case StmtKind::kGeneration:
      return done(run_generation(stmt, env));
    case StmtKind::kBreak:
      return Flow::kBreak;
    case StmtKind::kContinue:
      return Flow::kContinue;
  }
  return Flow::kFailed;
}

bool Renderer::print(const Value& value) {
  return append_text(heap_, value, *out_) && heap_.room(out_->size());
}

Renderer::Flow Renderer::run_if(const Stmt& stmt, Env& env) {
  Value value;
  if (!eval(*stmt.expr, env, value)) return Flow::kFailed;
  if (truth(value)) return run(stmt.body, env);
  for (const Stmt* branch : stmt.branches) {
    if (!heap_.charge(1)) return fail({}, branch->line), Flow::kFailed;
    if (!eval(*branch->expr, env, value)) return Flow::kFailed;
    if (truth(value)) return run(branch->body, env);
  }
  return run(stmt.orelse, env);
}

Renderer::Flow Renderer::run_for(const Stmt& stmt, Env& env) {
  Value iterated;
  Loop* loop = heap_.array<Loop>(1);
  if (!eval(*stmt.expr, env, iterated)) return Flow::kFailed;
  if (loop == nullptr || !items_of(heap_, iterated, loop->items)) return fail({}, stmt.line), Flow::kFailed;
  loop->stmt = &stmt;
  if (stmt.condition != nullptr && (loop->condition_env = enter(stmt.condition_scope, &env)) == nullptr)
    return Flow::kFailed;
  if (const Flow flow = run_items(stmt, env, *loop); flow == Flow::kFailed) return flow;
  if (loop->index0 >= 0 || stmt.orelse.empty()) return Flow::kNext;
  Env* other = enter(stmt.else_scope, &env);
  return other == nullptr ? Flow::kFailed : run(stmt.orelse, *other);
}

Renderer::Flow Renderer::run_items(const Stmt& stmt, Env& env, Loop& loop) {
  Env* inner = enter(stmt.scope, &env);
  Value handle;
  handle.kind = Kind::kLoop;
  handle.loop = &loop;
  while (inner != nullptr) {
    Value item;
    bool is_end = false;
    if (!pull(loop, item, is_end)) return fail({}, stmt.line), Flow::kFailed;
    if (is_end) return Flow::kNext;
    ++loop.index0;
    loop.before = loop.current;
    loop.current = item;
    if (loop.index0 > 0) {
      if (stmt.scope.has_closures)
        inner = enter(stmt.scope, &env);
      else
        reset(stmt.scope, *inner);
      if (inner == nullptr) break;
    }
    if (stmt.loop_slot >= 0) inner->slots[stmt.loop_slot] = handle;
    if (!heap_.charge(1 + stmt.scope.slots.size() / 4) || !assign(stmt.target, item, *inner))
      return fail({}, stmt.line), Flow::kFailed;
    const Flow flow = run(stmt.body, *inner);
    if (flow == Flow::kFailed) return flow;
    if (flow == Flow::kBreak) return Flow::kNext;
  }
  return fail({}, stmt.line), Flow::kFailed;
}

bool Renderer::pull(Loop& loop, Value& out, bool& is_end) {
  if (loop.has_after) {
    loop.has_after = false;
    out = loop.after;
    is_end = loop.after_is_end;
    return true;
  }
  while (loop.at < loop.items.size()) {
    out = loop.items[loop.at++];
    if (loop.condition_env == nullptr) return true;
    Value holds;
    reset(loop.stmt->condition_scope, *loop.condition_env);
    if (!assign(loop.stmt->condition_target, out, *loop.condition_env) ||
        !eval(*loop.stmt->condition, *loop.condition_env, holds))
      return false;
    if (truth(holds)) return true;
  }
  is_end = true;
  return true;
}

bool Renderer::peek(Loop& loop) {
  if (loop.has_after) return true;
  loop.after_is_end = false;
  Value after;
  if (!pull(loop, after, loop.after_is_end)) return false;
  loop.after = after;
  loop.has_after = true;
  return true;
}

bool Renderer::loop_attribute(Loop& loop, std::string_view name, Value& out) {
  const auto give = [&out](Value value) {
    out = value;
    return true;
  };
  if (name == "index") return give(Value::of(loop.index0 + 1));
  if (name == "index0") return give(Value::of(loop.index0));
  if (name == "first") return give(Value::of(loop.index0 == 0));
  if (name == "last") return peek(loop) && give(Value::of(loop.after_is_end));
  if (name == "length")
    return loop.condition_env == nullptr
               ? give(Value::of(static_cast<int64_t>(loop.items.size())))
               : heap_.fail("'loop.length' is not known in a loop with a condition");
  if (name == "previtem")
    return give(loop.index0 == 0 ? Value::undefined_because("there is no previous item") : loop.before);
  if (name == "nextitem")
    return peek(loop) &&
           give(loop.after_is_end ? Value::undefined_because("there is no next item") : loop.after);
  return heap_.fail(
      fmt::format("'loop.{}' is not supported: templates of public models do without it", name));
}

bool Renderer::assign(const Target& target, const Value& value, Env& env) {
  if (target.name != nullptr) {
    slot(*target.name, env) = value;
    return true;
  }
  if (target.ns != nullptr) return assign_attribute(target, value, env);
  std::span<const Value> items;
  if (!items_of(heap_, value, items)) return false;
  if (items.size() != target.parts.size())
    return heap_.fail(fmt::format("{} values for {} names", items.size(), target.parts.size()));
  for (size_t i = 0; i < items.size(); ++i) slot(*target.parts[i], env) = items[i];
  return true;
}

bool Renderer::assign_attribute(const Target& target, const Value& value, Env& env) {
  Value owner;
  if (!eval(*target.ns, env, owner)) return false;
  if (!owner.is(Kind::kNamespace))
    return heap_.fail(
        fmt::format("'{}' is no namespace, so '{}' cannot be set", target.ns->name, target.attribute));
  if (target.attribute.starts_with('_')) return heap_.fail("a namespace's names do not start with '_'");
  Namespace& ns = *owner.ns;
  if (ns.size == ns.capacity) {
    const size_t capacity = 2 * size_t{ns.capacity} + 4;
    auto* grown = heap_.array<Entry>(capacity);
    if (grown == nullptr) return false;
    std::copy_n(ns.entries, ns.size, grown);
    ns.entries = grown;
    ns.capacity = static_cast<uint32_t>(capacity);
  }
  size_t count = ns.size;
  if (!set_entry(heap_, ns.entries, count, Value::of(target.attribute), value)) return false;
  ns.size = static_cast<uint32_t>(count);
  return true;
}

Renderer::Flow Renderer::capture(const Body& body, Env& env, Value& out) {
  const size_t begin = out_->size();
  ++captures_;
  const Flow flow = run(body, env);
  --captures_;
  if (flow == Flow::kFailed || !heap_.text(std::string_view(*out_).substr(begin), out)) return Flow::kFailed;
  out_->resize(begin);
  return flow;
}

Renderer::Flow Renderer::run_set_block(const Stmt& stmt, Env& env) {
  Env* inner = enter(stmt.scope, &env);
  Value text;
  if (inner == nullptr) return Flow::kFailed;
  if (const Flow flow = capture(stmt.body, *inner, text); flow != Flow::kNext) return flow;
  return assign(stmt.target, text, env) || fail({}, stmt.line) ? Flow::kNext : Flow::kFailed;
}

Renderer::Flow Renderer::run_filter_block(const Stmt& stmt, Env& env) {
  Env* inner = enter(stmt.scope, &env);
  Value text;
  if (inner == nullptr) return Flow::kFailed;
  if (const Flow flow = capture(stmt.body, *inner, text); flow != Flow::kNext) return flow;
  block_value_ = text;
  return eval(*stmt.expr, env, text) && (print(text) || fail({}, stmt.line)) ? Flow::kNext : Flow::kFailed;
}

bool Renderer::define_macro(const Stmt& stmt, Env& env) {
  auto* macro = heap_.array<Macro>(1);
  if (macro == nullptr) return false;
  *macro = {.stmt = &stmt, .env = &env};
  Value value;
  value.kind = Kind::kMacro;
  value.macro = macro;
  slot(*stmt.target.name, env) = value;
  return true;
}

bool Renderer::run_call_block(const Stmt& stmt, Env& env) {
  auto* macro = heap_.array<Macro>(1);
  Value callee, text;
  CallArguments given;
  if (macro == nullptr || !eval(*stmt.expr->a, env, callee) || !arguments(*stmt.expr, env, given))
    return false;
  *macro = {.stmt = &stmt, .env = &env};
  Value caller;
  caller.kind = Kind::kMacro;
  caller.macro = macro;
  auto* keywords = heap_.array<Keyword>(given.keywords.size() + 1);
  if (keywords == nullptr) return false;
  std::copy(given.keywords.begin(), given.keywords.end(), keywords);
  keywords[given.keywords.size()] = {.name = "caller", .value = caller};
  given.keywords = {keywords, given.keywords.size() + 1};
  return call(callee, given, text) && print(text);
}

bool Renderer::run_generation(const Stmt& stmt, Env& env) {
  Env* inner = enter(stmt.scope, &env);
  if (inner == nullptr) return false;
  const size_t begin = out_->size();
  ++generations_;
  const Flow flow = run(stmt.body, *inner);
  --generations_;
  if (captures_ > 0)
    generation_lost_ = true;
  else if (generations_ == 0 && out_->size() > begin)
    generation_->push_back({begin, out_->size()});
  return flow != Flow::kFailed;
}

}  // namespace plimsoll::templates
