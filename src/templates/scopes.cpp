// Jinja2 compiles templates to functions whose local variables are the names that a scope assigns. To give
// each name the same meaning, the walk below sees the names of a scope in the same order: a name that is read
// first comes from outside; one that is assigned first starts undefined, or as a copy of the outer scope's;
// one that only some branches of an {% if %} assign starts as what it was outside.
#include "templates/scopes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "templates/lexer.h"
#include "templates/refused.h"

namespace plimsoll::templates {
namespace {

constexpr std::string_view kFunctions[] = {"raise_exception", "strftime_now", "range", "namespace", "dict"};

/// What is known of the names of a scope; a branch of an {% if %} is laid over what was known before it.
struct Symbols {
  const Symbols* outer = nullptr;  // the scope around
  const Symbols* before = nullptr;
  std::map<std::string_view, SlotStart> starts = {};
  std::set<std::string_view> stores = {};

  [[nodiscard]] bool knows(std::string_view name) const {
    for (const Symbols* s = this; s != nullptr; s = s->before)
      if (s->starts.contains(name)) return true;
    return false;
  }
  [[nodiscard]] bool knows_here_or_outside(std::string_view name) const {
    for (const Symbols* s = this; s != nullptr; s = s->outer)
      if (s->knows(name)) return true;
    return false;
  }
  [[nodiscard]] bool stored(std::string_view name) const {
    for (const Symbols* s = this; s != nullptr; s = s->before)
      if (s->stores.contains(name)) return true;
    return false;
  }
  void load(std::string_view name) {
    if (!knows_here_or_outside(name)) starts[name] = SlotStart::kOutside;
  }
  void store(std::string_view name) {
    stores.insert(name);
    if (knows(name)) return;
    const bool is_outside = outer != nullptr && outer->knows_here_or_outside(name);
    starts[name] = is_outside ? SlotStart::kAlias : SlotStart::kUndefined;
  }
  void declare(std::string_view name) {
    stores.insert(name);
    starts[name] = SlotStart::kParameter;
  }
  void merge(const std::vector<Symbols>& branches) {
    std::set<std::string_view> changed;
    for (const Symbols& branch : branches)
      for (const std::string_view name : branch.stores)
        if (!stored(name)) changed.insert(name);
    for (const Symbols& branch : branches) {
      for (const auto& [name, start] : branch.starts) starts[name] = start;
      stores.insert(branch.stores.begin(), branch.stores.end());
    }
    for (const std::string_view name : changed)
      starts[name] =
          outer != nullptr && outer->knows_here_or_outside(name) ? SlotStart::kAlias : SlotStart::kOutside;
  }
};

template <typename Visit>
void each_child(const Expr& expr, Visit visit) {
  for (Expr* child : {expr.a, expr.b, expr.c})
    if (child != nullptr) visit(child);
  for (Expr* child : expr.items) visit(child);
  for (const NamedArgument& argument : expr.named) visit(argument.value);
}

template <typename Visit>
void each_name(Expr* expr, Visit visit) {
  if (expr == nullptr) return;
  if (expr->kind == ExprKind::kName) visit(expr);
  each_child(*expr, [&visit](Expr* child) { each_name(child, visit); });
}

/// The names assigned, and the namespaces read.
template <typename Store, typename Load>
void each_target(Target& target, Store store, Load load) {
  if (target.name != nullptr) store(target.name);
  if (target.ns != nullptr) load(target.ns);
  for (Expr* part : target.parts) store(part);
}

bool reads(const Body& body, std::string_view name);
bool reads(const Stmt& stmt, std::string_view name) {
  bool found = false;
  const auto look = [&found, name](Expr* expr) {
    each_name(expr, [&found, name](const Expr* e) { found = found || e->name == name; });
  };
  look(stmt.expr);
  look(stmt.condition);
  for (Expr* value : stmt.defaults) look(value);
  const auto body_reads = [&found, name](const Body& body) { found = found || reads(body, name); };
  body_reads(stmt.body);
  body_reads(stmt.orelse);
  body_reads(stmt.branches);
  return found;
}
bool reads(const Body& body, std::string_view name) {
  return std::any_of(body.begin(), body.end(), [name](const Stmt* stmt) { return reads(*stmt, name); });
}

class Resolver {
 public:
  explicit Resolver(Program& program) : program_(program) {}
  Status run() {
    for (const Expr& expr : program_.exprs)
      if (expr.kind == ExprKind::kTest && expr.a != nullptr && expr.a->kind == ExprKind::kName)
        tested_.insert(expr.a->name);
    Symbols symbols;
    see(symbols, program_.body);
    scope(program_.scope, symbols, nullptr, [&](const Frame& frame) { resolve(program_.body, frame); });
    if (!error_.what.empty()) return error_;
    return Ok{};
  }

