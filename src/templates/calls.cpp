// Calls of macros, methods and the functions that templates are given.
#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "templates/object.h"
#include "templates/print.h"
#include "templates/renderer.h"

namespace plimsoll::templates {
namespace {

constexpr int64_t kMaxRange = 100'000;  // as in Jinja2's sandbox

}  // namespace

bool Renderer::call_method(const Value& self, const MethodRule& rule, const CallArguments& given,
                           Value& out) {
  Arguments call{
      .heap = heap_, .name = rule.name, .positional = given.positional, .keywords = given.keywords};
  return apply_method(rule, self, call, out);
}

bool Renderer::call(const Value& callee, const CallArguments& given, Value& out) {
  switch (callee.kind) {
    case Kind::kUndefined:
      return heap_.fail(undefined_message(callee));
    case Kind::kMacro:
      return call_macro(*callee.macro, given, out);
    case Kind::kFunction:
      return call_function(static_cast<Function>(callee.detail), given, out);
    case Kind::kMethod:
      return call_method(callee.method->self, *callee.method->rule, given, out);
    default:
      return heap_.fail(fmt::format("a {} cannot be called", type_name(callee)));
  }
}

bool Renderer::call_macro(const Macro& macro, const CallArguments& given, Value& out) {
  Env* env = enter(macro.stmt->scope, macro.env);
  return env != nullptr && bind_macro(macro, given, *env) &&
         capture(macro.stmt->body, *env, out) != Flow::kFailed;
}

bool Renderer::bind_macro(const Macro& macro, const CallArguments& given, Env& env) {
  const Stmt& stmt = *macro.stmt;
  const size_t count = stmt.parameters.size();
  if (!heap_.charge(count * given.keywords.size() / 8)) return false;
  std::vector<bool> used(given.keywords.size());
  const auto take = [&](std::string_view name) -> const Value* {
    for (size_t i = 0; i < given.keywords.size(); ++i)
      if (!used[i] && given.keywords[i].name == name) {
        used[i] = true;
        return &given.keywords[i].value;
      }
    return nullptr;
  };
  std::vector<const Value*> values(count);
  for (size_t i = 0; i < count; ++i)
    values[i] = i < given.positional.size() ? &given.positional[i] : take(stmt.parameters[i]->name);
  for (size_t i = 0; i < count; ++i)
    if (values[i] != nullptr) slot(*stmt.parameters[i], env) = *values[i];
  for (size_t i = 0; i < count; ++i) {
    if (values[i] != nullptr) continue;
    const size_t without_default = count - stmt.defaults.size();
    Value value;
    if (i >= without_default && !eval(*stmt.defaults[i - without_default], env, value)) return false;
    if (i < without_default) value = Value::undefined(stmt.parameters[i]->name);
    slot(*stmt.parameters[i], env) = value;
  }
  if (stmt.caller_slot >= 0) {
    const Value* caller = take("caller");
    env.slots[stmt.caller_slot] = caller != nullptr ? *caller : Value::undefined("caller");
  }
  for (size_t i = 0; i < given.keywords.size(); ++i)
    if (!used[i])
      return heap_.fail(fmt::format("macro '{}' has no argument '{}'", stmt.name, given.keywords[i].name));
  return given.positional.size() <= count ||
         heap_.fail(fmt::format("macro '{}' takes no more than {} arguments", stmt.name, count));
}

bool Renderer::call_function(Function function, const CallArguments& given, Value& out) {
  switch (function) {
    case Function::kRaiseException:
      return raise_exception(given);
    case Function::kStrftimeNow:
      return strftime_now(given, out);
    case Function::kRange:
      return make_range(given, out);
    case Function::kDict:
      return make_dict(given, out);
    case Function::kNamespace:
      return make_namespace(given, out);
  }
  return false;
}

bool Renderer::raise_exception(const CallArguments& given) {
  Arguments call{
      .heap = heap_, .name = "raise_exception", .positional = given.positional, .keywords = given.keywords};
  std::string message = "the template refuses the conversation: ";
  if (!bind("message", 1, call) || !append_text(heap_, *call.bound[0], message)) return false;
  return heap_.fail(message.substr(0, 2000));
}

bool Renderer::strftime_now(const CallArguments& given, Value& out) {
  Arguments call{
      .heap = heap_, .name = "strftime_now", .positional = given.positional, .keywords = given.keywords};
  std::string_view format;
  if (!bind("format", 1, call) || !call.string(0, {}, format)) return false;
  const std::time_t seconds = now_ ? static_cast<std::time_t>(*now_) : std::time(nullptr);
  std::tm parts{};
  if ((now_ ? gmtime_r(&seconds, &parts) : localtime_r(&seconds, &parts)) == nullptr)
    return call.fail("the time is out of range");
  if (format.size() > 1000 || format.find('\0') != std::string_view::npos) return call.fail("an odd format");
  // A mark behind tells an empty result from one that does not fit.
  char text[4096];
  const size_t size = std::strftime(text, sizeof text, (std::string(format) + "|").c_str(), &parts);
  if (size == 0) return call.fail("a format whose text is too long");
  return heap_.text(std::string_view(text, size - 1), out);
}

bool Renderer::make_range(const CallArguments& given, Value& out) {
  Arguments call{.heap = heap_, .name = "range", .positional = given.positional, .keywords = given.keywords};
  int64_t first = 0, second = 0, step = 1;
  if (!bind("start stop step", 1, call) || !call.integer(0, 0, first) || !call.integer(1, 0, second) ||
      !call.integer(2, 1, step))
    return false;
  if (!call.has(1)) std::swap(first, second);
  if (step == 0) return call.fail("a step of zero");
  auto* range = heap_.array<Range>(1);
  if (range == nullptr) return false;
  *range = {.start = first, .stop = second, .step = step};
  const bool up = step > 0;
  if (up ? first < second : first > second) {
    const uint64_t distance = up ? static_cast<uint64_t>(second) - static_cast<uint64_t>(first)
                                 : static_cast<uint64_t>(first) - static_cast<uint64_t>(second);
    const uint64_t pace = up ? static_cast<uint64_t>(step) : 0 - static_cast<uint64_t>(step);
    const uint64_t count = (distance - 1) / pace + 1;
    if (count > static_cast<uint64_t>(kMaxRange)) return call.fail("a range of more than 100000 numbers");
    range->count = static_cast<int64_t>(count);
  }
  out = Value();
  out.kind = Kind::kRange;
  out.range = range;
  return true;
}

bool Renderer::make_dict(const CallArguments& given, Value& out) {
  if (!given.positional.empty()) return heap_.fail("dict and namespace take named arguments alone");
  auto* entries = heap_.array<Entry>(given.keywords.size());
  if (entries == nullptr) return false;
  size_t count = 0;
  for (const Keyword& keyword : given.keywords)
    if (!set_entry(heap_, entries, count, Value::of(keyword.name), keyword.value)) return false;
  out = Value::dict(entries, count);
  return true;
}

bool Renderer::make_namespace(const CallArguments& given, Value& out) {
  Value dict;
  auto* ns = heap_.array<Namespace>(1);
  if (ns == nullptr || !make_dict(given, dict)) return false;
  ns->entries = heap_.array<Entry>(dict.size);
  if (ns->entries == nullptr) return false;
  for (const Entry& entry : dict.dict_entries()) {
    if (entry.key.is_string() && entry.key.string().starts_with('_'))
      return heap_.fail("a namespace's names do not start with '_'");
    ns->entries[ns->size++] = entry;
  }
  ns->capacity = ns->size;
  out = Value();
  out.kind = Kind::kNamespace;
  out.ns = ns;
  return true;
}

}  // namespace plimsoll::templates
