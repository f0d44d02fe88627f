// Recursive over nested values, hence the limit on depth; every value printed counts as a step.
#include "templates/print.h"

#include <fmt/format.h>

#include <cmath>

#include "templates/object.h"
#include "templates/text.h"

namespace plimsoll::templates {
namespace {

constexpr int kMaxPrinted = 200;

bool repr(Heap& heap, const Value& value, int depth, std::string& out);

bool repr_items(Heap& heap, std::span<const Value> items, int depth, std::string& out) {
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out += ", ";
    if (!repr(heap, items[i], depth, out)) return false;
  }
  return true;
}

bool repr_entries(Heap& heap, std::span<const Entry> entries, int depth, std::string& out) {
  out.push_back('{');
  for (size_t i = 0; i < entries.size(); ++i) {
    if (i > 0) out += ", ";
    if (!repr(heap, entries[i].key, depth, out)) return false;
    out += ": ";
    if (!repr(heap, entries[i].value, depth, out)) return false;
  }
  out.push_back('}');
  return true;
}

bool repr(Heap& heap, const Value& value, int depth, std::string& out) {
  if (depth > kMaxPrinted) return heap.fail("a value nested too deep to be printed");
  if (!heap.charge(1) || !heap.room(out.size())) return false;
  switch (value.kind) {
    case Kind::kUndefined:
      out += "Undefined";
      return true;
    case Kind::kString:
      if (!heap.charge_bytes(value.size)) return false;
      append_quoted(value.string(), out);
      return true;
    case Kind::kList:
      out.push_back('[');
      if (!repr_items(heap, value.list_items(), depth + 1, out)) return false;
      out.push_back(']');
      return true;
    case Kind::kTuple:
      out.push_back('(');
      if (!repr_items(heap, value.list_items(), depth + 1, out)) return false;
      out += value.size == 1 ? ",)" : ")";
      return true;
    case Kind::kDict:
      return repr_entries(heap, value.dict_entries(), depth + 1, out);
    default:
      return append_text(heap, value, out);
  }
}

class JsonPrinter {
 public:
  JsonPrinter(Heap& heap, const JsonStyle& style, std::string& out) : heap_(heap), style_(style), out_(out) {}

  bool print(const Value& value, int depth) {
    if (depth > kMaxPrinted) return heap_.fail("tojson: a value nested too deep");
    if (!heap_.charge(1) || !heap_.room(out_.size())) return false;
    switch (value.kind) {
      case Kind::kNone:
        out_ += "null";
        return true;
      case Kind::kBool:
        out_ += value.boolean ? "true" : "false";
        return true;
      case Kind::kInt:
        out_ += std::to_string(value.integer);
        return true;
      case Kind::kFloat:
        number(value.number);
        return true;
      case Kind::kString:
        return string(value.string());
      case Kind::kList:
      case Kind::kTuple:
        return list(value.list_items(), depth);
      case Kind::kDict:
        return dict(value.dict_entries(), depth);
      default:
        return heap_.fail(fmt::format("tojson: an object of type {} has no JSON", type_name(value)));
    }
  }

 private:
  bool string(std::string_view text) {
    if (!heap_.charge_bytes(text.size())) return false;
    append_json_string(text, style_.ascii_only, out_);
    return true;
  }
  void number(double value) {
    if (std::isnan(value))
      out_ += "NaN";
    else if (std::isinf(value))
      out_ += value < 0 ? "-Infinity" : "Infinity";
    else
      append_float(value, out_);
  }
  void new_line(int depth) {
    if (style_.indent < 0) return;
    out_.push_back('\n');
    out_.append(static_cast<size_t>(depth) * static_cast<size_t>(style_.indent), ' ');
  }
  bool list(std::span<const Value> items, int depth) {
    out_.push_back('[');
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out_ += style_.item_separator;
      new_line(depth + 1);
      if (!print(items[i], depth + 1)) return false;
    }
    if (!items.empty()) new_line(depth);
    out_.push_back(']');
    return true;
  }
  bool key(const Value& value) {
    if (value.is_string()) {
      return string(value.string());
    }
    if (!value.is_number() && !value.is(Kind::kNone))
      return heap_.fail(
          fmt::format("tojson: keys must be str, int, float, bool or None, not {}", type_name(value)));
    out_.push_back('"');
    if (!print(value, 0)) return false;
    out_.push_back('"');
    return true;
  }
  bool dict(std::span<const Entry> entries, int depth) {
    out_.push_back('{');
    for (size_t i = 0; i < entries.size(); ++i) {
      if (i > 0) out_ += style_.item_separator;
      new_line(depth + 1);
      if (!key(entries[i].key)) return false;
      out_ += style_.key_separator;
      if (!print(entries[i].value, depth + 1)) return false;
    }
    if (!entries.empty()) new_line(depth);
    out_.push_back('}');
    return true;
  }

  Heap& heap_;
  const JsonStyle& style_;
  std::string& out_;
};

}  // namespace

std::string_view type_name(Kind kind) {
  constexpr std::string_view kNames[] = {
      "Undefined", "NoneType",  "bool",  "int",       "float",    "str",    "list",  "tuple",      "dict",
      "dict view", "generator", "range", "Namespace", "function", "method", "Macro", "LoopContext"};
  return kNames[static_cast<size_t>(kind)];
}
std::string_view type_name(const Value& value) { return type_name(value.kind); }

std::string undefined_message(const Value& undefined) {
  if (undefined.detail == 255) return std::string(undefined.string());
  if (undefined.detail == 0) return fmt::format("'{}' is undefined", undefined.string());
  return fmt::format("'{}' object has no '{}'", type_name(static_cast<Kind>(undefined.detail - 1)),
                     undefined.string());
}

bool append_text(Heap& heap, const Value& value, std::string& out) {
  switch (value.kind) {
    case Kind::kUndefined:
      return true;
    case Kind::kNone:
      out += "None";
      return true;
    case Kind::kBool:
      out += value.boolean ? "True" : "False";
      return true;
    case Kind::kInt:
      out += std::to_string(value.integer);
      return true;
    case Kind::kFloat:
      append_float(value.number, out);
      return true;
    case Kind::kString:
      out += value.string();
      return heap.charge_bytes(value.size) && heap.room(out.size());
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kDict:
      return repr(heap, value, 0, out);
    default:
      return heap.fail(fmt::format("a {} cannot be printed{}", type_name(value),
                                   value.is(Kind::kIterator) ? ": put |list or |join after it" : ""));
  }
}

bool append_repr(Heap& heap, const Value& value, std::string& out) { return repr(heap, value, 0, out); }

bool text_of(Heap& heap, const Value& value, Value& out) {
  if (value.is_string()) {
    out = value;
    return true;
  }
  std::string text;
  return append_text(heap, value, text) && heap.text(text, out);
}

bool append_json(Heap& heap, const Value& value, const JsonStyle& style, std::string& out) {
  return JsonPrinter(heap, style, out).print(value, 0);
}

}  // namespace plimsoll::templates