 private:
  struct Frame {
    const Frame* outer;
    Scope* scope;
    const Symbols* symbols;
  };

  void see(Symbols& symbols, const Body& body) {
    for (Stmt* stmt : body) see(symbols, *stmt);
  }
  void see(Symbols& symbols, Expr* expr) {
    each_name(expr, [&symbols](const Expr* name) { symbols.load(name->name); });
  }
  void see_target(Symbols& symbols, Target& target) {
    each_target(
        target, [&symbols](const Expr* e) { symbols.store(e->name); },
        [&symbols](const Expr* e) { symbols.load(e->name); });
  }
  void declare(Symbols& symbols, Target& target) {
    each_target(
        target, [&symbols](const Expr* e) { symbols.declare(e->name); }, [](const Expr*) {});
  }
  void see(Symbols& symbols, Stmt& stmt);
  void see_if(Symbols& symbols, Stmt& stmt);

  template <typename Resolve>
  void scope(Scope& scope, const Symbols& symbols, const Frame* outer, Resolve resolve);
  void resolve(const Body& body, const Frame& frame);
  void resolve(Stmt& stmt, const Frame& frame);
  void resolve(Expr* expr, const Frame& frame);
  void resolve_name(Expr& name, const Frame& frame);
  void resolve_target(Target& target, const Frame& frame) {
    const auto name = [this, &frame](Expr* e) { resolve_name(*e, frame); };
    each_target(target, name, name);
  }
  Target copy(const Target& target);
  void for_loop(Stmt& stmt, const Frame& frame);
  void function(Stmt& stmt, const Frame& frame);
  void check_call(const Expr& call);
  static std::pair<int, int> find(std::string_view name, const Frame* frame);
  int outside(std::string_view name);

