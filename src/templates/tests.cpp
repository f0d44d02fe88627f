// The tests after "is", and the lookup of filters and tests by name.
#include <fmt/format.h>

#include <algorithm>

#include "templates/list_filters.h"
#include "templates/object.h"
#include "templates/rules.h"
#include "templates/text_filters.h"

namespace plimsoll::templates {
namespace {

/// A test that needs nothing but the value.
template <bool (*Condition)(const Value&)>
bool simple(const Value& value, Arguments& /*call*/, bool& out) {
  out = Condition(value);
  return true;
}

bool is_defined(const Value& v) { return !v.is_undefined(); }
bool is_undefined(const Value& v) { return v.is_undefined(); }
bool is_none(const Value& v) { return v.is(Kind::kNone); }
bool is_boolean(const Value& v) { return v.is(Kind::kBool); }
bool is_true(const Value& v) { return v.is(Kind::kBool) && v.boolean; }
bool is_false(const Value& v) { return v.is(Kind::kBool) && !v.boolean; }
bool is_integer(const Value& v) { return v.is(Kind::kInt); }
bool is_float(const Value& v) { return v.is(Kind::kFloat); }
bool is_number(const Value& v) { return v.is_number(); }
bool is_string(const Value& v) { return v.is_string(); }
bool is_mapping(const Value& v) { return v.is(Kind::kDict); }
bool is_sequence(const Value& v) {
  return v.is_undefined() || v.is_string() || v.is_list_like() || v.is(Kind::kDict) || v.is(Kind::kRange);
}

template <Op Operator>
bool compares(const Value& value, Arguments& call, bool& out) {
  return compare(call.heap, Operator, value, *call.bound[0], out);
}

bool is_in(const Value& value, Arguments& call, bool& out) {
  return contains(call.heap, *call.bound[0], value, out);
}

constexpr TestRule kTests[] = {
    {"defined", simple<is_defined>},
    {"undefined", simple<is_undefined>},
    {"none", simple<is_none>},
    {"boolean", simple<is_boolean>},
    {"true", simple<is_true>},
    {"false", simple<is_false>},
    {"integer", simple<is_integer>},
    {"float", simple<is_float>},
    {"number", simple<is_number>},
    {"string", simple<is_string>},
    {"mapping", simple<is_mapping>},
    {"sequence", simple<is_sequence>},
    {"iterable", simple<is_iterable>},
    {"in", is_in, "seq", 1},
    {"==", compares<Op::kEq>, "other", 1},
    {"eq", compares<Op::kEq>, "other", 1},
    {"equalto", compares<Op::kEq>, "other", 1},
    {"!=", compares<Op::kNe>, "other", 1},
    {"ne", compares<Op::kNe>, "other", 1},
};

template <typename Rule>
const Rule* by_name(std::span<const Rule> rules, std::string_view name) {
  const auto found =
      std::find_if(rules.begin(), rules.end(), [name](const Rule& rule) { return rule.name == name; });
  return found == rules.end() ? nullptr : &*found;
}

}  // namespace

const TestRule* find_test(std::string_view name) { return by_name(std::span<const TestRule>(kTests), name); }

const FilterRule* find_filter(std::string_view name) {
  const FilterRule* found = by_name(text_filters(), name);
  return found != nullptr ? found : by_name(list_filters(), name);
}

}  // namespace plimsoll::templates
