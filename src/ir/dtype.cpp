#include "ir/dtype.h"

#include <array>

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
                                                  {DType::kNf4, "nf4", 4, true}}};
constexpr int64_t kNf4Block = 64;

const Info& info(DType dtype) { return kInfos[static_cast<size_t>(dtype)]; }

}  // namespace

std::string_view name(DType dtype) { return info(dtype).name; }
int bits(DType dtype) { return info(dtype).bits; }
bool is_floating(DType dtype) { return info(dtype).floating; }
bool is_short(DType dtype) { return dtype == DType::kBf16 || dtype == DType::kF16; }
bool is_computable(DType dtype) { return dtype == DType::kF32 || is_short(dtype); }

std::optional<DType> parse_dtype(std::string_view text) {
  for (const auto& i : kInfos)
    if (i.name == text) return i.dtype;
  return std::nullopt;
}

std::vector<Component> components(DType dtype, int64_t num_elements) {
  const Bytes data(ceil_div(num_elements * bits(dtype), 8));
  if (dtype != DType::kNf4) return {{"data", data}};
  return {{"data", data}, {"scales", Bytes(ceil_div(num_elements, kNf4Block) * 4)}};
}

Bytes storage_bytes(DType dtype, int64_t num_elements) {
  Bytes total;
  for (const auto& c : components(dtype, num_elements)) total += c.bytes;
  return total;
}

}  // namespace plimsoll::ir
