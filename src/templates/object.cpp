// Truth, comparison and containers. What nests is followed to a limited depth.
#include "templates/object.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "templates/print.h"
#include "templates/rules.h"
#include "templates/text.h"

namespace plimsoll::templates {
namespace {

constexpr int kMaxNesting = 200;

bool equal_at(Heap& heap, const Value& a, const Value& b, int depth, bool& out);

bool equal_items(Heap& heap, std::span<const Value> a, std::span<const Value> b, int depth, bool& out) {
  out = a.size() == b.size();
  for (size_t i = 0; out && i < a.size(); ++i)
    if (!equal_at(heap, a[i], b[i], depth, out)) return false;
  return true;
}

bool equal_entries(Heap& heap, const Value& a, const Value& b, int depth, bool& out) {
  out = a.size == b.size;
  for (uint32_t i = 0; out && i < a.size; ++i) {
    const Entry* other = find_entry(heap, b.dict_entries(), a.entries[i].key);
    out = other != nullptr;
    if (out && !equal_at(heap, a.entries[i].value, other->value, depth, out)) return false;
  }
  return !heap.failed();
}

bool equal_at(Heap& heap, const Value& a, const Value& b, int depth, bool& out) {
  if (depth > kMaxNesting) return heap.fail("values nested too deep to be compared");
  if (!heap.charge(1)) return false;
  out = false;
  if (a.is_number() && b.is_number()) {
    out = a.is_integral() && b.is_integral() ? a.as_integer() == b.as_integer()
                                             : a.as_number() == b.as_number();
    return true;
  }
  if (a.kind != b.kind) return true;
  switch (a.kind) {
    case Kind::kUndefined:
    case Kind::kNone:
      out = true;
      return true;
    case Kind::kString:
      if (a.size == b.size && !heap.charge_bytes(a.size)) return false;
      out = a.string() == b.string();
      return true;
    case Kind::kList:
    case Kind::kTuple:
      return equal_items(heap, a.list_items(), b.list_items(), depth + 1, out);
    case Kind::kDict:
      return equal_entries(heap, a, b, depth + 1, out);
    case Kind::kFunction:
      out = a.detail == b.detail;
      return true;
    default:
      out = a.items == b.items;  // the same object
      return true;
  }
}

bool cannot_order(Heap& heap, Op op, const Value& a, const Value& b) {
  for (const Value* value : {&a, &b})
    if (value->is_undefined()) return heap.fail(undefined_message(*value));
  constexpr std::string_view kComparisons[] = {"<", "<=", ">", ">="};
  return heap.fail(fmt::format("'{}' is not possible between {} and {}",
                               kComparisons[static_cast<size_t>(op) - static_cast<size_t>(Op::kLt)],
                               type_name(a), type_name(b)));
}

bool holds(Op op, int order) {
  switch (op) {
    case Op::kLt:
      return order < 0;
    case Op::kLe:
      return order <= 0;
    case Op::kGt:
      return order > 0;
    default:
      return order >= 0;
  }
}

bool order(Heap& heap, Op op, const Value& a, const Value& b, bool& out) {
  if (!heap.charge(1)) return false;
  if (a.is_integral() && b.is_integral()) {
    out = holds(op, a.as_integer() < b.as_integer() ? -1 : a.as_integer() > b.as_integer());
    return true;
  }
  if (a.is_number() && b.is_number()) {
    const double x = a.as_number(), y = b.as_number();
    out = op == Op::kLt ? x < y : op == Op::kLe ? x <= y : op == Op::kGt ? x > y : x >= y;
    return true;
  }
  if (!a.is_string() || !b.is_string()) return cannot_order(heap, op, a, b);
  out = holds(op, a.string().compare(b.string()));  // UTF-8 sorts as its code points
  return heap.charge_bytes(std::min(a.size, b.size));
}

bool pair(Heap& heap, const Entry& entry, Value& out) {
  const Value both[] = {entry.key, entry.value};
  return heap.list(both, out, Kind::kTuple);
}

bool expand(Heap& heap, size_t count, Value*& items) {
  items = heap.array<Value>(count);
  return items != nullptr && heap.charge(count);
}

bool items_of_string(Heap& heap, std::string_view text, std::span<const Value>& out) {
  const size_t count = num_characters(text);
  Value* items = nullptr;
  if (!expand(heap, count, items)) return false;
  for (size_t i = 0, at = 0; i < count; ++i) {
    const size_t length = offset_of(text.substr(at), 1);
    items[i] = Value::of(text.substr(at, length));
    at += length;
  }
  out = {items, count};
  return true;
}

bool items_of_entries(Heap& heap, const Value& value, ViewKind which, std::span<const Value>& out) {
  Value* items = nullptr;
  if (!expand(heap, value.size, items)) return false;
  for (uint32_t i = 0; i < value.size; ++i) {
    const Entry& entry = value.entries[i];
    items[i] = which == ViewKind::kValues ? entry.value : entry.key;
    if (which == ViewKind::kItems && !pair(heap, entry, items[i])) return false;
  }
  out = {items, value.size};
  return true;
}

bool items_of_range(Heap& heap, const Range& range, std::span<const Value>& out) {
  const auto count = static_cast<size_t>(range.count);
  Value* items = nullptr;
  if (!expand(heap, count, items)) return false;
  for (size_t i = 0; i < count; ++i) items[i] = Value::of(range.at(static_cast<int64_t>(i)));
  out = {items, count};
  return true;
}

bool items_of_iterator(Heap& heap, Iterator& iterator, std::span<const Value>& out) {
  if (iterator.pending != nullptr) {
    const FilterCall call = *iterator.pending;
    iterator.pending = nullptr;
    Arguments arguments = call.arguments;
    Value made;
    if (!heap.enter_filter()) return false;
    const bool ok = call.rule->apply(call.value, arguments, made);
    heap.leave_filter();
    if (!ok) return false;
    iterator.items = made.list_items();
  }
  out = iterator.items.subspan(iterator.at);
  iterator.at = iterator.items.size();
  return true;
}

}  // namespace

bool truth(const Value& value) {
  switch (value.kind) {
    case Kind::kUndefined:
    case Kind::kNone:
      return false;
    case Kind::kBool:
      return value.boolean;
    case Kind::kInt:
      return value.integer != 0;
    case Kind::kFloat:
      return value.number != 0;
    case Kind::kString:
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kDict:
    case Kind::kView:
      return value.size != 0;
    case Kind::kRange:
      return value.range->count != 0;
    default:
      return true;
  }
}

bool length(Heap& heap, const Value& value, int64_t& out) {
  switch (value.kind) {
    case Kind::kUndefined:
      out = 0;
      return true;
    case Kind::kString:
      out = static_cast<int64_t>(num_characters(value.string()));
      return heap.charge_bytes(value.size);
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kDict:
    case Kind::kView:
      out = value.size;
      return true;
    case Kind::kRange:
      out = value.range->count;
      return true;
    default:
      return heap.fail(fmt::format("a {} has no length{}", type_name(value),
                                   value.is(Kind::kIterator) ? ": put |list after it" : ""));
  }
}

bool equal(Heap& heap, const Value& a, const Value& b, bool& out) { return equal_at(heap, a, b, 0, out); }

bool compare(Heap& heap, Op op, const Value& a, const Value& b, bool& out) {
  if (op != Op::kEq && op != Op::kNe) return order(heap, op, a, b, out);
  if (!equal(heap, a, b, out)) return false;
  out = out == (op == Op::kEq);
  return true;
}

bool check_key(Heap& heap, const Value& key) {
  if (key.is_undefined()) return heap.fail(undefined_message(key));
  return key.is_string() || key.is_number() || key.is(Kind::kNone) ||
         heap.fail(fmt::format("a {} cannot be a key here", type_name(key)));
}

const Entry* find_entry(std::span<const Entry> entries, std::string_view key) {
  for (const Entry& entry : entries)
    if (entry.key.is_string() && entry.key.size == key.size() &&
        std::memcmp(entry.key.text, key.data(), key.size()) == 0)
      return &entry;
  return nullptr;
}

const Entry* find_entry(Heap& heap, std::span<const Entry> entries, const Value& key) {
  if (!heap.charge(entries.size() / 8)) return nullptr;
  if (key.is_string()) {
    constexpr size_t kLong = 64;
    if (key.size > kLong &&
        !heap.charge_bytes(key.size * static_cast<size_t>(std::count_if(entries.begin(), entries.end(),
                                                                        [&key](const Entry& entry) {
                                                                          return entry.key.size == key.size;
                                                                        }))))
      return nullptr;
    return find_entry(entries, key.string());
  }
  for (const Entry& entry : entries) {
    bool same = false;
    if (!equal(heap, entry.key, key, same)) return nullptr;
    if (same) return &entry;
  }
  return nullptr;
}

bool set_entry(Heap& heap, Entry* entries, size_t& count, const Value& key, const Value& value) {
  if (!check_key(heap, key)) return false;
  if (const Entry* there = find_entry(heap, {entries, count}, key))
    entries[there - entries].value = value;
  else
    entries[count++] = {key, value};
  return !heap.failed();
}

bool contains(Heap& heap, const Value& container, const Value& item, bool& out) {
  out = false;
  switch (container.kind) {
    case Kind::kString:
      if (!item.is_string())
        return heap.fail(fmt::format("'in' a text needs a text on the left, not {}", type_name(item)));
      if (!heap.charge(search_steps(container.string(), item.string()))) return false;
      out = find_first(container.string(), item.string()) != std::string_view::npos;
      return true;
    case Kind::kDict:
    case Kind::kView:
      if (container.is(Kind::kDict) || static_cast<ViewKind>(container.detail) == ViewKind::kKeys) {
        if (!item.is_undefined() && !check_key(heap, item)) return false;
        out = find_entry(heap, container.dict_entries(), item) != nullptr;
        return !heap.failed();
      }
      break;
    case Kind::kUndefined:
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kRange:
    case Kind::kIterator:
      break;
    default:
      return heap.fail(fmt::format("'in' a {} is not possible", type_name(container)));
  }
  std::span<const Value> items;
  if (!items_of(heap, container, items)) return false;
  for (const Value& candidate : items) {
    if (!equal(heap, candidate, item, out)) return false;
    if (out) return true;
  }
  return true;
}

bool is_iterable(const Value& value) {
  switch (value.kind) {
    case Kind::kUndefined:
    case Kind::kString:
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kDict:
    case Kind::kView:
    case Kind::kIterator:
    case Kind::kRange:
    case Kind::kLoop:
      return true;
    default:
      return false;
  }
}

bool items_of(Heap& heap, const Value& value, std::span<const Value>& out) {
  switch (value.kind) {
    case Kind::kUndefined:
      out = {};
      return true;
    case Kind::kString:
      return items_of_string(heap, value.string(), out);
    case Kind::kList:
    case Kind::kTuple:
      out = value.list_items();
      return true;
    case Kind::kDict:
      return items_of_entries(heap, value, ViewKind::kKeys, out);
    case Kind::kView:
      return items_of_entries(heap, value, static_cast<ViewKind>(value.detail), out);
    case Kind::kIterator:
      return items_of_iterator(heap, *value.iterator, out);
    case Kind::kRange:
      return items_of_range(heap, *value.range, out);
    default:
      return heap.fail(fmt::format("a {} cannot be iterated over", type_name(value)));
  }
}

}  // namespace plimsoll::templates
