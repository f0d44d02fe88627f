// Limits of one rendering: memory for its values, steps, and the first error, all within the limits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "templates/value.h"

namespace plimsoll::templates {

/// Memory that is given back all at once, a count of steps, and the first failure. Everything returns false
/// (or null) from the failure on.
class Heap {
 public:
  Heap(int64_t max_bytes, int64_t max_steps, int64_t max_text_bytes)
      : bytes_left_(max_bytes), steps_left_(max_steps), max_text_bytes_(max_text_bytes) {}

  /// Keeps the first reason; returns false.
  bool fail(std::string why);
  [[nodiscard]] bool failed() const { return failed_; }
  [[nodiscard]] const std::string& why() const { return why_; }

  /// Counts work: about one step for a node of the template, an item or sixteen bytes gone through.
  bool charge(size_t steps) {
    steps_left_ -= static_cast<int64_t>(steps);
    return steps_left_ >= 0 ? !failed_ : fail("the template takes more steps than allowed");
  }
  bool charge_bytes(size_t bytes) { return charge(bytes / 16); }

  /// Whether a text may have so many bytes.
  bool room(size_t text_bytes) {
    return static_cast<int64_t>(text_bytes) <= max_text_bytes_ ? !failed_
                                                               : fail("the text is larger than allowed");
  }

  /// Counts lazy filters that compute each other's items; false is a failure, true wants a leave_filter().
  bool enter_filter() {
    constexpr int kMaxDepth = 200;
    if (filter_depth_ >= kMaxDepth) return fail("lazy filters chained too deep: put |list between them");
    ++filter_depth_;
    return !failed_;
  }
  void leave_filter() { --filter_depth_; }

  /// Uninitialised memory; null where the limit is reached.
  char* bytes(size_t count, size_t alignment = 1);
  /// Value-initialised elements, which are never destroyed.
  template <typename T>
  T* array(size_t count) {
    char* memory = bytes(count > UINT32_MAX ? SIZE_MAX : count * sizeof(T), alignof(T));
    if (memory == nullptr) return nullptr;
    T* first = reinterpret_cast<T*>(memory);
    for (size_t i = 0; i < count; ++i) new (first + i) T();
    return first;
  }
  /// A copy of `text` as a string value.
  bool text(std::string_view text, Value& out);
  /// a + b; grows `a` in place where it was made last.
  bool concat(std::string_view a, std::string_view b, Value& out);
  /// A copy of the items as a list or a tuple.
  bool list(std::span<const Value> items, Value& out, Kind kind = Kind::kList);
  /// An iterator over items that are there.
  bool iterator(std::span<const Value> items, Value& out);

 private:
  bool grow(size_t count);
  std::vector<std::unique_ptr<char[]>> chunks_ = {};
  char* cursor_ = nullptr;
  char* end_ = nullptr;
  size_t next_chunk_ = size_t{32} << 10;
  int64_t bytes_left_;
  int64_t steps_left_;
  int64_t max_text_bytes_;
  int filter_depth_ = 0;
  bool failed_ = false;
  std::string why_ = {};
};

}  // namespace plimsoll::templates
