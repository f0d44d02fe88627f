// Many tensors as one row of fixed chunks, which is how gradients are measured and parameters updated.
// Tensors are cut alike whether they come one by one or many in one op, so both give bit-identical results;
// many in one op keep the threads busy over tensors' ends.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/units.h"

namespace plimsoll::cpu {

/// Elements.
inline constexpr int64_t kChunk = 16384;

/// The table of the tensors' first chunks lies in the workspace.
class TensorChunks {
 public:
  static int64_t table_bytes(int64_t tensors) {
    return (tensors + 1) * static_cast<int64_t>(sizeof(int64_t));
  }

  template <typename Size>
  TensorChunks(std::byte* table, int64_t tensors, Size&& size)
      : first_(reinterpret_cast<int64_t*>(table)), tensors_(tensors) {
    first_[0] = 0;
    for (int64_t t = 0; t < tensors; ++t) first_[t + 1] = first_[t] + ceil_div(size(t), kChunk);
  }
  [[nodiscard]] int64_t num_chunks() const { return first_[tensors_]; }
  [[nodiscard]] int64_t first(int64_t tensor) const { return first_[tensor]; }
  [[nodiscard]] int64_t tensor_of(int64_t chunk) const {
    return std::upper_bound(first_, first_ + tensors_ + 1, chunk) - first_ - 1;
  }

 private:
  int64_t* first_;
  int64_t tensors_;
};

}  // namespace plimsoll::cpu
