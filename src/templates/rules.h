// The filters, tests and methods that templates may use, each with its name and its parameters.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "templates/heap.h"
#include "templates/value.h"

namespace plimsoll::templates {

/// The arguments of one call, bound to the rule's parameters.
struct Arguments {
  Heap& heap;
  std::string_view name;                   ///< of what is called, for messages
  std::array<const Value*, 8> bound = {};  ///< by parameter; null where not given
  std::span<const Value> positional = {};  ///< all, as given
  std::span<const Keyword> keywords = {};

  [[nodiscard]] bool has(size_t i) const { return bound[i] != nullptr; }
  /// The truth of a parameter, or `otherwise`.
  [[nodiscard]] bool flag(size_t i, bool otherwise) const;
  /// An integer parameter; false is a failure.
  bool integer(size_t i, int64_t otherwise, int64_t& out) const;
  /// A string parameter; false is a failure.
  bool string(size_t i, std::string_view otherwise, std::string_view& out) const;
  /// "x: what".
  bool fail(std::string_view what) const;
};

/// Binds the arguments to `parameters`, names separated by spaces, of which the first `required` must be
/// given;
/// "*" takes any and binds none. False is a failure that names the parameter.
bool bind(std::string_view parameters, int required, Arguments& call);

struct FilterRule {
  std::string_view name;
  bool (*apply)(const Value& value, Arguments& call, Value& out);
  std::string_view parameters = {};
  int required = 0;
  bool lazy = false;  ///< a generator: computed when its items are wanted
};
struct FilterCall {
  const FilterRule* rule;
  Value value;
  Arguments arguments;
};

struct TestRule {
  std::string_view name;
  bool (*holds)(const Value& value, Arguments& call, bool& out);
  std::string_view parameters = {};
  int required = 0;
};

struct MethodRule {
  Kind owner;
  std::string_view name;
  bool (*apply)(const Value& self, Arguments& call, Value& out);
  std::string_view parameters = {};
  int required = 0;
};

const FilterRule* find_filter(std::string_view name);
const TestRule* find_test(std::string_view name);
const MethodRule* find_method(Kind owner, std::string_view name);

bool apply_filter(const FilterRule& rule, const Value& value, Arguments& call, Value& out);
bool apply_test(const TestRule& rule, const Value& value, Arguments& call, bool& out);
bool apply_method(const MethodRule& rule, const Value& self, Arguments& call, Value& out);

}  // namespace plimsoll::templates
