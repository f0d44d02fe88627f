#include "training/gradient_sum.h"

#include <bit>

namespace plimsoll::training {
namespace {

/// An accumulator's elements onto `sum`, or in its place.
Status add(const runtime::Session& session, const std::string& state, int64_t first, std::span<float> sum,
           bool begins) {
  const bool is_f32 = session.type(state).dtype == ir::DType::kF32;
  const int64_t width = is_f32 ? 4 : 2;
  return session.read_pieces(
      state, first * width, std::ssize(sum) * width,
      [&](std::span<const std::byte> piece, int64_t at) -> Status {
        const auto* f32 = reinterpret_cast<const float*>(piece.data());
        const auto* bf16 = reinterpret_cast<const uint16_t*>(piece.data());
        float* const to = sum.data() + at / width;
        for (size_t i = 0; i < piece.size() / static_cast<size_t>(width); ++i) {
          const float g = is_f32 ? f32[i] : std::bit_cast<float>(static_cast<uint32_t>(bf16[i]) << 16);
          to[i] = begins ? g : to[i] + g;
        }
        return Ok{};
      });
}

}  // namespace

Status read_sum(const runtime::Session& session, const std::vector<std::string>& accumulators, int64_t first,
                std::span<float> sum) {
  for (size_t use = 0; use < accumulators.size(); ++use)
    PLIMSOLL_TRY(add(session, accumulators[use], first, sum, /*begins=*/use == 0));
  return Ok{};
}

}  // namespace plimsoll::training
