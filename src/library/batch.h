// Maps names to a caller's arrays and makes them the inputs of a plan: the whole batch is checked first, then
// each part is copied to where the programs read it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "library/trace.h"

namespace plimsoll::library {

/// The element types of a caller's array.
enum class ElementType : uint8_t { kF32, kF64, kF16, kBf16, kI32, kI64, kI16, kI8, kU8, kBool };
/// The type with numpy's name `name`; nullopt if there is none.
std::optional<ElementType> parse_element_type(std::string_view name);
std::string_view name(ElementType type);
int64_t bytes_of(ElementType type);

/// Memory of the caller's, which is only read.
struct Array {
  ElementType type = ElementType::kF32;
  std::vector<int64_t> shape = {};
  std::vector<int64_t> strides = {};  ///< in elements, one an axis; none: dense
  const std::byte* data = nullptr;
};

class Batch {
 public:
  void clear() { arrays_.clear(); }
  /// Errors: kInvalidArgument for a shape that is none, a part that no step has.
  Status set(int64_t part, const std::string& name, Array array);

  [[nodiscard]] int64_t num_parts() const;
  [[nodiscard]] const std::map<std::pair<int64_t, std::string>, Array>& arrays() const { return arrays_; }

 private:
  std::map<std::pair<int64_t, std::string>, Array> arrays_;
};

/// A batch as `count` parts of a trace's inputs, whose names, shapes, types and ranges were checked.
class BatchParts {
 public:
  /// Errors: kInvalidArgument for names, shapes and types, kBadData for values, each naming the key, what
  /// came and what was wanted.
  static Result<BatchParts> of(const Batch& batch, const Trace& trace, int64_t count);

  /// Writes an input of a part, dense.
  void copy(int64_t part, size_t input, std::span<std::byte> to) const;

 private:
  std::vector<TracedInput> inputs_;
  std::vector<Array> arrays_;  ///< by part, then input
};

}  // namespace plimsoll::library
