// What stands behind "is", and the search for filters and tests by name.
#include <fmt/format.h>

#include <algorithm>

#include "data/chat/list_filters.h"
#include "data/chat/object.h"
#include "data/chat/print.h"
#include "data/chat/rules.h"
#include "data/chat/text.h"
#include "data/chat/text_filters.h"

namespace plimsoll::chat {
namespace {

using Holds = bool (*)(const Value&, Arguments&, bool&);

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
bool is_callable(const Value& v) {
  return v.is_undefined() || v.is(Kind::kFunction) || v.is(Kind::kMethod) || v.is(Kind::kMacro) ||
         v.is(Kind::kLoop);
}
bool is_escaped(const Value& /*v*/) { return false; }

template <Case Which>
bool in_case_test(const Value& value, Arguments& call, bool& out) {
  Value text;
  if (!text_of(call.heap, value, text) || !call.heap.charge_bytes(4 * size_t{text.size})) return false;
  out = is_in_case(text.string(), Which);
  return true;
}

template <Op Operator>
bool compares(const Value& value, Arguments& call, bool& out) {
  return compare(call.heap, Operator, value, *call.bound[0], out);
}

bool remainder_is(const Value& value, Arguments& call, const Value& divisor, int64_t wanted, bool& out) {
  Value rest;
  return binary(call.heap, Op::kMod, value, divisor, rest) && equal(call.heap, rest, Value::of(wanted), out);
}
bool is_odd(const Value& value, Arguments& call, bool& out) {
  return remainder_is(value, call, Value::of(int64_t{2}), 1, out);
}
bool is_even(const Value& value, Arguments& call, bool& out) {
  return remainder_is(value, call, Value::of(int64_t{2}), 0, out);
}
bool is_divisible(const Value& value, Arguments& call, bool& out) {
  return remainder_is(value, call, *call.bound[0], 0, out);
}

bool is_in(const Value& value, Arguments& call, bool& out) {
  return contains(call.heap, *call.bound[0], value, out);
}

/// Python's `is`: the same object; equal constants are.
bool is_same(const Value& value, Arguments& call, bool& out) {
  const Value& other = *call.bound[0];
  out = false;
  if (value.kind != other.kind) return true;
  if (value.is_list_like() || value.is(Kind::kDict) || value.is(Kind::kView)) {
    out = value.items == other.items && value.size == other.size;
    return true;
  }
  return equal(call.heap, value, other, out);
}

bool is_filter(const Value& value, Arguments& /*call*/, bool& out) {
  out = value.is_string() && find_filter(value.string()) != nullptr;
  return true;
}
bool is_test(const Value& value, Arguments& /*call*/, bool& out) {
  out = value.is_string() && find_test(value.string()) != nullptr;
  return true;
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
    {"callable", simple<is_callable>},
    {"escaped", simple<is_escaped>},
    {"lower", in_case_test<Case::kLower>},
    {"upper", in_case_test<Case::kUpper>},
    {"odd", is_odd},
    {"even", is_even},
    {"divisibleby", is_divisible, "num", 1},
    {"in", is_in, "seq", 1},
    {"sameas", is_same, "other", 1},
    {"filter", is_filter},
    {"test", is_test},
    {"==", compares<Op::kEq>, "other", 1},
    {"eq", compares<Op::kEq>, "other", 1},
    {"equalto", compares<Op::kEq>, "other", 1},
    {"!=", compares<Op::kNe>, "other", 1},
    {"ne", compares<Op::kNe>, "other", 1},
    {">", compares<Op::kGt>, "other", 1},
    {"gt", compares<Op::kGt>, "other", 1},
    {"greaterthan", compares<Op::kGt>, "other", 1},
    {">=", compares<Op::kGe>, "other", 1},
    {"ge", compares<Op::kGe>, "other", 1},
    {"<", compares<Op::kLt>, "other", 1},
    {"lt", compares<Op::kLt>, "other", 1},
    {"lessthan", compares<Op::kLt>, "other", 1},
    {"<=", compares<Op::kLe>, "other", 1},
    {"le", compares<Op::kLe>, "other", 1},
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

}  // namespace plimsoll::chat
