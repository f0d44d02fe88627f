#include "library/batch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "io/suggest.h"
#include "library/front_ops.h"
#include "library/invalid.h"
#include "numerics/convert.h"
#include "ops/operands.h"

namespace plimsoll::library {
namespace {

struct TypeRow {
  ElementType type;
  std::string_view name;
  int64_t bytes;
  bool floats;
  bool narrow;  ///< integers that f32 holds exactly
};
constexpr TypeRow kTypes[] = {
    {ElementType::kF32, "float32", 4, true, false}, {ElementType::kF64, "float64", 8, true, false},
    {ElementType::kF16, "float16", 2, true, false}, {ElementType::kBf16, "bfloat16", 2, true, false},
    {ElementType::kI32, "int32", 4, false, false},  {ElementType::kI64, "int64", 8, false, false},
    {ElementType::kI16, "int16", 2, false, true},   {ElementType::kI8, "int8", 1, false, true},
    {ElementType::kU8, "uint8", 1, false, true},    {ElementType::kBool, "bool", 1, false, true}};
const TypeRow& row_of(ElementType type) { return kTypes[static_cast<size_t>(type)]; }

std::string described(std::string_view type, const std::vector<int64_t>& shape) {
  return fmt::format("{} [{}]", type, fmt::join(shape, ", "));
}
std::string described(const Array& array) { return described(name(array.type), array.shape); }
/// The shape of `count` parts in one array; the longest there is where no array is that long.
std::vector<int64_t> joined(const ir::Shape& part, int64_t count) {
  std::vector<int64_t> shape = extents(part);
  if (__builtin_mul_overflow(shape[0], count, &shape[0])) shape[0] = std::numeric_limits<int64_t>::max();
  return shape;
}

template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

int64_t integer_at(ElementType type, const std::byte* at) {
  switch (type) {
    case ElementType::kI32:
      return load<int32_t>(at);
    case ElementType::kI64:
      return load<int64_t>(at);
    case ElementType::kI16:
      return load<int16_t>(at);
    case ElementType::kI8:
      return load<int8_t>(at);
    default:
      return load<uint8_t>(at);
  }
}

float decoded(numerics::Format format, const std::byte* at) {
  float value = 0;
  numerics::decode(format, {at, 2}, {&value, 1});
  return value;
}

float float_at(ElementType type, const std::byte* at) {
  switch (type) {
    case ElementType::kF32:
      return load<float>(at);
    case ElementType::kF64:
      return static_cast<float>(load<double>(at));
    case ElementType::kF16:
      return decoded(numerics::Format::kFp16, at);
    case ElementType::kBf16:
      return decoded(numerics::Format::kBf16, at);
    default:
      return static_cast<float>(integer_at(type, at));
  }
}

std::vector<int64_t> dense_strides(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0; stride *= shape[i]) strides[i] = stride;
  return strides;
}

bool is_dense(const Array& array) {
  const std::vector<int64_t> dense = dense_strides(array.shape);
  for (size_t i = 0; i < dense.size(); ++i)
    if (array.shape[i] != 1 && array.strides[i] != dense[i]) return false;
  return true;
}

/// visit(element, its address), in order, until it returns false.
template <class Visit>
void for_each_element(const Array& array, Visit visit) {
  const int64_t size = bytes_of(array.type), rank = std::ssize(array.shape);
  std::vector<int64_t> at(static_cast<size_t>(rank), 0);
  const std::byte* data = array.data;
  for (int64_t element = 0;; ++element) {
    if (!visit(element, data)) return;
    int64_t axis = rank - 1;
    for (; axis >= 0; --axis) {
      const auto i = static_cast<size_t>(axis);
      data += array.strides[i] * size;
      if (++at[i] < array.shape[i]) break;
      data -= array.strides[i] * array.shape[i] * size;
      at[i] = 0;
    }
    if (axis < 0) return;
  }
}

/// Elements of an input's dtype may come as that.
bool is_converted(ElementType from, ir::DType to) {
  const TypeRow& row = row_of(from);
  return to == ir::DType::kI32 ? !row.floats : row.floats || row.narrow;
}

Error wrong_array(const std::string& key, const std::string& what, std::string hint = {}) {
  return invalid(fmt::format("batch[\"{}\"]: {}", key, what), std::move(hint));
}

Status check_names(const Batch& batch, const Trace& trace) {
  std::vector<std::string> names;
  for (const TracedInput& input : trace.inputs()) names.push_back(input.name);
  for (const auto& [key, array] : batch.arrays())
    if (std::ranges::find(names, key.second) == names.end())
      return wrong_array(key.second, "the plan has no input of that name",
                         io::nearest_hint(key.second, names));
  return Ok{};
}

/// What the elements of an integer input are to be.
struct Bounds {
  int64_t below = int64_t{1} << 31;
  int64_t least = -(int64_t{1} << 31);
  bool ignores = true;  ///< -100 too
};

Bounds bounds_of(const Trace& trace, size_t input) {
  Bounds bounds;
  for (const IndexRange& range : trace.ranges()) {
    if (range.input != input) continue;
    bounds.below = std::min(bounds.below, range.below);
    bounds.least = 0;
    bounds.ignores = bounds.ignores && range.ignores;
  }
  return bounds;
}

Status check_integers(const std::string& key, const Array& array, const Bounds& bounds) {
  constexpr int64_t kIgnored = -100;
  std::optional<int64_t> wrong_value;
  for_each_element(array, [&](int64_t, const std::byte* at) {
    const int64_t value = integer_at(array.type, at);
    const bool holds = (value >= bounds.least && value < bounds.below) ||
                       (bounds.least == 0 && bounds.ignores && value == kIgnored);
    if (!holds) wrong_value = value;
    return holds;
  });
  if (!wrong_value) return Ok{};
  return Error{ErrorCode::kBadData,
               fmt::format("batch[\"{}\"]: it has {}, expected {} to {}{}", key, *wrong_value, bounds.least,
                           bounds.below - 1, bounds.least == 0 && bounds.ignores ? ", or -100" : "")};
}

/// Part `part` of an array of all.
Array part_of(const Array& array, int64_t part, int64_t extent) {
  Array result = array;
  result.data += part * extent * array.strides[0] * bytes_of(array.type);
  result.shape[0] = extent;
  return result;
}

}  // namespace

