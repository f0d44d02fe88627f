#include "ir/dtype.h"

#include <array>
#include <span>

namespace plimsoll::ir {
namespace {

struct Info {
  DType dtype;
  std::string_view name;
  int bits;
  bool floating;
};

constexpr std::array<Info, kNumDTypes> kInfos = {{{DType::kF32, "f32", 32, true},
                                                  {DType::kBf16, "bf16", 16, true},
                                                  {DType::kF16, "f16", 16, true},
                                                  {DType::kE4m3, "e4m3", 8, true},
                                                  {DType::kE5m2, "e5m2", 8, true},
                                                  {DType::kE8m0, "e8m0", 8, true},
                                                  {DType::kI8, "i8", 8, false},
                                                  {DType::kU8, "u8", 8, false},
                                                  {DType::kI32, "i32", 32, false},
                                                  {DType::kNf4, "nf4", 4, true},
                                                  {DType::kNf4Double, "nf4_double", 4, true},
                                                  {DType::kFp4, "fp4", 4, true},
                                                  {DType::kFp4Double, "fp4_double", 4, true},
                                                  {DType::kI8Rows, "i8_rows", 8, true}}};

/// A component behind the codes: one element of `dtype` for each `elements` of the value; 0: one for all, -1:
/// for each row.
struct Scales {
  std::string_view name;
  DType dtype;
  int64_t elements;
};
constexpr int64_t kBlock = 64, kSecondBlock = 256;
constexpr std::array<Scales, 1> kSingle = {{{"scales", DType::kF32, kBlock}}};
constexpr std::array<Scales, 1> kRows = {{{"scales", DType::kF32, -1}}};
constexpr std::array<Scales, 3> kDouble = {{{"scales", DType::kU8, kBlock},
                                            {"second", DType::kF32, kBlock* kSecondBlock},
                                            {"offset", DType::kF32, 0}}};

std::span<const Scales> scales_of(DType dtype) {
  if (dtype == DType::kNf4 || dtype == DType::kFp4) return kSingle;
  if (dtype == DType::kNf4Double || dtype == DType::kFp4Double) return kDouble;
  if (dtype == DType::kI8Rows) return kRows;
  return {};
}

const Info& info(DType dtype) { return kInfos[static_cast<size_t>(dtype)]; }

}  // namespace

std::string_view name(DType dtype) { return info(dtype).name; }
int bits(DType dtype) { return info(dtype).bits; }
bool is_floating(DType dtype) { return info(dtype).floating; }
bool is_half_precision(DType dtype) { return dtype == DType::kBf16 || dtype == DType::kF16; }
bool is_computable(DType dtype) { return dtype == DType::kF32 || is_half_precision(dtype); }
bool is_block(DType dtype) { return !scales_of(dtype).empty(); }

std::optional<DType> parse_dtype(std::string_view text) {
  for (const auto& i : kInfos)
    if (i.name == text) return i.dtype;
  return std::nullopt;
}

Components components(DType dtype, int64_t num_elements, int64_t row) {
  Components all;
  const int64_t data = ceil_div(num_elements * bits(dtype), 8);
  if (!is_block(dtype)) {
    all.push_back({"data", dtype, num_elements, 0, Bytes(data)});
    return all;
  }
  all.push_back({"data", DType::kU8, data, 0, Bytes(data)});
  for (const Scales& s : scales_of(dtype)) {
    const int64_t each = s.elements < 0 ? row : s.elements;
    const int64_t count = each == 0 ? 1 : ceil_div(num_elements, each);
    const int64_t offset = round_up(all.back().offset + all.back().bytes.count, kComponentAlignment);
    all.push_back({s.name, s.dtype, count, offset, Bytes(count * bits(s.dtype) / 8)});
  }
  return all;
}

Bytes storage_bytes(DType dtype, int64_t num_elements, int64_t row) {
  if (!is_block(dtype)) return Bytes(ceil_div(num_elements * bits(dtype), 8));
  const Component last = components(dtype, num_elements, row).back();
  return Bytes(last.offset + last.bytes.count);
}

}  // namespace plimsoll::ir
