// Values as text: str(), repr() and json.dumps() of Python.
#pragma once

#include <string>
#include <string_view>

#include "templates/heap.h"
#include "templates/value.h"

namespace plimsoll::templates {

/// Python's name of the value's type ("str", "NoneType", "dict").
std::string_view type_name(const Value& value);
std::string_view type_name(Kind kind);

/// What using an undefined value fails with: "'x' is undefined".
std::string undefined_message(const Value& undefined);

/// str(value). False is a failure: a value without a text, nested too deep, too large.
bool append_text(Heap& heap, const Value& value, std::string& out);
/// repr(value).
bool append_repr(Heap& heap, const Value& value, std::string& out);
/// str(value) as a value; strings stay themselves.
bool text_of(Heap& heap, const Value& value, Value& out);

struct JsonStyle {
  bool ascii_only = false;
  int indent = -1;  ///< blanks a level; -1: all in one line
  std::string_view item_separator = ", ";
  std::string_view key_separator = ": ";
};
/// json.dumps(value). False is a failure: a value that JSON has not.
bool append_json(Heap& heap, const Value& value, const JsonStyle& style, std::string& out);

}  // namespace plimsoll::templates
