// malloc, calloc, realloc and free over an arena, for C libraries whose allocators have no argument to find
// an arena by: each works in the arena that its thread has set.
#pragma once

#include <cstddef>

#include "images/arena.h"

namespace plimsoll::images {

/// While it lives, this thread's calls of the functions below take memory from `arena`.
class ArenaHeap {
 public:
  explicit ArenaHeap(Arena& arena);
  ~ArenaHeap();
  ArenaHeap(const ArenaHeap&) = delete;
  ArenaHeap& operator=(const ArenaHeap&) = delete;
};

}  // namespace plimsoll::images

/// As their namesakes; null where the arena has no room. What is freed is used again where it was taken last.
/// libwebp calls them by these names (cmake/webp.cmake).
extern "C" {
void* plimsoll_arena_malloc(size_t bytes);
void* plimsoll_arena_calloc(size_t count, size_t size);
void* plimsoll_arena_realloc(void* piece, size_t bytes);
void plimsoll_arena_free(void* piece);
}
