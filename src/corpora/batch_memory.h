// Bounds the memory of record batches, whatever the files hold.
#pragma once

#include <cstddef>
#include <cstdint>

namespace plimsoll::corpora {

/// A batch of records is read until it holds so much text: handing it over costs nothing beside encoding it
/// (4 ms), and it is small enough to keep all threads busy until the end of a small input.
inline constexpr size_t kTextBatchBytes = size_t{256} << 10;
/// Beyond this no batch is begun while others are under way: long lines do not add up.
inline constexpr int64_t kMostBytesUnderWay = int64_t{16} << 20;
/// More memory than this is given back after use.
inline constexpr size_t kKeptBytes = size_t{4} << 20;

/// Empties; gives the memory back where it is unusually much.
template <typename T>
void empty(T& container) {
  if (container.capacity() * sizeof(container[0]) > kKeptBytes) container = T();
  container.clear();
}

}  // namespace plimsoll::corpora
