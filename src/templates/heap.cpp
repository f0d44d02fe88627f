// A bump allocator in growing chunks.
#include "templates/heap.h"

#include <algorithm>

namespace plimsoll::templates {

bool Heap::fail(std::string why) {
  if (!failed_) why_ = std::move(why);
  failed_ = true;
  return false;
}

bool Heap::grow(size_t count) {
  const size_t size = std::max(next_chunk_, count);
  const bool large = count > UINT32_MAX - 64;
  if (large || static_cast<int64_t>(size) > bytes_left_) {
    const bool fits = !large && static_cast<int64_t>(count) <= bytes_left_;
    if (!fits) return fail("the template's values take more memory than allowed");
  }
  const size_t taken = std::min(size, static_cast<size_t>(bytes_left_));
  chunks_.push_back(std::make_unique_for_overwrite<char[]>(taken));
  bytes_left_ -= static_cast<int64_t>(taken);
  cursor_ = chunks_.back().get();
  end_ = cursor_ + taken;
  next_chunk_ = std::min(next_chunk_ * 2, size_t{1} << 20);
  return true;
}

char* Heap::bytes(size_t count, size_t alignment) {
  if (failed_) return nullptr;
  const auto padding = [&] { return (0 - reinterpret_cast<uintptr_t>(cursor_)) & (alignment - 1); };
  if (cursor_ == nullptr || static_cast<size_t>(end_ - cursor_) < count + padding() || count > UINT32_MAX)
    if (count > UINT32_MAX || !grow(count + alignment)) {
      fail("the template's values take more memory than allowed");
      return nullptr;
    }
  char* memory = cursor_ + padding();
  cursor_ = memory + count;
  return memory;
}

bool Heap::text(std::string_view text, Value& out) {
  char* copy = bytes(text.size());
  if (copy == nullptr) return false;
  if (!text.empty()) std::memcpy(copy, text.data(), text.size());
  out = Value::of(std::string_view(copy, text.size()));
  return charge_bytes(text.size());
}

bool Heap::concat(std::string_view a, std::string_view b, Value& out) {
  if (a.size() + b.size() > UINT32_MAX) return fail("a text of more than 4 GiB");
  if (a.data() + a.size() == cursor_ && !a.empty() && static_cast<size_t>(end_ - cursor_) >= b.size()) {
    if (!b.empty()) std::memcpy(cursor_, b.data(), b.size());
    cursor_ += b.size();
    out = Value::of(std::string_view(a.data(), a.size() + b.size()));
    return charge_bytes(b.size());
  }
  const size_t size = a.size() + b.size();
  // A large text that may grow further gets a chunk with room for that.
  if (size > size_t{1} << 16 && static_cast<size_t>(end_ - cursor_) < size &&
      static_cast<int64_t>(2 * size) < bytes_left_ && !grow(2 * size))
    return false;
  char* copy = bytes(size);
  if (copy == nullptr) return false;
  if (!a.empty()) std::memcpy(copy, a.data(), a.size());
  if (!b.empty()) std::memcpy(copy + a.size(), b.data(), b.size());
  out = Value::of(std::string_view(copy, size));
  return charge_bytes(size);
}

bool Heap::list(std::span<const Value> items, Value& out, Kind kind) {
  Value* copy = array<Value>(items.size());
  if (copy == nullptr) return fail("the template's values take more memory than allowed");
  std::copy(items.begin(), items.end(), copy);
  out = Value::list(copy, items.size(), kind);
  return charge(items.size());
}

bool Heap::iterator(std::span<const Value> items, Value& out) {
  Iterator* iterator = array<Iterator>(1);
  if (iterator == nullptr) return false;
  iterator->items = items;
  out = Value();
  out.kind = Kind::kIterator;
  out.iterator = iterator;
  return true;
}

}  // namespace plimsoll::templates
