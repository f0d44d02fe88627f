// Those that are generators in Jinja2 are lazy: nothing happens until their items are wanted.
#include "templates/list_filters.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "templates/object.h"
#include "templates/print.h"
#include "templates/text.h"

namespace plimsoll::templates {
namespace {

/// "a.b", looked up step by step; nothing where it is none.
bool at_path(Heap& heap, const Value& value, const Value* path, Value& out) {
  out = value;
  if (path == nullptr || path->is(Kind::kNone)) return true;
  if (!path->is_string()) return item(heap, value, *path, out);
  std::string_view rest = path->string();
  while (true) {
    const size_t dot = std::min(rest.find('.'), rest.size());
    const std::string_view part = rest.substr(0, dot);
    const Value owner = out;
    if (!heap.charge(1 + part.size() / 16) || !item(heap, owner, Value::of(part), out)) return false;
    if (dot == rest.size()) return true;
    rest.remove_prefix(dot + 1);
  }
}

/// What texts are sorted and told apart by: without regard to case.
bool folded(Arguments& call, Value& key) {
  if (!key.is_string()) return true;
  std::string text;
  if (!call.heap.charge_bytes(4 * size_t{key.size})) return false;
  return append_in_case(key.string(), Case::kLower, text)
             ? call.heap.text(text, key)
             : call.fail("sorts no texts with letters whose lower case is another in other places (İ, Σ)");
}

bool first(const Value& value, Arguments& call, Value& out) {
  if (value.is_string()) {
    out = value.size == 0 ? Value::undefined_because("first of nothing")
                          : Value::of(characters(value.string(), 0, 1));
    return true;
  }
  std::span<const Value> items;
  if (!items_of(call.heap, value, items)) return false;
  out = items.empty() ? Value::undefined_because("first of nothing") : items[0];
  if (value.is(Kind::kIterator) && !items.empty()) value.iterator->at -= items.size() - 1;  // took only one
  return true;
}

bool last(const Value& value, Arguments& call, Value& out) {
  if (value.is(Kind::kIterator)) return call.fail("a generator has no last item: put |list before it");
  std::span<const Value> items;
  if (!items_of(call.heap, value, items)) return false;
  out = items.empty() ? Value::undefined_because("last of nothing") : items.back();
  return true;
}

bool num_items(const Value& value, Arguments& call, Value& out) {
  int64_t count = 0;
  if (!length(call.heap, value, count)) return false;
  out = Value::of(count);
  return true;
}

bool list(const Value& value, Arguments& call, Value& out) {
  std::span<const Value> items;
  return items_of(call.heap, value, items) && call.heap.list(items, out);
}

bool join(const Value& value, Arguments& call, Value& out) {
  std::span<const Value> items;
  Value between = Value::of(std::string_view());
  if (call.has(0) && !text_of(call.heap, *call.bound[0], between)) return false;
  if (!items_of(call.heap, value, items)) return false;
  std::string text;
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) text += between.string();
    if (!append_text(call.heap, items[i], text)) return false;
    if (!call.heap.charge(1) || !call.heap.room(text.size())) return false;
  }
  return call.heap.text(text, out);
}

bool default_value(const Value& value, Arguments& call, Value& out) {
  const bool is_missing = value.is_undefined() || (call.flag(1, false) && !truth(value));
  out = !is_missing ? value : call.has(0) ? *call.bound[0] : Value::of(std::string_view());
  return true;
}

bool items(const Value& value, Arguments& call, Value& out) {
  if (value.is_undefined()) return call.heap.list({}, out);
  if (!value.is(Kind::kDict)) return call.fail(fmt::format("expected a dict, not {}", type_name(value)));
  std::span<const Value> pairs;
  return items_of(call.heap, Value::view(value, ViewKind::kItems), pairs) && call.heap.list(pairs, out);
}

/// The items in the order of their keys, stably.
bool sorted(Heap& heap, std::vector<std::pair<Value, Value>>& keyed, Value& out) {
  bool ok = heap.charge(keyed.size());
  std::stable_sort(keyed.begin(), keyed.end(), [&](const auto& a, const auto& b) {
    bool less = false;
    ok = ok && compare(heap, Op::kLt, a.first, b.first, less);
    return ok && less;
  });
  std::vector<Value> items;
  items.reserve(keyed.size());
  for (const auto& [key, value] : keyed) items.push_back(value);
  return ok && heap.list(items, out);
}

bool sort(const Value& value, Arguments& call, Value& out) {
  std::span<const Value> all;
  const Value* path = call.bound[0];
  const bool is_several =
      path != nullptr && path->is_string() && path->string().find(',') != std::string_view::npos;
  if (!call.positional.empty() || is_several)
    return call.fail("takes one attribute, by its name: sort(attribute='x')");
  if (!items_of(call.heap, value, all)) return false;
  std::vector<std::pair<Value, Value>> keyed;
  for (const Value& one : all) {
    auto& [key, kept] = keyed.emplace_back(Value(), one);
    if (!at_path(call.heap, one, path, key) || !folded(call, key)) return false;
  }
  return sorted(call.heap, keyed, out);
}

