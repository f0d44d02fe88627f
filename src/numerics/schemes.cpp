// The quantization schemes, their layouts and their per-tensor scales.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "base/units.h"
#include "numerics/blocks.h"

namespace plimsoll::numerics {
namespace {

constexpr SchemeInfo kSchemes[] = {
    {Scheme::kBf16, "bf16", Format::kBf16},
    {Scheme::kFp16, "fp16", Format::kFp16},
    {Scheme::kTf32, "tf32", Format::kTf32},
    {Scheme::kE4m3, "e4m3", Format::kE4m3, 0, 0, Format::kFp32, true, "448 / the tensor's largest magnitude"},
    {Scheme::kE5m2, "e5m2", Format::kE5m2, 0, 0, Format::kFp32, true,
     "57344 / the tensor's largest magnitude"},
    {Scheme::kFp8Block1x128, "fp8-block-1x128", Format::kE4m3, 1, 128, Format::kFp32, false,
     "a power of two not above 448 / the block's largest magnitude"},
    {Scheme::kFp8Block128x128, "fp8-block-128x128", Format::kE4m3, 128, 128, Format::kFp32, false,
     "a power of two not above 448 / the tile's largest magnitude"},
    {Scheme::kMxfp8, "mxfp8", Format::kE4m3, 1, 32, Format::kE8m0, false,
     "the least power of two that brings the block within 448"},
    {Scheme::kNvfp4, "nvfp4", Format::kE2m1, 1, 16, Format::kE4m3, true,
     "E4M3 of the block's largest magnitude / 6, in units of the tensor's / 2688"},
    {Scheme::kNvfp4Block16x16, "nvfp4-16x16", Format::kE2m1, 16, 16, Format::kE4m3, true,
     "E4M3 of the tile's largest magnitude / 6, in units of the tensor's / 2688"},
    {Scheme::kNf4, "nf4", Format::kNf4, 1, 64, Format::kFp32, false, "the block's largest magnitude"},
    {Scheme::kInt8Block256, "int8-block256", Format::kInt8, 1, 256, Format::kFp32, false,
     "the block's largest magnitude, code 127"},
};

}  // namespace

std::span<const SchemeInfo> schemes() { return kSchemes; }

const SchemeInfo& info(Scheme scheme) {
  const auto index = static_cast<size_t>(scheme);
  PLIMSOLL_CHECK(index < std::size(kSchemes) && kSchemes[index].scheme == scheme, "schemes out of order");
  return kSchemes[index];
}

std::optional<Scheme> find_scheme(std::string_view name) {
  for (const SchemeInfo& each : kSchemes)
    if (each.name == name) return each.scheme;
  return std::nullopt;
}

std::vector<std::string> scheme_names() {
  std::vector<std::string> names;
  for (const SchemeInfo& each : kSchemes) names.emplace_back(each.name);
  return names;
}

int64_t code_row_bytes(Scheme scheme, int64_t cols) {
  return ceil_div(cols * info(info(scheme).codes).stored_bits, 8);
}

int64_t scale_rows(Scheme scheme, int64_t rows) {
  const SchemeInfo& s = info(scheme);
  return s.block_rows == 0 ? 0 : ceil_div(rows, s.block_rows);
}

int64_t scale_cols(Scheme scheme, int64_t cols) {
  const SchemeInfo& s = info(scheme);
  return s.block_cols == 0 ? 0 : ceil_div(cols, s.block_cols);
}

int64_t scale_bytes(Scheme scheme) { return info(info(scheme).scales).stored_bits / 8; }

double bits_per_value(Scheme scheme) {
  const SchemeInfo& s = info(scheme);
  const double code = info(s.codes).stored_bits;
  if (s.block_rows == 0) return code;
  return code + info(s.scales).stored_bits / static_cast<double>(s.block_rows * s.block_cols);
}

bool is_nvfp4(Scheme scheme) { return scheme == Scheme::kNvfp4 || scheme == Scheme::kNvfp4Block16x16; }

TensorScale tensor_scale(Scheme scheme, float amax) {
  TensorScale t{.amax = amax};
  if (!info(scheme).has_tensor_scale || !(amax > 0) || std::isinf(amax)) return t;
  const float largest =
      is_nvfp4(scheme) ? 2688.0F : static_cast<float>(info(info(scheme).codes).max);  // 448 * 6
  t.scale = std::min(largest / amax, std::numeric_limits<float>::max());
  t.decode = 1.0F / t.scale;
  return t;
}

}  // namespace plimsoll::numerics
