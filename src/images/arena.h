// Scratch memory handed out piece by piece; what was taken last may be given back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "base/at.h"
#include "base/check.h"
#include "base/units.h"

namespace plimsoll::images {

/// Every piece begins at a multiple of this, which vector loads of decoders ask for.
inline constexpr int64_t kArenaAlignment = 64;

/// What a piece of so many bytes takes of an arena.
constexpr int64_t arena_piece(int64_t bytes) { return round_up(bytes, kArenaAlignment); }

class Arena {
 public:
  explicit Arena(std::span<std::byte> memory) {
    const auto address = reinterpret_cast<uintptr_t>(memory.data());
    const size_t skip =
        at((kArenaAlignment - static_cast<int64_t>(address % kArenaAlignment)) % kArenaAlignment);
    if (skip < memory.size()) memory_ = memory.subspan(skip);
  }

  /// Null where there is no room.
  void* try_take(int64_t bytes) {
    if (bytes < 0 || bytes > std::numeric_limits<int64_t>::max() - kArenaAlignment) return nullptr;
    if (arena_piece(bytes) > static_cast<int64_t>(memory_.size()) - used_) return nullptr;
    void* piece = memory_.data() + used_;
    used_ += arena_piece(bytes);
    return piece;
  }
  /// An array, uninitialised. Precondition: there is room (checked).
  template <class T>
  std::span<T> take(int64_t count) {
    void* piece = try_take(count * static_cast<int64_t>(sizeof(T)));
    PLIMSOLL_CHECK(piece != nullptr, "a picture needs more scratch memory than was planned");
    return {static_cast<T*>(piece), at(count)};
  }
  /// Takes back a piece of so many bytes where nothing has been taken since.
  void give_back(const void* piece, int64_t bytes) {
    const int64_t begin = static_cast<const std::byte*>(piece) - memory_.data();
    if (begin + arena_piece(bytes) == used_) used_ = begin;
  }
  [[nodiscard]] int64_t used() const { return used_; }
  /// Gives back everything taken since `used` was that.
  void rewind(int64_t used) { used_ = used; }

 private:
  std::span<std::byte> memory_;
  int64_t used_ = 0;
};

}  // namespace plimsoll::images