  Program& program_;
  std::map<std::string_view, int> outside_ = {};
  std::set<std::string_view> tested_ = {};  // names that the template asks about
  Error error_ = {.what = {}};
};

void Resolver::see(Symbols& symbols, Stmt& stmt) {
  switch (stmt.kind) {
    case StmtKind::kIf:
      return see_if(symbols, stmt);
    case StmtKind::kMacro:
      return symbols.store(stmt.name);
    default:  // the bodies of the others are scopes of their own
      see(symbols, stmt.expr);
      if (stmt.kind == StmtKind::kSet || stmt.kind == StmtKind::kSetBlock) see_target(symbols, stmt.target);
  }
}

void Resolver::see_if(Symbols& symbols, Stmt& stmt) {
  see(symbols, stmt.expr);
  std::vector<Symbols> branches(3);
  for (Symbols& branch : branches) {
    branch.outer = symbols.outer;
    branch.before = &symbols;
  }
  see(branches[0], stmt.body);
  see(branches[1], stmt.branches);
  see(branches[2], stmt.orelse);
  symbols.merge(branches);
}

int Resolver::outside(std::string_view name) {
  const auto [found, is_new] = outside_.try_emplace(name, static_cast<int>(program_.outside.size()));
  if (is_new) program_.outside.push_back(name);
  return found->second;
}

/// Scopes outwards and the slot; -1 where it has none.
std::pair<int, int> Resolver::find(std::string_view name, const Frame* frame) {
  for (int hops = 0; frame != nullptr; frame = frame->outer, ++hops)
    if (frame->symbols->knows(name)) return {hops, frame->scope->find(name)};
  return {0, -1};
}

template <typename Resolve>
void Resolver::scope(Scope& scope, const Symbols& symbols, const Frame* outer, Resolve resolve) {
  for (const auto& [name, start] : symbols.starts) {
    if (start == SlotStart::kOutside && !symbols.stored(name)) continue;
    Slot slot{.name = name, .start = start};
    if (start == SlotStart::kOutside) slot.slot = outside(name);
    if (start == SlotStart::kAlias) {
      const auto [hops, at] = find(name, outer);
      slot.hops = hops;
      slot.slot = at;
      if (at < 0) {  // the outer scope takes it from outside as well
        slot.start = SlotStart::kOutside;
        slot.slot = outside(name);
      }
    }
    scope.slots.push_back(slot);
  }
  const Frame frame{.outer = outer, .scope = &scope, .symbols = &symbols};
  resolve(frame);
  if (outer != nullptr && scope.has_closures) outer->scope->has_closures = true;
}

void Resolver::resolve_name(Expr& name, const Frame& frame) {
  const auto [hops, slot] = find(name.name, &frame);
  name.hops = slot < 0 ? -1 : hops;
  name.slot = slot < 0 ? outside(name.name) : slot;
}

void Resolver::resolve(Expr* expr, const Frame& frame) {
  if (expr == nullptr) return;
  if (expr->kind == ExprKind::kName) resolve_name(*expr, frame);
  each_child(*expr, [this, &frame](Expr* child) { resolve(child, frame); });
  if (expr->kind == ExprKind::kCall && expr->a->kind == ExprKind::kName && expr->a->hops < 0)
    check_call(*expr->a);
}

/// A call of a variable from outside can only be one of the functions, since records hold none.
void Resolver::check_call(const Expr& name) {
  if (std::find(std::begin(kFunctions), std::end(kFunctions), name.name) != std::end(kFunctions)) return;
  if (!tested_.contains(name.name) && error_.what.empty())
    error_ = template_error(no_construct(Construct::kFunction, name.name), name.line);
}

void Resolver::resolve(const Body& body, const Frame& frame) {
  for (Stmt* stmt : body) resolve(*stmt, frame);
}

void Resolver::resolve(Stmt& stmt, const Frame& frame) {
  switch (stmt.kind) {
    case StmtKind::kFor:
      return for_loop(stmt, frame);
    case StmtKind::kMacro:
      stmt.target.name = &program_.exprs.emplace_back();
      stmt.target.name->kind = ExprKind::kName;
      stmt.target.name->name = stmt.name;
      resolve_name(*stmt.target.name, frame);
      return function(stmt, frame);
    case StmtKind::kCallBlock:
      resolve(stmt.expr, frame);
      return function(stmt, frame);
    case StmtKind::kIf:
      resolve(stmt.expr, frame);
      resolve(stmt.body, frame);
      resolve(stmt.branches, frame);
      return resolve(stmt.orelse, frame);
    default:
      break;
  }
  resolve(stmt.expr, frame);
  resolve_target(stmt.target, frame);
  if (stmt.body.empty()) return;
  Symbols symbols{.outer = frame.symbols};
  see(symbols, stmt.body);
  if (stmt.kind == StmtKind::kFilterBlock) see(symbols, stmt.expr);
  scope(stmt.scope, symbols, &frame, [&](const Frame& inner) { resolve(stmt.body, inner); });
}

/// The same names, to be resolved to another scope's slots.
Target Resolver::copy(const Target& target) {
  Target out = target;
  if (target.name != nullptr) out.name = &program_.exprs.emplace_back(*target.name);
  for (Expr*& part : out.parts) part = &program_.exprs.emplace_back(*part);
  return out;
}

void Resolver::for_loop(Stmt& stmt, const Frame& frame) {
  resolve(stmt.expr, frame);
  const bool uses_loop = reads(stmt.body, "loop");
  Symbols symbols{.outer = frame.symbols};
  if (uses_loop) symbols.declare("loop");
  declare(symbols, stmt.target);
  see(symbols, stmt.body);
  if (stmt.condition != nullptr) {
    Symbols tested{.outer = frame.symbols};
    declare(tested, stmt.target);
    see(tested, stmt.condition);
    stmt.condition_target = copy(stmt.target);
    scope(stmt.condition_scope, tested, &frame, [&](const Frame& inner) {
      resolve_target(stmt.condition_target, inner);
      resolve(stmt.condition, inner);
    });
  }
  scope(stmt.scope, symbols, &frame, [&](const Frame& inner) {
    resolve_target(stmt.target, inner);
    if (uses_loop) stmt.loop_slot = stmt.scope.find("loop");
    resolve(stmt.body, inner);
  });
  if (stmt.orelse.empty()) return;
  Symbols other{.outer = frame.symbols};
  see(other, stmt.orelse);
  scope(stmt.else_scope, other, &frame, [&](const Frame& inner) { resolve(stmt.orelse, inner); });
}

void Resolver::function(Stmt& stmt, const Frame& frame) {
  frame.scope->has_closures = true;
  Symbols symbols{.outer = frame.symbols};
  for (const Expr* parameter : stmt.parameters) symbols.declare(parameter->name);
  for (const std::string_view name : {"kwargs", "varargs"})
    if (!symbols.knows(name) && reads(stmt.body, name) && error_.what.empty())
      error_ = template_error(
          fmt::format("'{}' is not supported: templates of public models do without it", name), stmt.line);
  const bool calls = !symbols.knows("caller") && reads(stmt.body, "caller");
  if (calls) symbols.declare("caller");
  for (Expr* value : stmt.defaults) see(symbols, value);
  see(symbols, stmt.body);
  scope(stmt.scope, symbols, &frame, [&](const Frame& inner) {
    for (Expr* parameter : stmt.parameters) resolve_name(*parameter, inner);
    for (Expr* value : stmt.defaults) resolve(value, inner);
    if (calls) stmt.caller_slot = stmt.scope.find("caller");
    resolve(stmt.body, inner);
  });
}

}  // namespace

Status resolve_names(Program& program) { return Resolver(program).run(); }

}  // namespace plimsoll::templates