/// Pairs of key and value, by key.
bool dictsort(const Value& value, Arguments& call, Value& out) {
  if (!value.is(Kind::kDict))
    return value.is_undefined() ? call.heap.fail(undefined_message(value))
                                : call.fail(fmt::format("expected a dict, not {}", type_name(value)));
  std::span<const Value> pairs;
  if (!items_of(call.heap, Value::view(value, ViewKind::kItems), pairs)) return false;
  std::vector<std::pair<Value, Value>> keyed;
  for (const Value& pair : pairs)
    if (!folded(call, keyed.emplace_back(pair.items[0], pair).first)) return false;
  return sorted(call.heap, keyed, out);
}

bool unique(const Value& value, Arguments& call, Value& out) {
  std::span<const Value> all;
  if (!items_of(call.heap, value, all)) return false;
  std::vector<Value> seen, kept;
  for (const Value& one : all) {
    Value key = one;
    if (!folded(call, key) || !check_key(call.heap, key)) return false;
    bool is_new = true;
    for (size_t i = 0; is_new && i < seen.size(); ++i) {
      bool same = false;
      if (!equal(call.heap, seen[i], key, same)) return false;
      is_new = !same;
    }
    if (!is_new) continue;
    seen.push_back(key);
    kept.push_back(one);
  }
  return call.heap.list(kept, out);
}

/// map(attribute="a.b"), or map("filter", arguments…).
bool map(const Value& value, Arguments& call, Value& out) {
  std::vector<Value> made;
  std::span<const Value> all;
  if (!truth(value)) return call.heap.list({}, out);
  const FilterRule* filter = nullptr;
  const bool by_attribute = call.positional.empty();
  if (by_attribute) {
    if (call.keywords.size() != 1 || call.keywords[0].name != "attribute")
      return call.fail("takes a filter's name or an attribute, and of an attribute no default");
  } else {
    if (call.positional[0].is_string()) filter = find_filter(call.positional[0].string());
    if (filter == nullptr) return call.fail("its first argument names no filter that is known");
  }
  if (!items_of(call.heap, value, all)) return false;
  for (const Value& one : all) {
    Value& result = made.emplace_back();
    if (by_attribute) {
      if (!at_path(call.heap, one, &call.keywords[0].value, result)) return false;
      continue;
    }
    Arguments inner{.heap = call.heap,
                    .name = filter->name,
                    .positional = call.positional.subspan(1),
                    .keywords = call.keywords};
    if (!apply_filter(*filter, one, inner, result)) return false;
  }
  return call.heap.list(made, out);
}

struct Selection {
  bool by_attribute = false;
  bool keeps = true;  // what the test holds for
};

bool selected(const Value& value, Arguments& call, Selection how, Value& out) {
  if (!truth(value)) return call.heap.list({}, out);
  const size_t skipped = how.by_attribute ? 1 : 0;
  if (call.positional.size() < skipped) return call.fail("needs an attribute's name");
  const TestRule* test = nullptr;
  if (call.positional.size() > skipped) {
    const Value& name = call.positional[skipped];
    if (name.is_string()) test = find_test(name.string());
    if (test == nullptr) return call.fail("names no test that is known");
  }
  std::vector<Value> kept;
  std::span<const Value> all;
  if (!items_of(call.heap, value, all)) return false;
  for (const Value& one : all) {
    Value tested;
    if (!at_path(call.heap, one, how.by_attribute ? &call.positional[0] : nullptr, tested)) return false;
    bool holds = truth(tested);
    if (test != nullptr) {
      Arguments inner{.heap = call.heap,
                      .name = test->name,
                      .positional = call.positional.subspan(skipped + 1),
                      .keywords = call.keywords};
      if (!apply_test(*test, tested, inner, holds)) return false;
    }
    if (!call.heap.charge(1)) return false;
    if (holds == how.keeps) kept.push_back(one);
  }
  return call.heap.list(kept, out);
}
bool select(const Value& value, Arguments& call, Value& out) {
  return selected(value, call, {false, true}, out);
}
bool reject(const Value& value, Arguments& call, Value& out) {
  return selected(value, call, {false, false}, out);
}
bool selectattr(const Value& value, Arguments& call, Value& out) {
  return selected(value, call, {true, true}, out);
}
bool rejectattr(const Value& value, Arguments& call, Value& out) {
  return selected(value, call, {true, false}, out);
}

constexpr FilterRule kListFilters[] = {
    {"count", num_items},
    {"d", default_value, "default_value boolean"},
    {"default", default_value, "default_value boolean"},
    {"dictsort", dictsort},
    {"first", first},
    {"items", items, "", 0, true},
    {"join", join, "d"},
    {"last", last},
    {"length", num_items},
    {"list", list},
    {"map", map, "*", 0, true},
    {"reject", reject, "*", 0, true},
    {"rejectattr", rejectattr, "*", 0, true},
    {"select", select, "*", 0, true},
    {"selectattr", selectattr, "*", 0, true},
    {"sort", sort, "attribute"},
    {"unique", unique, "", 0, true},
};

}  // namespace

std::span<const FilterRule> list_filters() { return kListFilters; }

}  // namespace plimsoll::templates
