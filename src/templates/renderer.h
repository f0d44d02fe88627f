// Runs a program: a walk over its tree that writes text.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "templates/chat_template.h"
#include "templates/heap.h"
#include "templates/program.h"
#include "templates/rules.h"

namespace plimsoll::templates {

/// The variables of one call of a scope.
struct Env {
  Env* outer = nullptr;
  Value* slots = nullptr;
};

struct Macro {
  const Stmt* stmt = nullptr;
  Env* env = nullptr;  ///< where it was defined
};

/// The `loop` of a {% for %}. Items that a condition leaves out are passed over only when the next is wanted.
struct Loop {
  const Stmt* stmt = nullptr;
  Env* condition_env = nullptr;  ///< null: no condition
  std::span<const Value> items = {};
  size_t at = 0;
  int64_t index0 = -1;
  bool has_after = false;
  bool after_is_end = false;
  Value after = {};
  Value current = {};
  Value before = {};
};

/// One rendering. What fails returns false; the failure is the heap's, with the line in `line`.
class Renderer {
 public:
  /// `outside` are the values of the program's variables from outside, by number.
  Renderer(const Program& program, Heap& heap, std::span<const Value> outside, std::optional<int64_t> now)
      : program_(program), heap_(heap), outside_(outside), now_(now) {}

  /// Writes to `text` and notes where {% generation %} blocks stand in it.
  bool run(std::string& text, std::vector<TextSpan>& generation);
  /// Of the failure.
  [[nodiscard]] int line() const { return line_; }
  /// Whether a {% generation %} stood where its place in the text is not known (in a macro, in {% set %}).
  [[nodiscard]] bool generation_lost() const { return generation_lost_; }

 private:
  enum class Flow : uint8_t { kNext, kBreak, kContinue, kFailed };

  Flow run(const Body& body, Env& env);
  Flow run(const Stmt& stmt, Env& env);
  Flow run_kind(const Stmt& stmt, Env& env);
  Flow run_if(const Stmt& stmt, Env& env);
  Flow run_for(const Stmt& stmt, Env& env);
  Flow run_items(const Stmt& stmt, Env& env, Loop& loop);
  Flow run_set_block(const Stmt& stmt, Env& env);
  Flow run_filter_block(const Stmt& stmt, Env& env);
  bool run_call_block(const Stmt& stmt, Env& env);
  bool run_generation(const Stmt& stmt, Env& env);
  bool define_macro(const Stmt& stmt, Env& env);
  bool print(const Value& value);
  /// The text that a body writes, taken out of the output again.
  Flow capture(const Body& body, Env& env, Value& out);

  /// A fresh scope inside `outer`; null is a failure.
  Env* enter(const Scope& scope, Env* outer);
  void reset(const Scope& scope, Env& env);
  bool assign(const Target& target, const Value& value, Env& env);
  bool assign_attribute(const Target& target, const Value& value, Env& env);
  [[nodiscard]] static Value& slot(const Expr& name, Env& env);

  /// The next item of a loop; `is_end` where there is none.
  bool pull(Loop& loop, Value& out, bool& is_end);
  bool peek(Loop& loop);
  bool loop_attribute(Loop& loop, std::string_view name, Value& out);

  bool eval(const Expr& expr, Env& env, Value& out);
  bool eval_kind(const Expr& expr, Env& env, Value& out);
  bool eval_items(const Expr& expr, Env& env, Value& out, Kind kind);
  bool eval_dict(const Expr& expr, Env& env, Value& out);
  bool eval_condition(const Expr& expr, Env& env, Value& out);
  bool eval_compare(const Expr& expr, Env& env, Value& out);
  bool eval_binary(const Expr& expr, Env& env, Value& out);
  bool eval_concat(const Expr& expr, Env& env, Value& out);
  bool eval_attribute(const Expr& expr, Env& env, Value& out);
  bool eval_item(const Expr& expr, Env& env, Value& out);
  bool eval_call(const Expr& expr, Env& env, Value& out);
  bool eval_filter(const Expr& expr, Env& env, Value& out);
  bool eval_test(const Expr& expr, Env& env, Value& out);

  struct CallArguments {
    std::span<const Value> positional = {};
    std::span<const Keyword> keywords = {};
  };
  bool arguments(const Expr& expr, Env& env, CallArguments& out);
  bool call(const Value& callee, const CallArguments& arguments, Value& out);
  bool call_method(const Value& self, const MethodRule& rule, const CallArguments& arguments, Value& out);
  bool call_macro(const Macro& macro, const CallArguments& arguments, Value& out);
  bool bind_macro(const Macro& macro, const CallArguments& arguments, Env& env);
  bool call_function(Function function, const CallArguments& arguments, Value& out);
  bool raise_exception(const CallArguments& arguments);
  bool strftime_now(const CallArguments& arguments, Value& out);
  bool make_range(const CallArguments& arguments, Value& out);
  bool make_dict(const CallArguments& arguments, Value& out);
  bool make_namespace(const CallArguments& arguments, Value& out);

  /// One level further into statements and expressions, which --depth_ leaves again; false is a failure.
  bool descend(int line);
  bool fail(std::string why, int line);

  const Program& program_;
  Heap& heap_;
  std::span<const Value> outside_;
  std::optional<int64_t> now_;
  std::string* out_ = nullptr;
  std::vector<TextSpan>* generation_ = nullptr;
  int captures_ = 0;
  int generations_ = 0;
  Value block_value_ = {};  // what the filters of {% filter %} start from
  int depth_ = 0;
  uintptr_t stack_start_ = 0;  // an address in the frame that the rendering began with
  int line_ = 0;
  bool generation_lost_ = false;
};

}  // namespace plimsoll::templates
