#include "ops/block_values.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"
#include "numerics/quantized.h"

namespace plimsoll::ops {
namespace {

using ir::DType;
using numerics::FourBit;

bool is_double(DType dtype) { return dtype == DType::kNf4Double || dtype == DType::kFp4Double; }
FourBit format_of(DType dtype) {
  return dtype == DType::kFp4 || dtype == DType::kFp4Double ? FourBit::kFp4 : FourBit::kNf4;
}

/// Where the components begin.
struct Parts {
  explicit Parts(const ir::TensorType& type)
      : all(ir::components(type.dtype, type.num_elements(), type.shape.dim(-1))) {}
  template <typename T, typename Byte>
  [[nodiscard]] auto at(Byte* storage, size_t index) const {
    using To = std::conditional_t<std::is_const_v<Byte>, const T, T>;
    return reinterpret_cast<To*>(storage + all[index].offset);
  }
  template <typename T>
  [[nodiscard]] std::span<T> span(std::byte* storage, size_t index) const {
    return {at<T>(storage, index), static_cast<size_t>(all[index].num_elements)};
  }
  ir::Components all;
};

template <typename T>
void dequantize_rows(const Parts& parts, int64_t row, const std::byte* storage, int64_t first,
                     std::span<T> out) {
  const float* scales = parts.at<float>(storage, 1);
  while (!out.empty()) {
    const auto count = std::min<size_t>(out.size(), static_cast<size_t>(row - first % row));
    numerics::dequantize_row(storage + first, scales[first / row], out.first(count));
    out = out.subspan(count);
    first += static_cast<int64_t>(count);
  }
}

template <typename T>
void dequantize_doubly(FourBit format, const Parts& parts, const std::byte* storage, int64_t first,
                       std::span<T> out) {
  constexpr int64_t kBlocks = 64, kBlock = numerics::bitsandbytes::kBlock;
  std::array<float, kBlocks> scales;
  while (!out.empty()) {
    const int64_t block = first / kBlock, end = (block + kBlocks) * kBlock;
    const auto count = std::min<size_t>(out.size(), static_cast<size_t>(end - first));
    const int64_t last = (first + static_cast<int64_t>(count) - 1) / kBlock;
    numerics::dequantize_scales(parts.at<std::byte>(storage, 1), parts.at<float>(storage, 2),
                                *parts.at<float>(storage, 3), block,
                                std::span(scales).first(static_cast<size_t>(last - block + 1)));
    numerics::dequantize_four_bit(format, storage, first, scales.data(), out.first(count));
    out = out.subspan(count);
    first += static_cast<int64_t>(count);
  }
}

template <typename T>
void dequantize_any(const ir::TensorType& type, const std::byte* storage, int64_t first, std::span<T> out) {
  const Parts parts(type);
  if (type.dtype == DType::kI8Rows) return dequantize_rows(parts, type.shape.dim(-1), storage, first, out);
  const FourBit format = format_of(type.dtype);
  if (is_double(type.dtype)) return dequantize_doubly(format, parts, storage, first, out);
  const float* scales = parts.at<float>(storage, 1) + first / numerics::bitsandbytes::kBlock;
  numerics::dequantize_four_bit(format, storage, first, scales, out);
}

}  // namespace

void dequantize(const ir::TensorType& type, const std::byte* storage, int64_t first, std::span<float> out) {
  dequantize_any(type, storage, first, out);
}

void dequantize(const ir::TensorType& type, const std::byte* storage, int64_t first,
                std::span<uint16_t> out) {
  dequantize_any(type, storage, first, out);
}

void quantize(const ir::TensorType& type, std::span<const float> x, std::span<std::byte> codes,
              std::span<float> scales) {
  if (type.dtype != DType::kI8Rows)
    return numerics::quantize_four_bit(format_of(type.dtype), x, codes, scales);
  const auto row = static_cast<size_t>(type.shape.dim(-1));
  PLIMSOLL_CHECK(x.size() == row * scales.size() && codes.size() == x.size(), ir::to_string(type));
  for (size_t r = 0; r < scales.size(); ++r)
    scales[r] = numerics::bitsandbytes::quantize_int8_row(
        x.subspan(r * row, row), {reinterpret_cast<int8_t*>(codes.data()) + r * row, row});
}

int64_t quantized_block(const ir::TensorType& type) {
  return type.dtype == DType::kI8Rows ? type.shape.dim(-1) : numerics::bitsandbytes::kBlock;
}

int64_t scales_offset(const ir::TensorType& type) { return Parts(type).all[1].offset; }

std::vector<std::byte> stored_scales(const ir::TensorType& type, std::span<const float> scales) {
  const Parts parts(type);
  PLIMSOLL_CHECK(parts.all[1].num_elements == static_cast<int64_t>(scales.size()), ir::to_string(type));
  std::vector<std::byte> bytes(static_cast<size_t>(type.bytes().count - parts.all[1].offset));
  if (!is_double(type.dtype)) {
    std::memcpy(bytes.data(), scales.data(), scales.size_bytes());
    return bytes;
  }
  std::byte* const storage = bytes.data() - parts.all[1].offset;
  const auto nested = numerics::bitsandbytes::quantize_absmax(scales);
  std::ranges::copy(nested.codes, parts.span<uint8_t>(storage, 1).begin());
  std::ranges::copy(nested.absmax, parts.span<float>(storage, 2).begin());
  *parts.at<float>(storage, 3) = nested.offset;
  return bytes;
}

}  // namespace plimsoll::ops
