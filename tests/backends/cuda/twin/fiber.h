// Threads of a block as coroutines of one thread of the host: each has a stack, and goes on where it stopped.
#pragma once

#include <cstddef>
#include <vector>

namespace twin {

/// Stacks below which nothing can be written, taken again by who comes next.
class Stacks {
 public:
  Stacks() = default;
  Stacks(const Stacks&) = delete;
  Stacks& operator=(const Stacks&) = delete;
  ~Stacks();
  /// The end of a stack, where it begins to be used.
  char* take();
  void give_back(char* end) { free_.push_back(end); }

 private:
  std::vector<char*> free_, all_;
};

/// Goes on at `to`, and leaves in `*from` where to come back to.
void switch_to(void** from, void* to);
/// Where `switch_to` begins `entry` on that stack; it never returns.
void* begin_at(char* stack_end, void (*entry)());

}  // namespace twin
