// Binds arguments to parameters and applies filters and tests.
#include "templates/rules.h"

#include <fmt/format.h>

#include "templates/object.h"
#include "templates/print.h"

namespace plimsoll::templates {
namespace {

/// Calls `visit(index, name)` for each parameter until it returns false.
template <typename Visit>
void each_parameter(std::string_view parameters, Visit visit) {
  for (size_t i = 0; !parameters.empty(); ++i) {
    const size_t space = std::min(parameters.find(' '), parameters.size());
    if (!visit(i, parameters.substr(0, space))) return;
    parameters.remove_prefix(std::min(space + 1, parameters.size()));
  }
}

}  // namespace

bool Arguments::fail(std::string_view what) const { return heap.fail(fmt::format("{}: {}", name, what)); }

bool Arguments::flag(size_t i, bool otherwise) const { return has(i) ? truth(*bound[i]) : otherwise; }

bool Arguments::integer(size_t i, int64_t otherwise, int64_t& out) const {
  out = otherwise;
  if (!has(i)) return true;
  if (!bound[i]->is_integral()) return fail(fmt::format("expected an integer, not {}", type_name(*bound[i])));
  out = bound[i]->as_integer();
  return true;
}

bool Arguments::string(size_t i, std::string_view otherwise, std::string_view& out) const {
  out = otherwise;
  if (!has(i)) return true;
  if (!bound[i]->is_string()) return fail(fmt::format("expected a text, not {}", type_name(*bound[i])));
  out = bound[i]->string();
  return true;
}

bool bind(std::string_view parameters, int required, Arguments& call) {
  if (parameters == "*") return true;
  size_t count = 0;
  size_t used = 0;
  bool ok = true;
  each_parameter(parameters, [&](size_t i, std::string_view name) {
    count = i + 1;
    if (i < call.positional.size()) call.bound[i] = &call.positional[i];
    for (const Keyword& keyword : call.keywords) {
      if (keyword.name != name) continue;
      if (call.has(i)) return ok = call.fail(fmt::format("'{}' is given twice", name));
      call.bound[i] = &keyword.value;
      ++used;
    }
    if (!call.has(i) && i < static_cast<size_t>(required))
      return ok = call.fail(fmt::format("'{}' is missing", name));
    return true;
  });
  if (!ok) return false;
  if (call.positional.size() > count)
    return call.fail(fmt::format("takes {} arguments, not {}", count, call.positional.size()));
  if (used == call.keywords.size()) return true;
  for (const Keyword& keyword : call.keywords) {
    bool known = false;
    each_parameter(parameters, [&](size_t, std::string_view name) {
      return known = known || name == keyword.name, true;
    });
    if (!known) return call.fail(fmt::format("has no argument '{}'", keyword.name));
  }
  return true;
}

bool apply_filter(const FilterRule& rule, const Value& value, Arguments& call, Value& out) {
  if (!call.heap.charge(1)) return false;
  if (!rule.lazy) return bind(rule.parameters, rule.required, call) && rule.apply(value, call, out);
  // The arguments may be gone by the time the items are wanted.
  Value positional;
  if (!call.heap.list(call.positional, positional)) return false;
  auto* keywords = call.heap.array<Keyword>(call.keywords.size());
  if (keywords == nullptr) return false;
  std::copy(call.keywords.begin(), call.keywords.end(), keywords);
  char* memory = call.heap.bytes(sizeof(FilterCall), alignof(FilterCall));
  auto* iterator = call.heap.array<Iterator>(1);
  if (memory == nullptr || iterator == nullptr) return false;
  auto* pending = new (memory) FilterCall{.rule = &rule,
                                          .value = value,
                                          .arguments = {.heap = call.heap,
                                                        .name = rule.name,
                                                        .positional = positional.list_items(),
                                                        .keywords = {keywords, call.keywords.size()}}};
  if (!bind(rule.parameters, rule.required, pending->arguments)) return false;
  iterator->pending = pending;
  out = Value();
  out.kind = Kind::kIterator;
  out.iterator = iterator;
  return true;
}

bool apply_test(const TestRule& rule, const Value& value, Arguments& call, bool& out) {
  return call.heap.charge(1) && bind(rule.parameters, rule.required, call) && rule.holds(value, call, out);
}

bool apply_method(const MethodRule& rule, const Value& self, Arguments& call, Value& out) {
  return call.heap.charge(1) && bind(rule.parameters, rule.required, call) && rule.apply(self, call, out);
}

}  // namespace plimsoll::templates
