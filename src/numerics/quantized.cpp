// A block's 16 values are scaled once; its codes look them up: as f32 in lanes, as bf16 byte by byte, the
// lower and the upper half of each from a table of 16 bytes.
#include "numerics/quantized.h"

#include "numerics/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numerics/quantized.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
//
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "base/check.h"
#include "numerics/dynamic_map.h"
#include "numerics/formats.h"
#include "numerics/minifloat-inl.h"
#include "numerics/other_codes-inl.h"
#include "numerics/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::numerics::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// The largest magnitude of a block, and for each element how many of 15 bounds it is above when scaled.
HWY_ATTR float count_block(const float* bounds, const float* x, size_t count, int32_t* above) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const size_t lanes = hn::Lanes(d), whole = count / lanes * lanes;
  auto most = hn::Zero(d);
  for (size_t i = 0; i < whole; i += lanes) most = hn::Max(most, hn::Abs(hn::LoadU(d, x + i)));
  float scale = hn::GetLane(hn::MaxOfLanes(d, most));
  for (size_t i = whole; i < count; ++i) scale = std::max(scale, std::fabs(x[i]));
  // A tail that fills no block is divided by its scale, not multiplied with the inverse.
  const bool full = count == 64;
  const float least = std::max(scale, 1e-38F), inverse = 1.0F / least;
  const auto scaled = [&](float v) { return std::clamp(full ? v * inverse : v / least, -1.0F, 1.0F); };
  for (size_t i = 0; i < whole; i += lanes) {
    const auto v = hn::LoadU(d, x + i);
    const auto s = full ? hn::Mul(v, hn::Set(d, inverse)) : hn::Div(v, hn::Set(d, least));
    auto n = hn::Zero(di);
    for (size_t b = 0; b < 15; ++b)
      n = hn::Sub(n, hn::BitCast(di, hn::VecFromMask(d, hn::Gt(s, hn::Set(d, bounds[b])))));
    hn::StoreU(n, di, above + i);
  }
  for (size_t i = whole; i < count; ++i) {
    const float s = scaled(x[i]);
    above[i] = 0;
    for (size_t b = 0; b < 15; ++b) above[i] += s > bounds[b] ? 1 : 0;
  }
  return full ? scale : least;
}

#if HWY_TARGET == HWY_SCALAR
inline uint16_t rounded_bf16(float v) {
  const auto bits = std::bit_cast<uint32_t>(v);
  return static_cast<uint16_t>((bits + 0x7FFFU + (bits >> 16 & 1U)) >> 16);
}
inline void store_value(float v, float* to) { *to = v; }
inline void store_value(float v, uint16_t* to) { *to = rounded_bf16(v); }

template <typename T>
void decode_blocks(const float* values, const uint8_t* codes, const float* scales, int64_t blocks, T* out) {
  for (int64_t i = 0; i < blocks * 64; ++i) {
    const uint8_t pair = codes[i / 2];
    store_value(values[i % 2 == 0 ? pair >> 4 : pair & 15] * scales[i / 64], out + i);
  }
}
#else
using Bytes = hn::Full128<uint8_t>;

/// The indices of 32 elements from 16 bytes.
HWY_INLINE void indices_of(const uint8_t* codes, hn::Vec<Bytes>& first, hn::Vec<Bytes>& second) {
  const Bytes d;
  const hn::Full128<uint16_t> dw;
  const auto pair = hn::LoadU(d, codes);
  const auto fifteen = hn::Set(d, 15);
  const auto upper = hn::And(hn::BitCast(d, hn::ShiftRight<4>(hn::BitCast(dw, pair))), fifteen);
  const auto lower = hn::And(pair, fifteen);
  first = hn::InterleaveLower(d, upper, lower);
  second = hn::InterleaveUpper(d, upper, lower);
}

HWY_INLINE void scaled_values(const float* values, float scale, float* to) {
  const hn::ScalableTag<float> d;
  for (size_t i = 0; i < 16; i += hn::Lanes(d))
    hn::Store(hn::Mul(hn::LoadU(d, values + i), hn::Set(d, scale)), d, to + i);
}

