#include "gguf/q8_0.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/check.h"
#include "numerics/convert.h"

namespace plimsoll::gguf {
namespace {

constexpr size_t kBlock = 32, kScaleBytes = 2, kBytes = kScaleBytes + kBlock;

}  // namespace

void encode_q8_0(std::span<const float> x, std::span<std::byte> out) {
  PLIMSOLL_CHECK(x.size() % kBlock == 0 && out.size() == x.size() / kBlock * kBytes, "blocks of q8_0");
  for (; !x.empty(); x = x.subspan(kBlock), out = out.subspan(kBytes)) {
    float most = 0;
    for (const float value : x.first(kBlock)) most = std::max(most, std::fabs(value));
    const float scale = most / 127.0F, inverse = scale == 0 ? 0 : 1.0F / scale;
    numerics::encode(numerics::Format::kFp16, {&scale, 1}, out.first(kScaleBytes));
    for (size_t i = 0; i < kBlock; ++i)
      out[kScaleBytes + i] = static_cast<std::byte>(static_cast<int8_t>(std::round(x[i] * inverse)));
  }
}

}  // namespace plimsoll::gguf
