// Watches what a parser allocates: nothing beyond twice its input at once, whatever the input claims.
#pragma once

#include <sanitizer/allocator_interface.h>

#include <algorithm>
#include <cstddef>
#include <string>

#include "base/check.h"

/// The largest single allocation while one of these lives. One at a time.
class AllocationBound {
 public:
  AllocationBound() {
    static const int installed = __sanitizer_install_malloc_and_free_hooks(on_malloc, on_free);
    PLIMSOLL_CHECK(installed > 0, "no room for allocation hooks");
    largest = 0;
    watching = true;
  }
  ~AllocationBound() { watching = false; }
  /// Twice the input, what messages and small containers take, and what the caller allows besides.
  void check(size_t input_bytes, size_t allowed_bytes = 0) const {
    watching = false;
    PLIMSOLL_CHECK(largest <= 2 * input_bytes + 1024 + allowed_bytes,
                   "an allocation of " + std::to_string(largest) + " bytes for an input of " +
                       std::to_string(input_bytes));
  }

 private:
  static void on_malloc(const volatile void* /*pointer*/, size_t bytes) {
    if (watching) largest = std::max(largest, bytes);
  }
  static void on_free(const volatile void* /*pointer*/) {}
  static inline size_t largest = 0;
  static inline bool watching = false;
};
