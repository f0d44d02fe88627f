#include "backends/cpu/transfer.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"

namespace plimsoll::cpu {
namespace {

constexpr int64_t kBlock = 1 << 20;    // of memory, a tile of the pool
constexpr int64_t kBounce = 64 << 10;  // on the stack
static_assert(kBlock % 4 == 0 && kBounce % 4 == 0, "a block begins with a whole word of a pattern");

// body(begin, bytes) for each block.
template <typename Body>
void for_each_block(int64_t bytes, ThreadPool* pool, const Body& body) {
  const auto block = [&](int64_t tile, int) { body(tile * kBlock, std::min(kBlock, bytes - tile * kBlock)); };
  if (pool != nullptr)
    pool->run(ceil_div(bytes, kBlock), block);
  else
    for (int64_t tile = 0; tile < ceil_div(bytes, kBlock); ++tile) block(tile, 0);
}

void repeat(std::byte* data, int64_t bytes, uint32_t pattern) {
  if (pattern == (pattern & 0xffU) * 0x01010101U) {
    std::memset(data, static_cast<int>(pattern & 0xffU), static_cast<size_t>(bytes));
    return;
  }
  int64_t at = 0;
  for (; at + 4 <= bytes; at += 4) std::memcpy(data + at, &pattern, 4);
  std::memcpy(data + at, &pattern, static_cast<size_t>(bytes - at));
}

Status between_files(Place destination, Place source, int64_t bytes) {
  std::array<std::byte, kBounce> bounce;
  for (int64_t at = 0; at < bytes; at += kBounce) {
    const std::span<std::byte> part(bounce.data(), static_cast<size_t>(std::min(kBounce, bytes - at)));
    PLIMSOLL_TRY(source.disk->read(source.offset + at, part));
    PLIMSOLL_TRY(destination.disk->write(destination.offset + at, part));
  }
  return Ok{};
}

}  // namespace

Place place_of(runtime::Location location, Bytes bytes) {
  const auto [memory, offset] = location;
  PLIMSOLL_CHECK(
      memory != nullptr && offset >= 0 && bytes.count >= 0 && bytes.count <= memory->size().count - offset,
      "a range beyond its memory");
  if (memory->space() == ir::MemorySpace::kDisk)
    return {nullptr, static_cast<const DiskMemory*>(memory), offset, memory->space()};
  return {memory->address() + offset, nullptr, 0, memory->space()};
}

Status transfer(Place destination, Place source, int64_t bytes, ThreadPool* pool) {
  if (destination.disk != nullptr && source.disk != nullptr) return between_files(destination, source, bytes);
  const auto size = static_cast<size_t>(bytes);
  if (source.disk != nullptr) return source.disk->read(source.offset, {destination.data, size});
  if (destination.disk != nullptr) return destination.disk->write(destination.offset, {source.data, size});
  for_each_block(bytes, pool, [&](int64_t begin, int64_t length) {
    std::memcpy(destination.data + begin, source.data + begin, static_cast<size_t>(length));
  });
  return Ok{};
}

Status fill(Place destination, int64_t bytes, uint32_t pattern, ThreadPool* pool) {
  if (destination.disk == nullptr) {
    for_each_block(bytes, pool,
                   [&](int64_t begin, int64_t length) { repeat(destination.data + begin, length, pattern); });
    return Ok{};
  }
  std::array<std::byte, kBounce> bounce;
  repeat(bounce.data(), std::min(kBounce, bytes), pattern);
  for (int64_t at = 0; at < bytes; at += kBounce)
    PLIMSOLL_TRY(destination.disk->write(
        destination.offset + at, {bounce.data(), static_cast<size_t>(std::min(kBounce, bytes - at))}));
  return Ok{};
}

}  // namespace plimsoll::cpu