std::optional<ElementType> parse_element_type(std::string_view name) {
  const auto found = std::ranges::find(kTypes, name, &TypeRow::name);
  return found == std::end(kTypes) ? std::nullopt : std::optional(found->type);
}
std::string_view name(ElementType type) { return row_of(type).name; }
int64_t bytes_of(ElementType type) { return row_of(type).bytes; }

Status Batch::set(int64_t part, const std::string& name, Array array) {
  if (part < 0 || part >= std::numeric_limits<int32_t>::max())
    return wrong_array(name, fmt::format("part {}", part));
  if (array.shape.empty()) array.shape = {1}, array.strides = {1};
  for (const int64_t extent : array.shape)
    if (extent < 1) return wrong_array(name, fmt::format("it is {}, and holds nothing", described(array)));
  if (!ops::shape_of(array.shape))
    return wrong_array(name, fmt::format("it is {}, more than a tensor can have", described(array)));
  if (array.data == nullptr) return wrong_array(name, "its data is null");
  if (array.strides.empty()) array.strides = dense_strides(array.shape);
  arrays_[{part, name}] = std::move(array);
  return Ok{};
}

int64_t Batch::num_parts() const { return arrays_.empty() ? 0 : arrays_.rbegin()->first.first + 1; }

Result<BatchParts> BatchParts::of(const Batch& batch, const Trace& trace, int64_t count) {
  if (count < 1)
    return Error{ErrorCode::kInvalidArgument, fmt::format("accumulate is {}, expected 1 or more", count)};
  const bool apart = batch.num_parts() > 1;
  if (apart && batch.num_parts() != count)
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("the batch has {} parts, and accumulate is {}", batch.num_parts(), count)};
  PLIMSOLL_TRY(check_names(batch, trace));
  BatchParts parts;
  parts.inputs_ = trace.inputs();
  // Nothing is taken for a part before its arrays are there: the count is the caller's.
  for (int64_t p = 0; p < count && !parts.inputs_.empty(); ++p)
    for (size_t i = 0; i < parts.inputs_.size(); ++i) {
      const TracedInput& input = parts.inputs_[i];
      const auto found = batch.arrays().find({apart ? p : 0, input.name});
      if (found == batch.arrays().end())
        return wrong_array(input.name,
                           fmt::format("it is missing{}", apart ? fmt::format(" in part {}", p) : ""));
      const Array& array = found->second;
      const int64_t times = apart ? 1 : count;
      const std::vector<int64_t> shape = joined(input.type.shape, times);
      if (array.shape != shape || !is_converted(array.type, input.type.dtype))
        return wrong_array(input.name, fmt::format("it is {}, expected {}", described(array),
                                                   described(type_name(input.type.dtype), shape)));
      parts.arrays_.push_back(times == 1 ? array : part_of(array, p, input.type.shape.dim(0)));
      if (input.type.dtype == ir::DType::kI32)
        PLIMSOLL_TRY(check_integers(input.name, parts.arrays_.back(), bounds_of(trace, i)));
    }
  return parts;
}

void BatchParts::copy(int64_t part, size_t input, std::span<std::byte> to) const {
  const Array& array = arrays_[static_cast<size_t>(part) * inputs_.size() + input];
  const bool is_integer = inputs_[input].type.dtype == ir::DType::kI32;
  if (array.type == (is_integer ? ElementType::kI32 : ElementType::kF32) && is_dense(array)) {
    std::memcpy(to.data(), array.data, to.size());
    return;
  }
  for_each_element(array, [&](int64_t element, const std::byte* at) {
    std::byte* const place = to.data() + element * 4;
    if (is_integer) {
      const auto value = static_cast<int32_t>(integer_at(array.type, at));
      std::memcpy(place, &value, sizeof(value));
    } else {
      const float value = float_at(array.type, at);
      std::memcpy(place, &value, sizeof(value));
    }
    return true;
  });
}

}  // namespace plimsoll::library
