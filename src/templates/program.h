// A template as a tree. Names are resolved before it runs (scopes.h): to a slot of a scope, so many scopes
// out, or to a variable that is given from outside.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "templates/value.h"

namespace plimsoll::templates {

struct FilterRule;
struct TestRule;

enum class ExprKind : uint8_t {
  kConstant,
  kName,
  kTuple,
  kList,
  kDict,       ///< items: key, value, key, value…
  kCondition,  ///< b if a else c
  kOr,
  kAnd,
  kNot,
  kCompare,
  kBinary,
  kConcat,
  kNegative,
  kAttribute,  ///< a.name
  kItem,       ///< a[b]
  kSlice,      ///< [a:b:c], only as an item's b
  kCall,
  kFilter,  ///< a is the value; null in {% filter %}
  kTest,
};

enum class Op : uint8_t { kAdd, kSub, kMul, kMod, kEq, kNe, kLt, kLe, kGt, kGe, kIn, kNotIn };

struct Expr;
struct NamedArgument {
  std::string_view name;
  Expr* value = nullptr;
};

struct Expr {
  ExprKind kind = ExprKind::kConstant;
  Op op = Op::kAdd;
  int line = 0;
  int height = 1;  ///< of the tree below
  Value value = {};
  std::string_view name = {};  ///< of names, attributes, filters, tests
  Expr* a = nullptr;
  Expr* b = nullptr;
  Expr* c = nullptr;
  std::vector<Expr*> items = {};          ///< elements; operands; positional arguments
  std::vector<NamedArgument> named = {};  ///< keyword arguments
  const FilterRule* filter = nullptr;
  const TestRule* test = nullptr;
  int hops = -1;  ///< kName: scopes outwards; -1: a variable from outside
  int slot = -1;  ///< in that scope; or the variable's number
};

enum class StmtKind : uint8_t {
  kText,
  kPrint,
  kIf,
  kFor,
  kSet,
  kSetBlock,
  kMacro,
  kCallBlock,
  kFilterBlock,
  kGeneration,
  kBreak,
  kContinue,
};

/// How a scope's slot starts out.
enum class SlotStart : uint8_t { kUndefined, kParameter, kOutside, kAlias };
struct Slot {
  std::string_view name = {};
  SlotStart start = SlotStart::kUndefined;
  int hops = 0;  ///< kAlias: of the outer scope's slot
  int slot = 0;  ///< kAlias; kOutside: the variable's number
};
struct Scope {
  std::vector<Slot> slots = {};
  bool has_closures = false;  ///< macros inside may see it after it ends
  [[nodiscard]] int find(std::string_view name) const {
    for (size_t i = 0; i < slots.size(); ++i)
      if (slots[i].name == name) return static_cast<int>(i);
    return -1;
  }
};

struct Stmt;
using Body = std::vector<Stmt*>;

/// What {% set %} and {% for %} assign to.
struct Target {
  Expr* name = nullptr;  ///< a name
  Expr* ns = nullptr;    ///< or ns.attribute
  std::string_view attribute = {};
  std::vector<Expr*> parts = {};  ///< or several names
};

struct Stmt {
  StmtKind kind = StmtKind::kText;
  int line = 0;
  std::string_view text = {};
  Expr* expr = nullptr;       ///< printed; condition; iterated; assigned; call; filter
  Expr* condition = nullptr;  ///< of a for
  Target target = {};
  Target condition_target = {};  ///< kFor: the target's names in the condition's scope
  Body body = {};
  Body orelse = {};
  std::vector<Stmt*> branches = {};    ///< kIf: the elifs, each a kIf
  std::string_view name = {};          ///< of a macro
  std::vector<Expr*> parameters = {};  ///< kMacro: names
  std::vector<Expr*> defaults = {};    ///< of the last parameters
  Scope scope = {};                    ///< of the body
  Scope else_scope = {};               ///< kFor
  Scope condition_scope = {};          ///< kFor
  int loop_slot = -1;                  ///< kFor: where `loop` is, if it is used
  int caller_slot = -1;                ///< kMacro
};

struct Program {
  std::string text = {};
  std::deque<std::string> texts = {};
  std::deque<Expr> exprs = {};
  std::deque<Stmt> stmts = {};
  Body body = {};
  Scope scope = {};
  std::vector<std::string_view> outside = {};  ///< the variables that are given from outside, by number
  bool has_generation = false;
};

}  // namespace plimsoll::templates
