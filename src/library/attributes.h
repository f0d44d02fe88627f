// The attributes of a front end's op: a JSON object, read by name. The first thing that is wrong sticks, so
// that an op's function reads like the op.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "io/tree.h"

namespace plimsoll::library {

/// An attribute that an op takes.
struct AttributeSpec {
  std::string_view name;
  std::string_view value = {};  ///< JSON of its default; "null": it may be left out; empty: it is required
};

class Attributes {
 public:
  /// Attributes of the op `op`, as JSON; empty text is none. Errors: kInvalidArgument for text that is no
  /// object, an unknown name (with the nearest) and one that is missing.
  static Result<Attributes> read(std::string_view op, std::string_view json,
                                 std::span<const AttributeSpec> specs);

  /// Whether it is there and not null.
  [[nodiscard]] bool has(std::string_view name) const { return !value(name).is_null(); }
  // Where the value is of another kind: zero, and status() says so.
  double number(std::string_view name);
  int64_t integer(std::string_view name);
  bool flag(std::string_view name);
  std::string text(std::string_view name);
  /// One of `words`, the first where it is none.
  std::string word(std::string_view name, std::initializer_list<std::string_view> words);
  /// A list of integers, or one by itself.
  std::vector<int64_t> integers(std::string_view name);

  /// The error of an attribute, for an op's function to return: "slice: step is 0, expected 1 or more".
  [[nodiscard]] Error wrong(std::string_view name, std::string_view expected) const;
  [[nodiscard]] Status status() const;

 private:
  explicit Attributes(std::string_view op) : op_(op) {}
  [[nodiscard]] const io::Tree& value(std::string_view name) const;
  void expect(bool holds, std::string_view name, std::string_view expected);

  std::string op_;
  io::Tree values_;
  std::optional<Error> error_;
};

}  // namespace plimsoll::library
