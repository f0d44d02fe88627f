// C++'s operator new with a count before it, for programs: a library must not decide on its user's heap.
// Memory comes from malloc and goes back to free, whichever allocator these are: a preloaded one serves both.
//
// The forms for arrays, and those that do not throw, come here by the library's own definitions.
#include <algorithm>
#include <cstdlib>
#include <new>

#include "base/process.h"

namespace {

template <typename Ask>
void* asked(std::size_t bytes, Ask ask) {
  plimsoll::count_allocation(bytes);
  for (;;) {
    if (void* memory = ask(std::max<std::size_t>(bytes, 1)); memory != nullptr) return memory;
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}

}  // namespace

void* operator new(std::size_t bytes) {
  return asked(bytes, [](std::size_t n) { return std::malloc(n); });
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  const auto unit = static_cast<std::size_t>(alignment);
  return asked(bytes,
               [unit](std::size_t n) { return std::aligned_alloc(unit, (n + unit - 1) / unit * unit); });
}

void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
