#include "checkpoints/quantized_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>

#include "base/units.h"
#include "io/json.h"
#include "numerics/bitsandbytes.h"
#include "numerics/dynamic_map.h"

namespace plimsoll::checkpoints {
namespace {

namespace bnb = numerics::bitsandbytes;

constexpr int64_t kMaxStateBytes = 4096;
constexpr std::string_view kState = ".quant_state.bitsandbytes__";
constexpr const char* kSaveAgain =
    "save it again with transformers and bitsandbytes, or quantize the original: plimsoll quantize";

Error damaged(std::string what, const std::string& where = {}, std::string hint = kSaveAgain) {
  return {ErrorCode::kBadData, std::move(what), where, std::move(hint)};
}

/// A positive integer member.
Result<int64_t> positive(const io::Tree& state, std::string_view field) {
  const io::Tree* value = state.find(field);
  if (value == nullptr || value->kind != io::Tree::Kind::kInteger || value->integer < 1)
    return damaged(fmt::format("the quant state's {} is {}, expected a positive integer", field,
                               value == nullptr ? "missing" : value->describe()));
  return value->integer;
}

Result<std::vector<int64_t>> matrix_shape(const io::Tree& state) {
  const io::Tree* shape = state.find("shape");
  if (shape == nullptr || shape->kind != io::Tree::Kind::kList || shape->items.size() != 2)
    return damaged("the quant state's shape is not that of a matrix");
  std::vector<int64_t> extents;
  for (const io::Tree& item : shape->items) {
    if (item.kind != io::Tree::Kind::kInteger || item.integer < 1)
      return damaged("the quant state's shape has an extent of " + item.describe());
    extents.push_back(item.integer);
  }
  if (extents[0] > std::numeric_limits<int64_t>::max() / 8 / extents[1])
    return damaged(fmt::format("the quant state's shape [{}, {}] is beyond 63 bits", extents[0], extents[1]));
  return extents;
}

Status check_block(int64_t size, int64_t expected, std::string_view what) {
  if (size == expected) return Ok{};
  return damaged(fmt::format("{} is {}, and only {} is supported", what, size, expected), {},
                 "quantize the original model: plimsoll quantize");
}

/// The tensors by name, and what is found among them.
class Finder {
 public:
  explicit Finder(std::span<const io::WeightRef> tensors) {
    for (const io::WeightRef& ref : tensors) by_name_.emplace(ref.tensor->name, ref);
  }

  Result<std::map<std::string, QuantizedTensor>> operator()() {
    std::set<std::string> four_bit, eight_bit;
    for (const auto& [name, ref] : by_name_) {
      if (const size_t at = name.find(kState); at != std::string_view::npos)
        four_bit.emplace(name.substr(0, at));
      for (const std::string_view part : {".absmax", ".quant_map", ".nested_absmax", ".nested_quant_map"})
        if (name.ends_with(part)) four_bit.emplace(name.substr(0, name.size() - part.size()));
      if (name.ends_with(".SCB")) eight_bit.emplace(std::string(name.substr(0, name.size() - 3)) + "weight");
    }
    for (const std::string& name : four_bit) PLIMSOLL_TRY(checked(add_four_bit(name), name));
    for (const std::string& name : eight_bit) PLIMSOLL_TRY(checked(add_rows(name), name));
    for (const auto& [name, ref] : by_name_)
      if (ref.tensor->dtype == "I8" && name.ends_with(".weight") && !eight_bit.contains(std::string(name)))
        return damaged(io::shown_name(name) + " is of 8 bits and has no SCB, its rows' scales",
                       ref.file->path());
    return std::move(found_);
  }

 private:
  static Status checked(Status status, const std::string& name) {
    if (status) return status;
    return std::move(status).error().at(io::shown_name(name));
  }

  /// A part of that dtype and as many elements.
  Result<io::WeightRef> part(const std::string& name, std::string_view dtype, int64_t elements) const {
    const auto it = by_name_.find(name);
    if (it == by_name_.end()) return damaged("there is no " + io::shown_name(name));
    const io::SafetensorsTensor& tensor = *it->second.tensor;
    if (tensor.dtype != dtype || tensor.num_elements() != elements)
      return damaged(fmt::format("{} is {}, expected {} elements of {}", io::shown_name(name),
                                 to_string(tensor), elements, dtype));
    return it->second;
  }

  Status check_map(const std::string& name, std::span<const float> expected) const {
    PLIMSOLL_ASSIGN(const io::WeightRef map, part(name, "F32", static_cast<int64_t>(expected.size())));
    std::vector<float> values(expected.size());
    PLIMSOLL_TRY(map.file->read(*map.tensor, 0, std::as_writable_bytes(std::span(values))));
    for (size_t i = 0; i < values.size(); ++i)
      if (!(values[i] == expected[i]))
        return damaged(fmt::format("{} has {} for code {}, bitsandbytes has {}", io::shown_name(name),
                                   values[i], i, expected[i]));
    return Ok{};
  }

