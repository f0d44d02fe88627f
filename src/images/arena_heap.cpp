#include "images/arena_heap.h"

#include <algorithm>
#include <cstring>

namespace plimsoll::images {
namespace {

thread_local Arena* thread_arena = nullptr;

// Before each piece stands its size.
constexpr int64_t kSizeBytes = kArenaAlignment;
constexpr size_t kMostBytes = size_t{1} << 40;

size_t size_of_piece(const void* piece) {
  size_t bytes = 0;
  std::memcpy(&bytes, static_cast<const std::byte*>(piece) - kSizeBytes, sizeof bytes);
  return bytes;
}

}  // namespace

ArenaHeap::ArenaHeap(Arena& arena) { thread_arena = &arena; }
ArenaHeap::~ArenaHeap() { thread_arena = nullptr; }

}  // namespace plimsoll::images

extern "C" {

using namespace plimsoll::images;

void* plimsoll_arena_malloc(size_t bytes) {
  if (thread_arena == nullptr || bytes > kMostBytes) return nullptr;
  auto* piece = static_cast<std::byte*>(thread_arena->try_take(static_cast<int64_t>(bytes) + kSizeBytes));
  if (piece == nullptr) return nullptr;
  std::memcpy(piece, &bytes, sizeof bytes);
  return piece + kSizeBytes;
}

void* plimsoll_arena_calloc(size_t count, size_t size) {
  if (size != 0 && count > kMostBytes / size) return nullptr;
  void* piece = plimsoll_arena_malloc(count * size);
  if (piece != nullptr) std::memset(piece, 0, count * size);
  return piece;
}

void plimsoll_arena_free(void* piece) {
  if (piece == nullptr || thread_arena == nullptr) return;
  thread_arena->give_back(static_cast<std::byte*>(piece) - kSizeBytes,
                          static_cast<int64_t>(size_of_piece(piece)) + kSizeBytes);
}

void* plimsoll_arena_realloc(void* piece, size_t bytes) {
  void* grown = plimsoll_arena_malloc(bytes);
  if (piece == nullptr || grown == nullptr) return grown;
  std::memcpy(grown, piece, std::min(size_of_piece(piece), bytes));
  return grown;
}
}
