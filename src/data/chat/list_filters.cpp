// Those that are generators in Jinja2 are lazy: nothing happens until their items are wanted.
#include "data/chat/list_filters.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "data/chat/object.h"
#include "data/chat/print.h"
#include "data/chat/text.h"

namespace plimsoll::chat {
namespace {

/// "a.0.b" or an index, looked up step by step; nothing where it is none.
bool at_path(Heap& heap, const Value& value, const Value* path, Value& out,
             const Value* otherwise = nullptr) {
  out = value;
  if (path == nullptr || path->is(Kind::kNone)) return true;
  if (!path->is_string()) return item(heap, value, *path, out);
  std::string_view rest = path->string();
  while (true) {
    const size_t dot = std::min(rest.find('.'), rest.size());
    const std::string_view part = rest.substr(0, dot);
    int64_t index = 0;
    const auto read = std::from_chars(part.data(), part.data() + part.size(), index);
    const bool is_index =
        !part.empty() && part[0] != '-' && read.ptr == part.data() + part.size() && read.ec == std::errc();
    const Value owner = out;
    if (!heap.charge(1 + part.size() / 16)) return false;
    if (!item(heap, owner, is_index ? Value::of(index) : Value::of(part), out)) return false;
    if (otherwise != nullptr && out.is_undefined()) out = *otherwise;
    if (dot == rest.size()) return true;
    rest.remove_prefix(dot + 1);
  }
}

bool folded(Heap& heap, bool case_sensitive, Value& key) {
  if (case_sensitive || !key.is_string()) return true;
  return heap.charge_bytes(4 * size_t{key.size}) && heap.text(in_case(key.string(), Case::kLower), key);
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
    Value part;
    if (i > 0) text += between.string();
    if (!at_path(call.heap, items[i], call.bound[1], part) || !append_text(call.heap, part, text))
      return false;
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

bool reverse(const Value& value, Arguments& call, Value& out) {
  if (value.is(Kind::kIterator) || value.is(Kind::kNone)) {
    std::span<const Value> all;
    if (!items_of(call.heap, value, all) || !call.heap.list(all, out)) return false;
    std::reverse(const_cast<Value*>(out.items), const_cast<Value*>(out.items) + out.size);  // made just now
    return true;
  }
  if (value.is_string())
    return slice(call.heap, value, Value::none(), Value::none(), Value::of(int64_t{-1}), out);
  std::span<const Value> all;
  Value copy;
  if (!items_of(call.heap, value, all) || !call.heap.list(all, copy)) return false;
  std::reverse(const_cast<Value*>(copy.items), const_cast<Value*>(copy.items) + copy.size);
  return call.heap.iterator(copy.list_items(), out);
}

/// Sorts items by keys, stably, descending where reversed.
bool sort_by(Heap& heap, std::vector<std::pair<Value, Value>>& keyed, bool reversed) {
  bool ok = heap.charge(keyed.size());
  std::stable_sort(keyed.begin(), keyed.end(), [&](const auto& a, const auto& b) {
    bool less = false;
    ok = ok && compare(heap, Op::kLt, reversed ? b.first : a.first, reversed ? a.first : b.first, less);
    return ok && less;
  });
  return ok;
}

bool list_of_seconds(Heap& heap, const std::vector<std::pair<Value, Value>>& keyed, Value& out) {
  std::vector<Value> items;
  items.reserve(keyed.size());
  for (const auto& [key, value] : keyed) items.push_back(value);
  return heap.list(items, out);
}

/// The attributes to sort by, "a,b" being several, as a list.
bool sort_key(Heap& heap, const Value& value, const Value* path, bool case_sensitive, Value& out) {
  std::vector<Value> keys;
  std::string_view rest = path != nullptr && path->is_string() ? path->string() : std::string_view();
  do {
    const size_t comma = std::min(rest.find(','), rest.size());
    const Value part = Value::of(rest.substr(0, comma));
    const bool is_text = path != nullptr && path->is_string();
    if (!at_path(heap, value, is_text ? &part : path, keys.emplace_back()) ||
        !folded(heap, case_sensitive, keys.back()))
      return false;
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  } while (!rest.empty());
  if (keys.size() == 1) return out = keys[0], true;
  return heap.list(keys, out);
}

bool sort(const Value& value, Arguments& call, Value& out) {
  std::span<const Value> all;
  if (!items_of(call.heap, value, all)) return false;
  std::vector<std::pair<Value, Value>> keyed;
  for (const Value& one : all) {
    auto& [key, kept] = keyed.emplace_back(Value(), one);
    if (!sort_key(call.heap, one, call.bound[2], call.flag(1, false), key)) return false;
  }
  return sort_by(call.heap, keyed, call.flag(0, false)) && list_of_seconds(call.heap, keyed, out);
}

bool dictsort(const Value& value, Arguments& call, Value& out) {
  std::string_view by;
  if (!value.is(Kind::kDict))
    return value.is_undefined() ? call.heap.fail(undefined_message(value))
                                : call.fail(fmt::format("expected a dict, not {}", type_name(value)));
  if (!call.string(1, "key", by)) return false;
  if (by != "key" && by != "value") return call.fail("sorts by 'key' or 'value'");
  std::span<const Value> pairs;
  if (!items_of(call.heap, Value::view(value, ViewKind::kItems), pairs)) return false;
  std::vector<std::pair<Value, Value>> keyed;
  for (const Value& pair : pairs) {
    auto& [key, kept] = keyed.emplace_back(pair.items[by == "key" ? 0 : 1], pair);
    if (!folded(call.heap, call.flag(0, false), key)) return false;
  }
  return sort_by(call.heap, keyed, call.flag(2, false)) && list_of_seconds(call.heap, keyed, out);
}

bool unique(const Value& value, Arguments& call, Value& out) {
  std::span<const Value> all;
  if (!items_of(call.heap, value, all)) return false;
  std::vector<Value> seen, kept;
  for (const Value& one : all) {
    Value key;
    if (!at_path(call.heap, one, call.bound[1], key) || !folded(call.heap, call.flag(0, false), key) ||
        !check_hashable(call.heap, key))
      return false;
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

bool extreme(const Value& value, Arguments& call, Op op, Value& out) {
  std::span<const Value> all;
  if (!items_of(call.heap, value, all)) return false;
  out = Value::undefined_because("the extreme of nothing");
  Value best;
  for (size_t i = 0; i < all.size(); ++i) {
    Value key;
    bool better = i == 0;
    if (!at_path(call.heap, all[i], call.bound[1], key) || !folded(call.heap, call.flag(0, false), key))
      return false;
    if (i > 0 && !compare(call.heap, op, key, best, better)) return false;
    if (!better) continue;
    best = key;
    out = all[i];
  }
  return true;
}
bool min(const Value& value, Arguments& call, Value& out) { return extreme(value, call, Op::kLt, out); }
bool max(const Value& value, Arguments& call, Value& out) { return extreme(value, call, Op::kGt, out); }

bool sum(const Value& value, Arguments& call, Value& out) {
  std::span<const Value> all;
  if (!items_of(call.heap, value, all)) return false;
  out = call.has(1) ? *call.bound[1] : Value::of(int64_t{0});
  if (out.is_string()) return call.fail("texts are joined, not summed");
  for (const Value& one : all) {
    Value part;
    if (!at_path(call.heap, one, call.bound[0], part)) return false;
    const Value before = out;
    if (!binary(call.heap, Op::kAdd, before, part, out)) return false;
  }
  return true;
}

/// map(attribute="a.b", default=x), or map("filter", arguments…).
bool map(const Value& value, Arguments& call, Value& out) {
  std::vector<Value> made;
  std::span<const Value> all;
  if (!truth(value)) return call.heap.list({}, out);
  const Value* path = nullptr;
  const Value* otherwise = nullptr;
  const FilterRule* filter = nullptr;
  if (call.positional.empty()) {
    for (const Keyword& keyword : call.keywords) {
      if (keyword.name != "attribute" && keyword.name != "default")
        return call.fail(fmt::format("has no argument '{}'", keyword.name));
      if (keyword.name == "default" && keyword.value.is(Kind::kNone)) continue;
      (keyword.name == "attribute" ? path : otherwise) = &keyword.value;
    }
    if (path == nullptr) return call.fail("needs a filter's name or an attribute");
  } else {
    if (call.positional[0].is_string()) filter = find_filter(call.positional[0].string());
    if (filter == nullptr) return call.fail("its first argument names no filter that is known");
  }
  if (!items_of(call.heap, value, all)) return false;
  for (const Value& one : all) {
    Value& result = made.emplace_back();
    if (filter != nullptr) {
      Arguments inner{.heap = call.heap,
                      .name = filter->name,
                      .positional = call.positional.subspan(1),
                      .keywords = call.keywords};
      if (!apply_filter(*filter, one, inner, result)) return false;
    } else if (!at_path(call.heap, one, path, result, otherwise)) {
      return false;
    }
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

bool batch(const Value& value, Arguments& call, Value& out) {
  int64_t size = 0;
  std::span<const Value> all;
  if (!call.integer(0, 0, size) || !items_of(call.heap, value, all)) return false;
  if (size <= 0) return call.fail("a batch needs a positive size");
  const Value* filler = call.has(1) && !call.bound[1]->is(Kind::kNone) ? call.bound[1] : nullptr;
  std::vector<Value> made;
  while (!all.empty()) {
    const size_t count = std::min(all.size(), static_cast<size_t>(size));
    std::vector<Value> part(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count));
    all = all.subspan(count);
    if (filler != nullptr) {
      if (!call.heap.charge(static_cast<size_t>(size)) ||
          !call.heap.room(static_cast<size_t>(size) * sizeof(Value)))
        return false;
      part.resize(static_cast<size_t>(size), *filler);
    }
    if (!call.heap.list(part, made.emplace_back())) return false;
  }
  return call.heap.list(made, out);
}

bool attr(const Value& value, Arguments& call, Value& out) {
  std::string_view name;
  if (!call.string(0, {}, name)) return false;
  if (value.is(Kind::kDict) && find_method(Kind::kDict, name) == nullptr) {
    out = Value::undefined_of(value.kind, name);
    return true;
  }
  return attribute(call.heap, value, name, out);
}

constexpr FilterRule kRules[] = {
    {"attr", attr, "name", 1},
    {"batch", batch, "linecount fill_with", 1, true},
    {"count", num_items},
    {"d", default_value, "default_value boolean"},
    {"default", default_value, "default_value boolean"},
    {"dictsort", dictsort, "case_sensitive by reverse"},
    {"first", first},
    {"items", items, "", 0, true},
    {"join", join, "d attribute"},
    {"last", last},
    {"length", num_items},
    {"list", list},
    {"map", map, "*", 0, true},
    {"max", max, "case_sensitive attribute"},
    {"min", min, "case_sensitive attribute"},
    {"reject", reject, "*", 0, true},
    {"rejectattr", rejectattr, "*", 0, true},
    {"reverse", reverse},
    {"select", select, "*", 0, true},
    {"selectattr", selectattr, "*", 0, true},
    {"sort", sort, "reverse case_sensitive attribute"},
    {"sum", sum, "attribute start"},
    {"unique", unique, "case_sensitive attribute", 0, true},
};

}  // namespace

std::span<const FilterRule> list_filters() { return kRules; }

}  // namespace plimsoll::chat
