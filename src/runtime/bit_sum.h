// A sum of bytes that differs wherever one bit of them does, at the memory's speed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace plimsoll::runtime {

/// Of bytes that come in pieces; cut otherwise, the same bytes may have another sum. As Fletcher's (1982,
/// IEEE Trans. Communications 30), with words of 64 bits in lanes: one sum of the words, and one of that sum
/// after each word, which tells their order. What differs in one word differs in the first, for certain.
class BitSum {
 public:
  void add(std::span<const std::byte> bytes) {
    const std::byte* at = bytes.data();
    size_t left = bytes.size();
    Lanes words, plain = plain_, ordered = ordered_;
    for (; left >= sizeof(Lanes); left -= sizeof(Lanes), at += sizeof(Lanes)) {
      std::memcpy(&words, at, sizeof(words));
      plain += words;
      ordered += plain;
    }
    if (left > 0) {
      words = Lanes{};
      std::memcpy(&words, at, left);
      plain += words;
      ordered += plain;
    }
    plain_ = plain, ordered_ = ordered;
  }

  using Value = std::array<uint64_t, 2>;
  [[nodiscard]] Value value() const { return {joined(plain_), joined(ordered_)}; }

 private:
  static constexpr size_t kLanes = 16;
  using Lanes [[gnu::vector_size(kLanes * sizeof(uint64_t))]] = uint64_t;

  /// Invertible in each lane while the others stand.
  static uint64_t joined(const Lanes& lanes) {
    uint64_t sum = 0;
    for (size_t i = 0; i < kLanes; ++i) sum = (sum ^ lanes[i]) * 0x9e3779b97f4a7c15ULL;
    return sum;
  }

  Lanes plain_{}, ordered_{};
};

}  // namespace plimsoll::runtime
