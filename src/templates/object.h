// Python's semantics of values: truth, equality, order, membership, iteration, items, attributes, operators.
// Functions that return bool for success give false with a failure in the heap.
#pragma once

#include <span>
#include <string_view>

#include "templates/heap.h"
#include "templates/program.h"
#include "templates/value.h"

namespace plimsoll::templates {

bool truth(const Value& value);
/// len(value).
bool length(Heap& heap, const Value& value, int64_t& out);
/// a == b.
bool equal(Heap& heap, const Value& a, const Value& b, bool& out);
/// a < b and so on, == and != as well.
bool compare(Heap& heap, Op op, const Value& a, const Value& b, bool& out);
/// `item in container`.
bool contains(Heap& heap, const Value& container, const Value& item, bool& out);

/// Everything that iterating over the value gives; what is left of an iterator is used up.
bool items_of(Heap& heap, const Value& value, std::span<const Value>& out);
/// Whether iter(value) works.
bool is_iterable(const Value& value);

/// The entry of a dict; null where there is none.
const Entry* find_entry(Heap& heap, std::span<const Entry> entries, const Value& key);
const Entry* find_entry(std::span<const Entry> entries, std::string_view key);
/// Whether the value can be a key: a text, a number, a bool, none.
bool check_key(Heap& heap, const Value& key);
/// Sets an entry in an array with room for one more.
bool set_entry(Heap& heap, Entry* entries, size_t& count, const Value& key, const Value& value);

/// owner.name: a method or attribute, else an item, else undefined; an error for undefined owners. Loops'
/// attributes are the renderer's.
bool attribute(Heap& heap, const Value& owner, std::string_view name, Value& out);
/// owner[key]: an item, else an attribute, else undefined; an error for undefined owners.
bool item(Heap& heap, const Value& owner, const Value& key, Value& out);
/// owner[begin:end:step]; none where left out.
bool slice(Heap& heap, const Value& owner, const Value& begin, const Value& end, const Value& step,
           Value& out);

/// a + b, a - b, a * b, a % b of integers; texts and lists joined, texts repeated.
bool binary(Heap& heap, Op op, const Value& a, const Value& b, Value& out);
/// -a.
bool negative(Heap& heap, const Value& a, Value& out);

}  // namespace plimsoll::templates
