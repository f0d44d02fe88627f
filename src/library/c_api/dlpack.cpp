#include "library/c_api/dlpack.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "plimsoll/plimsoll_c.h"

namespace plimsoll::library {
namespace {

constexpr int32_t kCpu = 1, kPinned = 3;

struct Code {
  uint8_t code, bits;
  ElementType type;
};
constexpr Code kCodes[] = {{0, 8, ElementType::kI8},    {0, 16, ElementType::kI16},
                           {0, 32, ElementType::kI32},  {0, 64, ElementType::kI64},
                           {1, 8, ElementType::kU8},    {2, 16, ElementType::kF16},
                           {2, 32, ElementType::kF32},  {2, 64, ElementType::kF64},
                           {4, 16, ElementType::kBf16}, {6, 8, ElementType::kBool}};

}  // namespace

Result<Array> array_of_dlpack(const void* tensor) {
  const auto& from = *static_cast<const DlTensor*>(tensor);
  if (from.device_type != kCpu && from.device_type != kPinned)
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("it lies on a device of type {}", from.device_type),
                 {},
                 "copy it to the host's memory"};
  const auto* type = std::ranges::find_if(
      kCodes, [&](const Code& c) { return c.code == from.type_code && c.bits == from.type_bits; });
  if (type == std::end(kCodes) || from.type_lanes != 1 || from.num_axes < 0 || from.num_axes > PLS_MAX_RANK)
    return Error{ErrorCode::kInvalidArgument, fmt::format("elements of type {} with {} bits, {} axes",
                                                          from.type_code, from.type_bits, from.num_axes)};
  if (from.data == nullptr || (from.num_axes > 0 && from.shape == nullptr))
    return Error{ErrorCode::kInvalidArgument, "its data or its shape is null"};
  Array array{type->type, {from.shape, from.shape + from.num_axes}, {}, nullptr};
  array.data = static_cast<const std::byte*>(from.data) + from.byte_offset;
  if (from.strides != nullptr) array.strides.assign(from.strides, from.strides + from.num_axes);
  return array;
}

}  // namespace plimsoll::library