void decode_blocks(const float* values, const uint8_t* codes, const float* scales, int64_t blocks,
                   float* out) {
  const hn::ScalableTag<float> d;
  const hn::RebindToUnsigned<decltype(d)> du;
  const hn::Rebind<uint8_t, decltype(d)> d8;
  const Bytes bytes;
  alignas(64) std::array<float, 16> scaled;
  alignas(64) std::array<uint8_t, 64> index;
  for (int64_t block = 0; block < blocks; ++block, codes += 32, out += 64) {
    scaled_values(values, scales[block], scaled.data());
    const Sixteen number(scaled.data());
    for (size_t i = 0; i < 2; ++i) {
      hn::Vec<Bytes> first, second;
      indices_of(codes + 16 * i, first, second);
      hn::Store(first, bytes, index.data() + 32 * i);
      hn::Store(second, bytes, index.data() + 32 * i + 16);
    }
    for (size_t i = 0; i < 64; i += hn::Lanes(d))
      hn::StoreU(number(hn::PromoteTo(du, hn::LoadU(d8, index.data() + i))), d, out + i);
  }
}

void decode_blocks(const float* values, const uint8_t* codes, const float* scales, int64_t blocks,
                   uint16_t* out) {
  const hn::ScalableTag<float> d;
  const hn::RebindToUnsigned<decltype(d)> du;
  const hn::RebindToSigned<decltype(d)> di;
  const hn::Rebind<uint8_t, decltype(d)> d8;
  const Bytes bytes;
  alignas(64) std::array<float, 16> scaled;
  alignas(64) std::array<uint8_t, 16> lower, upper;
  for (int64_t block = 0; block < blocks; ++block, codes += 32, out += 64) {
    scaled_values(values, scales[block], scaled.data());
    for (size_t i = 0; i < 16; i += hn::Lanes(d)) {
      const auto bits = hn::BitCast(du, hn::Load(d, scaled.data() + i));
      const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1));
      const auto up = hn::ShiftRight<16>(hn::Add(hn::Add(bits, hn::Set(du, 0x7FFF)), odd));
      hn::StoreU(hn::DemoteTo(d8, hn::BitCast(di, hn::And(up, hn::Set(du, 255)))), d8, lower.data() + i);
      hn::StoreU(hn::DemoteTo(d8, hn::BitCast(di, hn::ShiftRight<8>(up))), d8, upper.data() + i);
    }
    const auto low = hn::Load(bytes, lower.data()), high = hn::Load(bytes, upper.data());
    const auto look_up = [&](hn::Vec<Bytes> index, uint16_t* to) HWY_ATTR {
      const auto a = hn::TableLookupBytes(low, index), b = hn::TableLookupBytes(high, index);
      hn::StoreU(hn::InterleaveLower(bytes, a, b), bytes, reinterpret_cast<uint8_t*>(to));
      hn::StoreU(hn::InterleaveUpper(bytes, a, b), bytes, reinterpret_cast<uint8_t*>(to + 8));
    };
    for (size_t i = 0; i < 2; ++i) {
      hn::Vec<Bytes> first, second;
      indices_of(codes + 16 * i, first, second);
      look_up(first, out + 32 * i);
      look_up(second, out + 32 * i + 16);
    }
  }
}
#endif

void decode_to_f32(const float* values, const uint8_t* codes, const float* scales, int64_t blocks,
                   float* out) {
  decode_blocks(values, codes, scales, blocks, out);
}
void decode_to_bf16(const float* values, const uint8_t* codes, const float* scales, int64_t blocks,
                    uint16_t* out) {
  decode_blocks(values, codes, scales, blocks, out);
}

}  // namespace
}  // namespace plimsoll::numerics::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::numerics {
namespace {

HWY_EXPORT(count_block);
HWY_EXPORT(decode_to_f32);
HWY_EXPORT(decode_to_bf16);

/// Codes in the order of their values, and the bounds between them. Of FP4's two zeros the one of code 0
/// comes first, which takes 0 and what is below.
struct FourBitTable {
  std::array<uint8_t, 16> ascending = {};
  std::array<float, 15> bounds = {};
};
FourBitTable table_of(FourBit format) {
  FourBitTable table;
  const std::array<float, 16>& values = bitsandbytes::values_of(format);
  for (uint8_t i = 0; i < 16; ++i) table.ascending[i] = i;
  std::stable_sort(table.ascending.begin(), table.ascending.end(),
                   [&](uint8_t a, uint8_t b) { return values[a] < values[b]; });
  for (size_t i = 0; i < 15; ++i)
    table.bounds[i] = (values[table.ascending[i]] + values[table.ascending[i + 1]]) / 2;
  return table;
}

uint16_t bf16_of(float v) {
  const auto bits = std::bit_cast<uint32_t>(v);
  return static_cast<uint16_t>((bits + 0x7FFFU + (bits >> 16 & 1U)) >> 16);
}
void put(float v, float& to) { to = v; }
void put(float v, uint16_t& to) { to = bf16_of(v); }

template <typename T, typename Blocks>
void dequantize(FourBit format, const std::byte* codes, int64_t first, const float* scales, std::span<T> out,
                Blocks&& whole_blocks) {
  const std::array<float, 16>& values = bitsandbytes::values_of(format);
  const auto n = static_cast<int64_t>(out.size());
  const int64_t origin = first / bitsandbytes::kBlock;
  const auto one_by_one = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto pair = std::to_integer<uint8_t>(codes[(first + i) / 2]);
      const float scale = scales[(first + i) / bitsandbytes::kBlock - origin];
      put(values[(first + i) % 2 == 0 ? pair >> 4 : pair & 15] * scale, out[static_cast<size_t>(i)]);
    }
  };
  const int64_t head =
      std::min(n, (bitsandbytes::kBlock - first % bitsandbytes::kBlock) % bitsandbytes::kBlock);
  const int64_t blocks = (n - head) / bitsandbytes::kBlock, end = head + blocks * bitsandbytes::kBlock;
  one_by_one(0, head);
  if (blocks > 0)
    whole_blocks(values.data(), reinterpret_cast<const uint8_t*>(codes) + (first + head) / 2,
                 scales + (first + head) / bitsandbytes::kBlock - origin, blocks, out.data() + head);
  one_by_one(end, n);
}

