// Attributes, items and slices.
#include <fmt/format.h>

#include <algorithm>

#include "templates/object.h"
#include "templates/print.h"
#include "templates/refused.h"
#include "templates/rules.h"
#include "templates/text.h"

namespace plimsoll::templates {
namespace {

Value undefined_item(Heap& heap, const Value& owner, const Value& key) {
  if (key.is_string()) return Value::undefined_of(owner.kind, key.string());
  Value name;
  std::string text;
  if (!append_repr(heap, key, text) || !heap.text(text, name)) return {};
  return Value::undefined_of(owner.kind, name.string());
}

/// A sequence's element at a Python index; false where there is none.
bool element(const Value& owner, int64_t index, Value& out) {
  if (owner.is(Kind::kRange)) {
    if (index < 0) index += owner.range->count;
    if (index < 0 || index >= owner.range->count) return false;
    out = Value::of(owner.range->at(index));
    return true;
  }
  const bool is_text = owner.is_string();
  if (!is_text && !owner.is_list_like()) return false;
  const bool in_bytes = !is_text || is_ascii(owner.string());
  const auto count = static_cast<int64_t>(in_bytes ? owner.size : num_characters(owner.string()));
  if (index < 0) index += count;
  if (index < 0 || index >= count) return false;
  const auto at = static_cast<size_t>(index);
  if (!is_text)
    out = owner.items[at];
  else
    out = Value::of(in_bytes ? owner.string().substr(at, 1) : characters(owner.string(), at, at + 1));
  return true;
}

/// A method of the value by its name, undefined with the reason where it is refused; false where it has none.
bool method(Heap& heap, const Value& owner, std::string_view name, Value& out) {
  const MethodRule* rule = find_method(owner.kind, name);
  if (rule == nullptr) {
    const std::string why = no_method(owner.kind, name);
    if (why.empty()) return false;
    Value message;
    heap.text(why, message);
    out = Value::undefined_because(message.string());
    return true;
  }
  auto* bound = heap.array<BoundMethod>(1);
  if (bound == nullptr) return true;
  bound->self = owner;
  bound->rule = rule;
  out = Value();
  out.kind = Kind::kMethod;
  out.method = bound;
  return true;
}

struct SliceRange {
  int64_t begin = 0;
  int64_t stop = 0;
  int64_t count = 0;
  int64_t step = 1;
};

/// Python's slice.indices.
bool slice_range(Heap& heap, int64_t size, const Value& begin, const Value& end, const Value& step,
                 SliceRange& out) {
  for (const Value* bound : {&begin, &end, &step})
    if (!bound->is(Kind::kNone) && !bound->is_integral())
      return heap.fail("slice indices must be integers or none");
  out.step = step.is(Kind::kNone) ? 1 : step.as_integer();
  if (out.step == 0) return heap.fail("slice step cannot be zero");
  const bool down = out.step < 0;
  const auto bounded = [&](const Value& bound, int64_t otherwise) {
    if (bound.is(Kind::kNone)) return otherwise;
    int64_t at = bound.as_integer();
    if (at < 0) at = at < -size ? -1 - (down ? 0 : -1) : at + size;
    return std::clamp<int64_t>(at, down ? -1 : 0, down ? size - 1 : size);
  };
  out.begin = bounded(begin, down ? size - 1 : 0);
  out.stop = bounded(end, down ? -1 : size);
  const int64_t distance = down ? out.begin - out.stop : out.stop - out.begin;
  const auto pace = down ? 0 - static_cast<uint64_t>(out.step) : static_cast<uint64_t>(out.step);
  out.count = distance <= 0 ? 0 : static_cast<int64_t>((static_cast<uint64_t>(distance) - 1) / pace) + 1;
  return true;
}

bool slice_string(Heap& heap, const Value& owner, const SliceRange& range, Value& out) {
  if (range.step == 1) {
    const auto begin = static_cast<size_t>(range.begin), count = static_cast<size_t>(range.count);
    out = Value::of(is_ascii(owner.string()) ? owner.string().substr(begin, count)
                                             : characters(owner.string(), begin, begin + count));
    return heap.charge_bytes(owner.size);
  }
  std::span<const Value> letters;
  if (!items_of(heap, owner, letters)) return false;
  std::string text;
  for (int64_t i = 0; i < range.count; ++i)
    text += letters[static_cast<size_t>(range.begin + i * range.step)].string();
  return heap.text(text, out);
}

}  // namespace

bool attribute(Heap& heap, const Value& owner, std::string_view name, Value& out) {
  if (owner.is(Kind::kNamespace)) {
    const Entry* entry = find_entry(heap, {owner.ns->entries, owner.ns->size}, Value::of(name));
    if (heap.failed()) return false;
    out = entry != nullptr ? entry->value : Value::undefined_of(owner.kind, name);
    return true;
  }
  if (owner.is_undefined()) return heap.fail(undefined_message(owner));
  if (method(heap, owner, name, out)) return !heap.failed();
  const Entry* entry = nullptr;
  if (owner.is(Kind::kDict)) {
    entry = find_entry(heap, owner.dict_entries(), Value::of(name));
    if (heap.failed()) return false;
  }
  out = entry != nullptr ? entry->value : Value::undefined_of(owner.kind, name);
  return true;
}

bool item(Heap& heap, const Value& owner, const Value& key, Value& out) {
  if (owner.is_undefined()) return heap.fail(undefined_message(owner));
  if (owner.is(Kind::kDict)) {
    if (!key.is_list_like() && !key.is(Kind::kDict))
      if (const Entry* entry = find_entry(heap, owner.dict_entries(), key)) {
        out = entry->value;
        return true;
      }
    if (heap.failed()) return false;
  } else if (key.is_integral() && element(owner, key.as_integer(), out)) {
    return heap.charge_bytes(owner.is_string() ? owner.size : 0);
  }
  if (key.is_string() && !owner.is(Kind::kDict)) return attribute(heap, owner, key.string(), out);
  if (key.is_string() && method(heap, owner, key.string(), out)) return !heap.failed();
  out = undefined_item(heap, owner, key);
  return !heap.failed();
}

bool slice(Heap& heap, const Value& owner, const Value& begin, const Value& end, const Value& step,
           Value& out) {
  if (owner.is_undefined()) return heap.fail(undefined_message(owner));
  if (!owner.is_string() && !owner.is_list_like())
    return heap.fail(fmt::format("a {} cannot be sliced", type_name(owner)));
  int64_t size = 0;
  SliceRange range;
  if (!length(heap, owner, size) || !slice_range(heap, size, begin, end, step, range)) return false;
  if (owner.is_string()) return slice_string(heap, owner, range, out);
  if (range.step == 1) {
    out = Value::list(owner.items + range.begin, static_cast<size_t>(range.count), owner.kind);
    return true;
  }
  Value* items = heap.array<Value>(static_cast<size_t>(range.count));
  if (items == nullptr || !heap.charge(static_cast<size_t>(range.count))) return false;
  for (int64_t i = 0; i < range.count; ++i) items[i] = owner.items[range.begin + i * range.step];
  out = Value::list(items, static_cast<size_t>(range.count), owner.kind);
  return true;
}

}  // namespace plimsoll::templates