  /// The state, and which of the two names it stands under.
  Result<QuantState> read_state(const std::string& name) const {
    io::WeightRef ref;
    std::string type;
    for (const std::string each : {"nf4", "fp4"}) {
      const auto it = by_name_.find(name + std::string(kState) + each);
      if (it == by_name_.end()) continue;
      if (ref.tensor != nullptr) return damaged("it has a quant state of nf4 and one of fp4");
      ref = it->second;
      type = each;
    }
    if (ref.tensor == nullptr)
      return damaged("it has parts of a quantized matrix and no quant state of nf4 or fp4");
    if (ref.tensor->dtype != "U8" || ref.tensor->bytes > kMaxStateBytes)
      return damaged(fmt::format("its quant state is {}, expected at most {} bytes of text",
                                 to_string(*ref.tensor), kMaxStateBytes));
    std::string text(static_cast<size_t>(ref.tensor->bytes), ' ');
    PLIMSOLL_TRY(ref.file->read(*ref.tensor, 0, std::as_writable_bytes(std::span(text))));
    PLIMSOLL_ASSIGN(QuantState state, parse_quant_state(text));
    if (state.quant_type != type)
      return damaged(
          fmt::format("its quant state of {} says quant_type {}", type, io::shown_name(state.quant_type)));
    return state;
  }

  /// The tensors of these endings that are there.
  std::vector<const io::SafetensorsTensor*> parts_of(const std::string& stem,
                                                     std::initializer_list<std::string_view> endings) const {
    std::vector<const io::SafetensorsTensor*> parts;
    for (const std::string_view ending : endings)
      if (const auto it = by_name_.find(stem + std::string(ending)); it != by_name_.end())
        parts.push_back(it->second.tensor);
    return parts;
  }

  Status add_four_bit(const std::string& name) {
    PLIMSOLL_ASSIGN(const QuantState state, read_state(name));
    const bool is_nf4 = state.quant_type == "nf4";
    QuantizedTensor found{.format = is_nf4 ? QuantizedFormat::kNf4 : QuantizedFormat::kFp4,
                          .shape = state.shape,
                          .source_dtype = state.dtype,
                          .nested = state.nested_blocksize.has_value(),
                          .offset = state.nested_offset,
                          .weight = {},
                          .absmax = {}};
    const int64_t n = state.shape[0] * state.shape[1], blocks = ceil_div(n, bnb::kBlock);
    PLIMSOLL_ASSIGN(found.weight, part(name, "U8", ceil_div(n, 2)));
    PLIMSOLL_ASSIGN(found.absmax, part(name + ".absmax", found.nested ? "U8" : "F32", blocks));
    PLIMSOLL_TRY(
        check_map(name + ".quant_map", bnb::values_of(is_nf4 ? bnb::FourBit::kNf4 : bnb::FourBit::kFp4)));
    if (found.nested) {
      PLIMSOLL_ASSIGN(found.nested_absmax,
                      part(name + ".nested_absmax", "F32", ceil_div(blocks, bnb::kNestedBlock)));
      PLIMSOLL_TRY(check_map(name + ".nested_quant_map", numerics::signed_dynamic_map().values));
    } else if (by_name_.contains(name + ".nested_absmax") || by_name_.contains(name + ".nested_quant_map")) {
      return damaged("it has nested scales that its quant state does not name");
    }
    found.parts = parts_of(name, {"", ".absmax", ".quant_map", ".nested_absmax", ".nested_quant_map",
                                  ".quant_state.bitsandbytes__nf4", ".quant_state.bitsandbytes__fp4"});
    found_.emplace(name, std::move(found));
    return Ok{};
  }

  Status add_rows(const std::string& name) {
    const auto weight = by_name_.find(name);
    if (weight == by_name_.end()) return damaged("there are scales of its rows (SCB), and no such tensor");
    const io::SafetensorsTensor& tensor = *weight->second.tensor;
    if (tensor.dtype != "I8" || tensor.shape.size() != 2 || tensor.num_elements() == 0)
      return damaged(fmt::format("it is {}, and of 8 bits it would be an I8 matrix", to_string(tensor)));
    const std::string module = name.substr(0, name.size() - 6);
    QuantizedTensor found{.format = QuantizedFormat::kInt8Rows,
                          .shape = tensor.shape,
                          .source_dtype = {},
                          .weight = weight->second,
                          .absmax = {}};
    PLIMSOLL_ASSIGN(found.absmax, part(module + "SCB", "F32", tensor.shape[0]));
    if (by_name_.contains(module + "weight_format")) {
      PLIMSOLL_ASSIGN(const io::WeightRef format, part(module + "weight_format", "U8", 1));
      std::byte value{};
      PLIMSOLL_TRY(format.file->read(*format.tensor, 0, std::span(&value, 1)));
      if (value != std::byte{0})
        return damaged(
            fmt::format("its weight_format is {}, and only 0, rows, is supported", static_cast<int>(value)));
    }
    found.parts = parts_of(module, {"weight", "SCB", "weight_format"});
    found_.emplace(name, std::move(found));
    return Ok{};
  }