template <typename T>
void dequantize_codes(const std::byte* codes, float scale, std::span<T> out) {
  for (size_t i = 0; i < out.size(); ++i)
    put(static_cast<float>(std::to_integer<int8_t>(codes[i])) * scale * (1.0F / 127), out[i]);
}

}  // namespace

void quantize_four_bit(FourBit format, std::span<const float> x, std::span<std::byte> codes,
                       std::span<float> scales) {
  static const FourBitTable kTables[] = {table_of(FourBit::kNf4), table_of(FourBit::kFp4)};
  const FourBitTable& table = kTables[static_cast<size_t>(format)];
  constexpr auto kBlock = static_cast<size_t>(bitsandbytes::kBlock);
  PLIMSOLL_CHECK(codes.size() == (x.size() + 1) / 2 && scales.size() == (x.size() + kBlock - 1) / kBlock,
                 "quantize: sizes differ");
  std::array<int32_t, kBlock + 1> above;
  for (size_t begin = 0; begin < x.size(); begin += kBlock) {
    const size_t n = std::min(kBlock, x.size() - begin);
    scales[begin / kBlock] =
        HWY_DYNAMIC_DISPATCH(count_block)(table.bounds.data(), x.data() + begin, n, above.data());
    // Behind an odd end stands the code of 0.
    if (n % 2 != 0) above[n] = 7;
    for (size_t i = 0; i < n; i += 2)
      codes[(begin + i) / 2] = static_cast<std::byte>(table.ascending[static_cast<size_t>(above[i])] << 4 |
                                                      table.ascending[static_cast<size_t>(above[i + 1])]);
  }
}

void dequantize_scales(const std::byte* codes, const float* second, float offset, int64_t first,
                       std::span<float> out) {
  const auto& values = signed_dynamic_map().values;
  for (size_t i = 0; i < out.size(); ++i) {
    const int64_t at = first + static_cast<int64_t>(i);
    out[i] = values[std::to_integer<size_t>(codes[at])] * second[at / bitsandbytes::kNestedBlock] + offset;
  }
}

void dequantize_four_bit(FourBit format, const std::byte* codes, int64_t first, const float* scales,
                         std::span<float> out) {
  dequantize(format, codes, first, scales, out, [](auto... arguments) {
    HWY_DYNAMIC_DISPATCH(decode_to_f32)(arguments...);
  });
}

void dequantize_four_bit(FourBit format, const std::byte* codes, int64_t first, const float* scales,
                         std::span<uint16_t> out) {
  dequantize(format, codes, first, scales, out, [](auto... arguments) {
    HWY_DYNAMIC_DISPATCH(decode_to_bf16)(arguments...);
  });
}

void dequantize_row(const std::byte* codes, float scale, std::span<float> out) {
  dequantize_codes(codes, scale, out);
}
void dequantize_row(const std::byte* codes, float scale, std::span<uint16_t> out) {
  dequantize_codes(codes, scale, out);
}

}  // namespace plimsoll::numerics
#endif
