#include "numerics/formats.h"

#include "base/check.h"

namespace plimsoll::numerics {
namespace {

constexpr std::string_view kIeee = "IEEE 754-2019";
constexpr std::string_view kFp8 = "OCP 8-bit floating point, 1.0";
constexpr std::string_view kMx = "OCP microscaling formats, 1.0";

constexpr FormatInfo kFormats[] = {
    {Format::kFp32, "fp32", 32, 32, 1, 8, 23, 127, 0x1.fffffep127, 0x1p-126, 0x1p-149, 0x1p-23, true, true,
     kIeee},
    {Format::kTf32, "tf32", 19, 32, 1, 8, 10, 127, 0x1.ffcp127, 0x1p-126, 0x1p-136, 0x1p-10, true, true,
     "NVIDIA A100 whitepaper, 2020"},
    {Format::kFp16, "fp16", 16, 16, 1, 5, 10, 15, 65504, 0x1p-14, 0x1p-24, 0x1p-10, true, true, kIeee},
    {Format::kBf16, "bf16", 16, 16, 1, 8, 7, 127, 0x1.fep127, 0x1p-126, 0x1p-133, 0x1p-7, true, true,
     "Intel, BFLOAT16 definition, 2018"},
    {Format::kE4m3, "e4m3", 8, 8, 1, 4, 3, 7, 448, 0x1p-6, 0x1p-9, 0x1p-3, false, true, kFp8},
    {Format::kE5m2, "e5m2", 8, 8, 1, 5, 2, 15, 57344, 0x1p-14, 0x1p-16, 0x1p-2, true, true, kFp8},
    {Format::kE8m0, "e8m0", 8, 8, 0, 8, 0, 127, 0x1p127, 0x1p-127, 0, 1, false, true, kMx},
    {Format::kE2m1, "e2m1", 4, 4, 1, 2, 1, 1, 6, 1, 0.5, 0.5, false, false, kMx},
    {Format::kNf4, "nf4", 4, 4, 0, 0, 0, 0, 1, 0, 0, 1.0 - double{kNf4Values[14]}, false, false,
     "QLoRA, arXiv:2305.14314"},
    {Format::kInt8, "int8", 8, 8, 1, 0, 7, 0, 127, 1, 0, 1, false, false, "two's complement, -128 unused"},
};

}  // namespace

std::span<const FormatInfo> formats() { return kFormats; }

const FormatInfo& info(Format format) {
  const auto index = static_cast<size_t>(format);
  PLIMSOLL_CHECK(index < std::size(kFormats) && kFormats[index].format == format, "formats out of order");
  return kFormats[index];
}

}  // namespace plimsoll::numerics