  std::map<std::string, io::WeightRef, std::less<>> by_name_;
  std::map<std::string, QuantizedTensor> found_;
};

Status check_finite(std::span<const float> values, const io::WeightRef& ref) {
  for (const float v : values)
    if (!std::isfinite(v))
      return damaged(io::shown_name(ref.tensor->name) + " has a scale that is not finite", ref.file->path());
  return Ok{};
}

Result<std::vector<float>> read_floats(const io::WeightRef& ref) {
  std::vector<float> values(static_cast<size_t>(ref.tensor->num_elements()));
  PLIMSOLL_TRY(ref.file->read(*ref.tensor, 0, std::as_writable_bytes(std::span(values))));
  PLIMSOLL_TRY(check_finite(values, ref));
  return values;
}

}  // namespace

Result<QuantState> parse_quant_state(std::string_view json) {
  PLIMSOLL_ASSIGN(const io::Tree tree,
                  io::parse_json(json, {.max_bytes = kMaxStateBytes, .max_depth = 4, .max_nodes = 100}));
  QuantState state;
  const io::Tree* type = tree.find("quant_type");
  if (type == nullptr || (type->text != "nf4" && type->text != "fp4"))
    return damaged("the quant state's quant_type is " + (type == nullptr ? "missing" : type->describe()));
  state.quant_type = type->text;
  if (const io::Tree* dtype = tree.find("dtype"); dtype != nullptr) state.dtype = dtype->text;
  PLIMSOLL_ASSIGN(state.blocksize, positive(tree, "blocksize"));
  PLIMSOLL_TRY(check_block(state.blocksize, bnb::kBlock, "blocksize"));
  PLIMSOLL_ASSIGN(state.shape, matrix_shape(tree));
  const io::Tree* offset = tree.find("nested_offset");
  if (tree.find("nested_blocksize") == nullptr && offset == nullptr) return state;
  PLIMSOLL_ASSIGN(state.nested_blocksize, positive(tree, "nested_blocksize"));
  PLIMSOLL_TRY(check_block(*state.nested_blocksize, bnb::kNestedBlock, "nested_blocksize"));
  const bool is_number = offset != nullptr && (offset->kind == io::Tree::Kind::kNumber ||
                                               offset->kind == io::Tree::Kind::kInteger);
  state.nested_offset = is_number && std::abs(offset->number) <= std::numeric_limits<float>::max()
                            ? static_cast<float>(offset->number)
                            : std::numeric_limits<float>::infinity();
  if (!std::isfinite(state.nested_offset))
    return damaged("the quant state's nested_offset is no finite number of 32 bits");
  return state;
}

Result<std::map<std::string, QuantizedTensor>> find_quantized(std::span<const io::WeightRef> tensors) {
  return Finder(tensors)();
}

Result<std::map<std::string, QuantizedTensor>> find_quantized(const io::ModelWeights& weights) {
  std::vector<io::WeightRef> tensors;
  for (const std::string_view name : weights.names()) tensors.push_back(*weights.find(name));
  auto found = find_quantized(tensors);
  if (!found) return std::move(found).error().at(weights.directory());
  return found;
}

ir::DType block_type(const QuantizedTensor& tensor) {
  if (tensor.format == QuantizedFormat::kInt8Rows) return ir::DType::kI8Rows;
  if (tensor.format == QuantizedFormat::kNf4) return tensor.nested ? ir::DType::kNf4Double : ir::DType::kNf4;
  return tensor.nested ? ir::DType::kFp4Double : ir::DType::kFp4;
}

Result<std::vector<float>> read_scales(const QuantizedTensor& tensor) {
  if (!tensor.nested) return read_floats(tensor.absmax);
  PLIMSOLL_ASSIGN(std::vector<float> outer, read_floats(tensor.nested_absmax));
  bnb::Nested nested{.offset = tensor.offset, .codes = {}, .absmax = std::move(outer)};
  nested.codes.resize(static_cast<size_t>(tensor.absmax.tensor->num_elements()));
  PLIMSOLL_TRY(
      tensor.absmax.file->read(*tensor.absmax.tensor, 0, std::as_writable_bytes(std::span(nested.codes))));
  std::vector<float> scales = dequantize_absmax(nested);
  PLIMSOLL_TRY(check_finite(scales, tensor.nested_absmax));
  return scales;
}

}  // namespace plimsoll::checkpoints
