// Reads the attributes of a front end's op from a JSON object by name. It keeps the first error, so that an
// op's function reads all attributes and checks status() once.
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
  // A value of another kind reads as zero, and status() returns the error.
  double number(std::string_view name);
  int64_t integer(std::string_view name);
  bool flag(std::string_view name);
  std::string text(std::string_view name);
  /// One of `words`; the first one, with an error in status(), if the value is none of them.
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
