// The values of a template: Python's, as far as a sandboxed template can see them. A value is 16 bytes; what
// it points at lives in the render's Heap, in the record or in the template, is never freed before the render
// ends, and never changes, namespaces and iterators aside.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace plimsoll::templates {

enum class Kind : uint8_t {
  kUndefined,
  kNone,
  kBool,
  kInt,
  kFloat,
  kString,
  kList,
  kTuple,
  kDict,
  kView,      ///< dict.keys(), values(), items()
  kIterator,  ///< what generators are in Python: goes through once
  kRange,
  kNamespace,
  kFunction,
  kMethod,
  kMacro,
  kLoop,
};

enum class ViewKind : uint8_t { kKeys, kValues, kItems };
enum class Function : uint8_t { kRaiseException, kStrftimeNow, kRange, kNamespace, kDict };

struct Entry;
struct Range;
struct Namespace;
struct Iterator;
struct BoundMethod;
struct Macro;
struct Loop;

struct Value {
  Kind kind = Kind::kUndefined;
  /// kView: its ViewKind; kFunction: which; kUndefined: what of (see undefined_of).
  uint8_t detail = 0;
  uint32_t size = 0;  ///< bytes of a string, items of a list, tuple, dict, view
  union {
    const char* text;  ///< kString; kUndefined: the name, or the message
    bool boolean;
    int64_t integer;
    double number;
    const Value* items;
    const Entry* entries;  ///< kDict, kView
    const Range* range;
    Namespace* ns;
    Iterator* iterator;
    const BoundMethod* method;
    const Macro* macro;
    Loop* loop;
  };

  Value() : text(nullptr) {}
  static Value none() { return of_kind(Kind::kNone); }
  static Value of(bool value) {
    Value v = of_kind(Kind::kBool);
    v.boolean = value;
    return v;
  }
  static Value of(int64_t value) {
    Value v = of_kind(Kind::kInt);
    v.integer = value;
    return v;
  }
  static Value of(double value) {
    Value v = of_kind(Kind::kFloat);
    v.number = value;
    return v;
  }
  /// Does not copy; the text must outlive the render and be shorter than 4 GiB.
  static Value of(std::string_view value) {
    Value v = of_kind(Kind::kString);
    v.text = value.data();
    v.size = static_cast<uint32_t>(value.size());
    return v;
  }
  static Value of(Function function) {
    Value v = of_kind(Kind::kFunction);
    v.detail = static_cast<uint8_t>(function);
    return v;
  }
  static Value list(const Value* items, size_t count, Kind kind = Kind::kList) {
    Value v = of_kind(kind);
    v.items = items;
    v.size = static_cast<uint32_t>(count);
    return v;
  }
  static Value dict(const Entry* entries, size_t count) {
    Value v = of_kind(Kind::kDict);
    v.entries = entries;
    v.size = static_cast<uint32_t>(count);
    return v;
  }
  static Value view(const Value& dict, ViewKind which) {
    Value v = dict;
    v.kind = Kind::kView;
    v.detail = static_cast<uint8_t>(which);
    return v;
  }
  /// A name that nothing is known of.
  static Value undefined(std::string_view name) {
    Value v = of(name);
    v.kind = Kind::kUndefined;
    return v;
  }
  /// An attribute or item that a value of kind `owner` has not.
  static Value undefined_of(Kind owner, std::string_view name) {
    Value v = undefined(name);
    v.detail = static_cast<uint8_t>(1 + static_cast<uint8_t>(owner));
    return v;
  }
  /// Undefined, with the message to give where it is used.
  static Value undefined_because(std::string_view message) {
    Value v = undefined(message);
    v.detail = 255;
    return v;
  }

  [[nodiscard]] bool is(Kind k) const { return kind == k; }
  [[nodiscard]] bool is_undefined() const { return kind == Kind::kUndefined; }
  [[nodiscard]] bool is_string() const { return kind == Kind::kString; }
  [[nodiscard]] bool is_list_like() const { return kind == Kind::kList || kind == Kind::kTuple; }
  /// True, false and integers: what counts as an int in Python.
  [[nodiscard]] bool is_integral() const { return kind == Kind::kInt || kind == Kind::kBool; }
  [[nodiscard]] bool is_number() const { return is_integral() || kind == Kind::kFloat; }
  [[nodiscard]] int64_t as_integer() const { return kind == Kind::kBool ? boolean : integer; }
  [[nodiscard]] double as_number() const {
    return kind == Kind::kFloat ? number : static_cast<double>(as_integer());
  }
  [[nodiscard]] std::string_view string() const { return {text, size}; }
  [[nodiscard]] std::span<const Value> list_items() const { return {items, size}; }
  [[nodiscard]] std::span<const Entry> dict_entries() const;

 private:
  static Value of_kind(Kind k) {
    Value v;
    v.kind = k;
    return v;
  }
};

struct Entry {
  Value key;
  Value value;
};
inline std::span<const Entry> Value::dict_entries() const { return {entries, size}; }

struct Range {
  int64_t start = 0;
  int64_t stop = 0;
  int64_t step = 1;
  int64_t count = 0;
  /// The number at an index; it wraps where that is beyond 64 bits.
  [[nodiscard]] int64_t at(int64_t index) const {
    return static_cast<int64_t>(static_cast<uint64_t>(start) +
                                static_cast<uint64_t>(index) * static_cast<uint64_t>(step));
  }
};

struct Namespace {
  Entry* entries = nullptr;
  uint32_t size = 0;
  uint32_t capacity = 0;
};

/// A keyword argument.
struct Keyword {
  std::string_view name;
  Value value;
};

struct FilterCall;

/// Items to come; computed by a filter when they are first wanted, as a generator does.
struct Iterator {
  const FilterCall* pending = nullptr;
  std::span<const Value> items = {};
  size_t at = 0;
};

struct MethodRule;
struct BoundMethod {
  Value self;
  const MethodRule* rule = nullptr;
};

}  // namespace plimsoll::templates
